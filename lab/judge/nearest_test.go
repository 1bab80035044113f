package judge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Few tries find a value whose effect grows smoothly, and no tries are spent on a jump or on
// what does nothing.
func TestTheNearestValueIsFoundInFewTries(t *testing.T) {
	way := path{first: 0.2, last: 10, value: func(d float64) float64 { return d }}
	for name, c := range map[string]struct {
		effect        func(d float64) float64
		wanted        float64
		most          int
		value, within float64
	}{
		"proportional":       {func(d float64) float64 { return 3 * d }, 2, 3, 2.0 / 3, 0.04},
		"cubic":              {func(d float64) float64 { return d * d * d }, 5, 6, math.Cbrt(5), 0.04},
		"exponential":        {func(d float64) float64 { return math.Expm1(3 * d) }, 10, 6, math.Log(11) / 3, 0.04},
		"below the first":    {func(d float64) float64 { return 1000 * d }, 1, 4, 0.001, 0.0001},
		"a threshold":        {func(d float64) float64 { return max(0, d-1) }, 1, 7, 2, 0.1},
		"a jump":             {func(d float64) float64 { return map[bool]float64{d < 3: 0.1, d >= 3: 90}[true] }, 2, 13, 0.2, 0},
		"without harm":       {func(float64) float64 { return 0 }, 2, 6, 10, 0},
		"too much at first":  {func(d float64) float64 { return map[bool]float64{d < 0.1: 20 * d, d >= 0.1: math.Inf(1)}[true] }, 1, 6, 0.05, 0.003},
		"too much beyond it": {func(d float64) float64 { return map[bool]float64{d < 3: d, d >= 3: math.Inf(1)}[true] }, 2.9, 10, 2.9, 0.15},
	} {
		t.Run(name, func(t *testing.T) {
			tried := 0
			got, err := nearest(way, c.wanted, func(v float64) (float64, error) {
				tried++
				return c.effect(v), nil
			})
			require.NoError(t, err)
			assert.InDelta(t, c.value, got.value, c.within)
			assert.LessOrEqual(t, tried, c.most)
			assert.InDelta(t, c.effect(got.value), got.got, 0)
		})
	}
	got, err := nearest(way, 1, func(float64) (float64, error) { return math.Inf(1), nil })
	require.NoError(t, err)
	assert.True(t, math.IsInf(got.got, 1))
}
