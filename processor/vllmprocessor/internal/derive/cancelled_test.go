package derive_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Of 120 answers the engine has finished 80, so 40 were cancelled: also those without a first token, and while
// the number of running requests changes. Where the two counts are not about the same requests nothing is counted.
func TestCancelledRequestsAreTheAnswersThatNoEngineFinished(t *testing.T) {
	const path = "/v1/chat/completions"
	answered := func(n float64) point { return count(input.HTTPRequests, n, "2xx", path, "POST") }
	for name, test := range map[string]struct {
		more     []point
		evidence input.Evidence
		want     float64
		reason   derive.Reason
	}{
		"one engine": {want: 40},
		"other answers": {want: 40, more: []point{
			count(input.HTTPRequests, 9, "4xx", path, "POST"), count(input.HTTPRequests, 9, "5xx", path, "POST"),
			count(input.HTTPRequests, 9, "2xx", "/health", "GET"), count(input.HTTPRequests, 9, "2xx", "/tokenize", "POST"),
			count(input.HTTPRequests, 9, "2xx", "/v1/responses/{response_id}", "GET"), count(input.HTTPRequests, 9, "4xx", "none", "POST"),
			count(input.HTTPRequests, 9, "2xx", path, "OPTIONS"), // A browser asks before each request.
		}},
		"both paths":        {want: 50, more: []point{count(input.HTTPRequests, 10, "2xx", "/v1/completions", "POST")}},
		"no paths":          {reason: derive.Missing, more: []point{count(input.HTTPRequests, 1, "2xx", "none", "POST")}},
		"embeddings, too":   {reason: derive.Missing, more: []point{count(input.HTTPRequests, 1, "2xx", "/v1/embeddings", "POST")}},
		"four choices each": {reason: derive.Missing, more: []point{count(input.RequestSuccess, 240, "length")}},
		"a second engine":   {reason: derive.Missing, more: []point{count(input.RequestSuccess, 1, "stop").of("1")}},
		"several processes": {reason: derive.Missing, evidence: input.Evidence{Signs: input.Processes}},
		"through Ray":       {reason: derive.Missing, evidence: input.Evidence{Signs: input.Ray}},
	} {
		t.Run(name, func(t *testing.T) {
			resource := window.NewResource(window.Settings{Window: interval * time.Second, MaxStaleness: 2 * interval * time.Second})
			for at, share := range []float64{0, 0.5, 1} {
				points := []point{answered(120 * share), count(input.RequestSuccess, 80*share, "stop"), count(input.Running, 9*share), count(input.GenerationTokens, 80*share)}
				for _, p := range test.more {
					p.Value *= share
					points = append(points, p)
				}
				require.True(t, resource.Observe(batch(int64(at)*interval/2, test.evidence, points), math.MaxInt).Observed)
			}
			views := resource.Views(nil, false)
			i := slices.IndexFunc(views, func(v window.View) bool { return v.Group().Engine() == "0" })
			require.GreaterOrEqual(t, i, 0)
			gone, ended, reason := derive.Cancelled(&views[i])
			assert.Equal(t, test.reason, reason)
			assert.InDelta(t, test.want, gone, 1e-9)
			if reason == derive.OK {
				assert.InDelta(t, 80+test.want, ended, 1e-9)
			}
		})
	}
}
