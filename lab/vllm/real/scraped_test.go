//go:build linux

package real

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

func TestTheTableHasWhatClientsFeltInEachPhase(t *testing.T) {
	// 200 requests after the beginning: the first tokens come after 1 to 200 ms, of which 198 are 99 %,
	// and their mean is 100.5. Of 400 times between tokens, 396 are 10 ms and 4 are 110 ms: the mean is 11.
	sent := []judge.Sent{{At: 9.9, How: judge.Answered, Tokens: judge.Times{5, 9}}}
	for n := 200; n > 0; n-- {
		first, gap := float64(n)/1000, 0.01
		if n%100 == 0 {
			gap = 0.11
		}
		sent = append(sent, judge.Sent{At: 10 + float64(n), How: judge.Answered, Tokens: judge.Times{first, first + gap, first + 2*gap}})
	}
	var all []Felt
	for _, s := range scrapings {
		f := Felt{Name: s.name, Scrapes: s.collectors, Core: 0.25}
		require.NoError(t, f.take(sent))
		all = append(all, f)
	}
	lines := strings.Split(FeltTable(all), "\n")[2:]
	assert.Equal(t, "| none, at the beginning | 0 | 200 | 100.5 | 198.0 | 11.00 | 10.00 | 25.0 |", lines[0])
	assert.Equal(t, "| every 1 s, three collectors | 3 | 200 | 100.5 | 198.0 | 11.00 | 10.00 | 25.0 |", lines[4])
	assert.Equal(t, "| none, at the end | 0 | 200 | 100.5 | 198.0 | 11.00 | 10.00 | 25.0 |", lines[5])

	sent[3].How = judge.TimedOut
	assert.ErrorContains(t, (&Felt{Name: "none"}).take(sent), "not answered", "a mean without the slowest would be too good")
}
