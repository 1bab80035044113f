package window_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/promstore"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// TestIncreasesAndQuantilesAreThoseOfPrometheus compares with Prometheus's own
// engine. Its anchored increase is the one that begins at a sample; the plain one
// extrapolates. Series are present throughout and restart; scrapes jitter.
func TestIncreasesAndQuantilesAreThoseOfPrometheus(t *testing.T) {
	const length = time.Minute
	restarts := 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 3))
		resource := window.NewResource(window.Settings{Window: length, MaxStaleness: 5 * time.Minute})
		bounds := []float64{0.1, 0.5, 1, 2.5}
		stored := promstore.Store{}
		counter, counts := 0.0, make([]float64, len(bounds)+1)
		now := int64(1_700_000_000_000) // Prometheus counts milliseconds
		for range 40 {
			now += 5000 + r.Int64N(4000)
			if r.IntN(12) == 0 { // a restart, which all numbers show
				counter = 0
				clear(counts)
			} else {
				counter += float64(r.IntN(500)) + 1
			}
			for i := range counts {
				counts[i] += float64(r.IntN(8))
			}
			report := resource.Observe(observation(now*1e6, counter, bounds, counts), math.MaxInt)
			stored.Add(time.UnixMilli(now), counter, "__name__", "counter")
			below := 0.0
			for i, n := range counts {
				below += n
				le := "+Inf"
				if i < len(bounds) {
					le = fmt.Sprint(bounds[i])
				}
				stored.Add(time.UnixMilli(now), below, "__name__", "latency_bucket", "le", le)
			}
			if report.Resets > 0 && !stored.AllFell() {
				// Prometheus sees no restart in a bucket whose count is the same before and
				// after it, so it cannot be compared with here.
				break
			}
			restarts += report.Resets
			compareWith(t, stored, resource, now)
		}
	}
	require.Greater(t, restarts, 40)
}

func compareWith(t *testing.T, stored promstore.Store, resource *window.Resource, now int64) {
	t.Helper()
	views := resource.Views(nil, false)
	require.Len(t, views, 1)
	view := &views[0]
	increase, status := view.Increase(input.PromptTokens)
	if status != window.Present {
		return
	}
	ask := func(query string) float64 { return stored.Ask(t, query, time.UnixMilli(now)) }
	require.InDelta(t, ask("increase(counter[1m] anchored)"), increase, 1e-9*increase)
	var h window.Histogram
	require.Equal(t, window.Present, view.AddTo(&h, input.TimeToFirstToken))
	for _, q := range []float64{0.01, 0.5, 0.9, 0.99, 1} {
		want := ask(fmt.Sprintf("histogram_quantile(%g, increase(latency_bucket[1m] anchored))", q))
		got, ok := h.Quantile(q)
		require.Equal(t, !math.IsNaN(want), ok)
		if ok {
			require.InDelta(t, want, got, 1e-9*want)
		}
	}
}

func observation(at int64, counter float64, bounds, counts []float64) *input.Batch {
	h := input.Sample{Input: input.TimeToFirstToken, Bounds: bounds, Counts: append([]float64(nil), counts...)}
	for _, n := range counts {
		h.Count += n
	}
	return &input.Batch{
		Time: at, Groups: []input.Group{{Key: "k"}},
		Samples: []input.Sample{{Input: input.PromptTokens, Value: counter}, h},
	}
}
