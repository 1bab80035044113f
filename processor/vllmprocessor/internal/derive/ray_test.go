package derive_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Four requests decode for 3 s each. A fifth has one token, and so a time of 0. Through Ray
// it can be in the bucket up to 2, where another version of Ray has requests of two tokens.
func TestOneTokenThroughRay(t *testing.T) {
	t.Parallel()
	points := func(one, two, more float64) []point {
		outputs := lengths(input.RequestGenerationTokens, 41, one, two, more)
		outputs.Bounds = []float64{1, 2, 100}
		return []point{
			outputs, times(input.DecodeTime, 12, 1, 0, 4), times(input.TimePerOutputToken, 0.8, 1, 4),
		}
	}
	const mean, perToken, quantile, bound = "request.decode_time_mean", "request.time_per_output_token_mean", "request.decode_time_quantile 1", "request.decode_time_quantile_bound 1 lower"
	for name, test := range map[string]struct {
		server input.Evidence
		points []point
		known  bool
	}{
		"not Ray":                           {release("0.21.0"), points(1, 2, 2), true},
		"Ray, one or two tokens":            {signed("0.21.0", input.Ray), points(0, 1, 4), false},
		"Ray, one token and two":            {signed("0.21.0", input.Ray), points(1, 2, 2), false},
		"Ray, none can have two tokens":     {signed("0.21.0", input.Ray), points(1, 0, 4), true},
		"Ray, nothing has the bucket of 2":  {signed("0.21.0", input.Ray), append(points(1, 0, 4)[1:], lengths(input.RequestGenerationTokens, 41, 1, 4)), false},
		"Ray in a version without a defect": {signed("0.40.0", input.Ray), points(0, 1, 4), false},
	} {
		got, withheld := derived(t, test.server, test.points)
		for key, want := range map[string]float64{mean: 3, perToken: 0.2, quantile: 10, bound: 1} {
			value, has := got[key]
			assert.Equal(t, test.known, has, "%s: %s", name, key)
			if has {
				assert.InDelta(t, want, value, 1e-9, "%s: %s", name, key)
			}
		}
		assert.Equal(t, !test.known, withheld > 0, "%s: absent values are counted", name)
	}
}
