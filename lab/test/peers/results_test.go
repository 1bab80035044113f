package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	assert.Equal(t, spread{2, 1, 9}, newSpread([]float64{9, 1, 2}))
	assert.Equal(t, spread{1.5, 1, 2}, newSpread([]float64{2, 1}))
	assert.Equal(t, spread{}, newSpread(nil))
}

// The exponent of y = 3 x^0.8 is 0.8.
func TestTheExponentOfAPower(t *testing.T) {
	var x, y []float64
	for _, size := range []float64{100, 1000, 3000} {
		x, y = append(x, math.Log(size)), append(y, math.Log(3*math.Pow(size, 0.8)))
	}
	assert.InDelta(t, 0.8, slope(x, y), 1e-9)
}

func TestALoadThatIsMeasuredAgainReplacesItsRuns(t *testing.T) {
	r := results{{Scenario: "a", Variant: oursName, CPU: 2e6}, {Scenario: "a", Variant: peerName, CPU: 8e6}, {Scenario: "b", Variant: oursName, CPU: 1e6}}
	newer := r.replace(results{{Scenario: "a", Variant: oursName, CPU: 5e6}})
	assert.Len(t, newer, 2)
	assert.InDelta(t, 5, newer.least("a", oursName, milliseconds), 1e-9)
}

// The processor time of a scrape of each of ten times as many targets is half as much: the total is five times as much.
func TestGrowthIsOfAllTargets(t *testing.T) {
	r := results{
		{Scenario: "100 targets x 10 s", Variant: oursProcessorName, CPU: 2e6, Peak: 50e6},
		{Scenario: many, Variant: oursProcessorName, CPU: 1e6, Peak: 200e6},
	}
	x, y := r.grown(0, milliseconds, false)
	assert.Equal(t, []float64{100, 1000}, x)
	assert.Equal(t, []float64{200, 1000}, y)
	_, y = r.grown(0, megabytes, true)
	assert.Equal(t, []float64{50, 200}, y)
}

func TestTheBarIsForEachLoadThatBothHaveRun(t *testing.T) {
	// The least rounds are 1 and 6: six times.
	r := results{
		{Scenario: often, Variant: peerName, Round: 1, CPU: 8e6},
		{Scenario: often, Variant: oursProcessorName, Round: 1, CPU: 2e6},
		{Scenario: often, Variant: peerName, Round: 2, CPU: 6e6},
		{Scenario: often, Variant: oursProcessorName, Round: 2, CPU: 1e6},
		{Scenario: many, Variant: peerName, Round: 1, CPU: 9e6},
		{Scenario: many, Variant: oursProcessorName, Round: 1, CPU: 1e6},
	}
	require.NoError(t, r.bar(0))
	require.NoError(t, r.bar(6))
	err := r.bar(7)
	require.ErrorContains(t, err, often+": 6.0 times is below the bar of 7")
	require.NotContains(t, err.Error(), many)
	require.ErrorContains(t, r.bar(10), many)
	require.ErrorContains(t, r.of(often, oursName).bar(1), "nothing to compare")
	require.NoError(t, results{}.bar(0), "without a bar nothing need be compared")
}
