package vllmprocessor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// A pod comes every minute of a day and stays for ten.
func TestADayOfPodsThatComeAndGoLeavesNothing(t *testing.T) {
	race.SkipSequential(t)
	r := newRig(t, "")
	for minute := range 24 * 60 {
		var b strings.Builder
		fmt.Fprintf(&b, "at %d\n", 60*minute)
		for pod := max(0, minute-10); pod <= minute; pod++ {
			fmt.Fprintf(&b, "server pod-%d\ncounter vllm.generation_tokens{0} %d\ngauge vllm.num_requests.running{0} 1\n", pod, minute)
		}
		r.heard(b.String())
		// Eleven that live, and those that have been silent for less than it takes to
		// notice.
		require.LessOrEqual(t, len(r.processor.resources), 11+7)
		require.Equal(t, 2*len(r.processor.resources), r.processor.series.Used())
	}
}

// Series of two engines are missing or end at random; at last all end, or are
// never sent again. Each derived series that had a value has then ended, once.
func TestEachDerivedSeriesEndsOnce(t *testing.T) {
	race.SkipSequential(t)
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, "percentiles: {per_engine: true}")
		last := map[string]float64{}
		send := func(at int, body string) {
			for _, heard := range r.heard(fmt.Sprintf("at %d\n%s", at, body)) {
				for key, value := range heard {
					name := strings.Replace(key, fmt.Sprintf(" %ds ", at), " ", 1)
					was, known := last[name]
					assert.False(t, math.IsNaN(value) && (!known || math.IsNaN(was)), "seed %d: ends twice: %s", seed, key)
					last[name] = value
				}
			}
		}
		at, counts := 0, map[string]int{}
		for range 30 {
			at += []int{1, 15, 15, 15, 60, 130}[random.IntN(6)]
			missing, gone := 0.3*float64(random.IntN(2)), 0.3*float64(random.IntN(2))
			send(at, randomBody(random, counts, missing, gone))
		}
		if seed%2 == 0 {
			send(at+15, randomBody(random, counts, 0, 1))
		} else {
			for i := range 3 {
				send(at+15*(i+1), "counter vllm.mm_cache.hits{7} 0\n")
			}
		}
		for name, value := range last {
			assert.True(t, math.IsNaN(value), "seed %d: has not ended: %s", seed, name)
		}
	}
}

// randomBody has the series of two engines, but for those that are missing or
// end with these probabilities.
func randomBody(random *rand.Rand, counts map[string]int, missing, gone float64) string {
	var b strings.Builder
	for _, series := range []string{
		"counter vllm.generation_tokens{%d}", "counter vllm.prompt_tokens{%d}", "counter vllm.num_preemptions{%d}",
		"counter vllm.prefix_cache.hits{%d}", "counter vllm.prefix_cache.queries{%d}",
		"counter vllm.spec_decode.num_drafts{%d}", "counter vllm.spec_decode.num_accepted_tokens{%d}",
		"gauge vllm.num_requests.waiting{%d}", "gauge vllm.num_requests.running{%d}",
		"histogram vllm.time_to_first_token{%d}", "histogram vllm.e2e_request_latency{%d}",
	} {
		for engine := range 2 {
			name := fmt.Sprintf(series, engine)
			counts[name] += random.IntN(3)
			n := counts[name]
			value := fmt.Sprint(n)
			if strings.HasPrefix(name, "histogram") {
				value = fmt.Sprintf("0.1:%d 1:%d inf:0 sum:%d", n, n/2, n)
			}
			if random.Float64() < gone {
				value = "gone"
			}
			if random.Float64() >= missing {
				fmt.Fprintf(&b, "%s %s\n", name, value)
			}
		}
	}
	return b.String()
}
