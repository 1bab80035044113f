package derive_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// Ten requests decode for 9 s together. Those of one token have no such time. A histogram
// of Ray that excludes its upper bounds counts one token in the bucket from 1 to 2, as
// another histogram counts two.
func TestRequestsOfOneTokenThroughRay(t *testing.T) {
	of := func(one, two, more float64) []point {
		return []point{times(collect.DecodeTime, 9, 0, 10), {"0", collect.Sample{
			Input: collect.RequestGenerationTokens, HasSum: true, Sum: one + 2*two + 5*more, Bounds: []float64{1, 2, 5},
			Counts: []float64{one, two, more, 0}, Count: one + two + more,
		}}}
	}
	const mean = "request.decode_time_mean"
	for name, c := range map[string]struct {
		server collect.Evidence
		points []point
		want   float64
	}{
		"not Ray":                        {release("0.20.0"), of(4, 3, 3), 1.5},
		"nothing up to two tokens":       {signed("0.20.0", collect.Ray), of(0, 0, 10), 0.9},
		"the bucket up to two is empty":  {signed("0.20.0", collect.Ray), of(4, 0, 6), 1.5},
		"one token or two":               {signed("0.20.0", collect.Ray), of(0, 4, 6), absent},
		"one token or two, and one more": {signed("0.20.0", collect.Ray), of(1, 3, 6), absent},
	} {
		got, _ := derived(t, c.server, c.points)
		value, is := got[mean]
		if math.IsNaN(c.want) {
			assert.False(t, is, "%s: %v", name, value)
			continue
		}
		assert.InDelta(t, c.want, value, 1e-9, name)
	}
}
