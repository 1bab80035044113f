package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lastLine adds the readings to a table and returns the words of its last line
// by column.
func lastLine(t *testing.T, readings ...reading) []string {
	t.Helper()
	var out strings.Builder
	tab := newTable(&out)
	for _, r := range readings {
		tab.add(r)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	return strings.Fields(lines[len(lines)-1])
}

func TestTableShowsRatesBetweenTwoReadings(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := reading{
		at: start, up: 1, targets: 1, running: 1, waiting: 0, kvCache: 0.1,
		prompt: 1000, generation: 2000, success: 10, prefixHits: 50, prefixAsked: 100,
		firstToken: totals{2, 10}, interToken: totals{20, 2000},
	}
	after := reading{
		at: start.Add(10 * time.Second), up: 1, targets: 1, running: 7, waiting: 2, kvCache: 0.625,
		prompt: 6000, generation: 12000, success: 35, prefixHits: 100, prefixAsked: 300,
		firstToken: totals{7, 30}, interToken: totals{220, 12000},
	}

	assert.Equal(t, []string{
		"03:04:15", "1/1", "7", "2", "62.5", "%",
		"500",       // 5000 prompt tokens in 10 s
		"1000",      // 10000 generated tokens in 10 s
		"2.5",       // 25 requests in 10 s
		"250", "ms", // 5 s of waiting over 20 first tokens
		"20.0", "ms", // 200 s over 10000 tokens
		"25", "%", // 50 hits of 200 queries
	}, lastLine(t, before, after))
}

func TestTableShowsADashForWhatIsNotKnown(t *testing.T) {
	nan := math.NaN()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := reading{
		at: at, up: 1, targets: 1, running: 1, waiting: 1, kvCache: 0.5,
		prompt: 100, generation: 100, success: 100, prefixHits: 100, prefixAsked: 100,
		firstToken: totals{100, 100}, interToken: totals{100, 100},
	}
	restarted := full
	restarted.at = at.Add(5 * time.Second)
	restarted.prompt, restarted.generation, restarted.success = 10, 10, 10
	restarted.prefixHits, restarted.prefixAsked = 10, 10
	restarted.firstToken, restarted.interToken = totals{10, 10}, totals{10, 10}
	idle := full
	idle.at = at.Add(5 * time.Second)
	bare := reading{
		at: at, running: 1, waiting: nan, kvCache: nan,
		prompt: nan, generation: nan, success: nan, prefixHits: nan, prefixAsked: nan,
		firstToken: totals{nan, nan}, interToken: totals{nan, nan},
	}

	for name, tc := range map[string]struct {
		readings []reading
		want     string
	}{
		"no rate from one reading": {
			[]reading{full}, "03:04:05 1/1 1 1 50.0 % - - - - - -",
		},
		"no rate over a restart of the server": {
			[]reading{full, restarted}, "03:04:10 1/1 1 1 50.0 % - - - - - -",
		},
		"an idle server has rates but no latencies": {
			[]reading{full, idle}, "03:04:10 1/1 1 1 50.0 % 0 0 0.0 - - -",
		},
		"no rate where no scrape lies between": {
			[]reading{full, full}, "03:04:05 1/1 1 1 50.0 % - - - - - -",
		},
		"a server with hardly any metrics": {
			[]reading{bare}, "03:04:05 0/0 1 - - - - - - - -",
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.want, strings.Join(lastLine(t, tc.readings...), " "))
		})
	}
}

func TestHeadComesAgainAfterAScreenful(t *testing.T) {
	var out strings.Builder
	tab := newTable(&out)
	for range headEvery + 1 {
		tab.add(reading{})
	}
	require.Equal(t, 2, strings.Count(out.String(), "TTFT mean  "))
	assert.Equal(t, 1, strings.Count(out.String(), nameFirstToken), "the legend comes once")
}
