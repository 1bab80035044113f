package derive_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Ten requests have their first tokens before a scrape and end after it. Then the counters
// begin again, so that no scrape shows the ends. No client has left.
func TestRequestsWhoseEndIsLostAreNotCancelled(t *testing.T) {
	t.Parallel()
	const every = 60
	at := func(n int64, engines int, process, first, done, running float64) *input.Batch {
		var points []point
		for e := range engines {
			points = append(points, as(string(rune('0'+e)),
				times(input.TimeToFirstToken, first, 0, first), count(input.RequestSuccess, done, "stop"), times(input.E2ERequestLatency, 5*done, 0, 0, done),
				count(input.PromptTokens, 100*first), lengths(input.RequestPromptTokens, 100*done, 0, done), count(input.Running, running))...)
		}
		return batch(n*every, input.Evidence{Version: "0.14.1", ProcessStart: process}, points)
	}
	for name, test := range map[string]struct {
		engines int
		process float64
		because derive.Reason
	}{
		"engines are added": {2, 1000, derive.KnownDefect},
		"a restart":         {1, 1090, derive.First},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resource := window.NewResource(window.Settings{Window: every * time.Second, MaxStaleness: 2 * every * time.Second})
			settings := derive.Settings{Enabled: make([]bool, len(derive.Rows()))}
			for i := range settings.Enabled {
				switch derive.Rows()[i].Metric {
				case "vllm.request.cancelled_estimate", "vllm.wasted_tokens_ratio":
					settings.Enabled[i] = true
				}
			}
			var evaluator derive.Evaluator
			for n := range int64(14) {
				switch {
				case n < 7:
					resource.Observe(at(n, 1, 1000, float64(20*n+10), float64(20*n), 10), math.MaxInt)
				default: // After the reset each interval has 20 requests from begin to end.
					resource.Observe(at(n, test.engines, test.process, float64(20*(n-6)), float64(20*(n-6)), 0), math.MaxInt)
				}
				evaluator.Absent = [derive.NumReasons]int{}
				values := evaluator.Evaluate(&settings, resource)
				for _, v := range values {
					switch {
					case v.Row.Metric == "vllm.request.cancelled_estimate", v.Extra[1] == "lower":
						assert.Zero(t, v.Number, "%s, batch %d", v.Row.Metric, n)
					default:
						assert.GreaterOrEqual(t, v.Number, 0.0, "%s, batch %d", v.Row.Metric, n)
					}
				}
				reset := n >= 7 && n < 12
				assert.Equal(t, reset, evaluator.Absent[test.because] > 0 && n > 5, "batch %d: absent for this reason while the reset is in the long window", n)
				assert.Equal(t, n > 5 && !reset || n == 5, len(values) > 0, "batch %d", n)
			}
		})
	}
}
