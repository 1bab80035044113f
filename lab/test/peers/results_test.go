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

// Ratios are of the same round, and those to nothing are left out.
func TestRatiosAreOfTheSameRound(t *testing.T) {
	r := results{
		{Scenario: "a", Variant: peerName, Round: 1, CPU: 8e6},
		{Scenario: "a", Variant: oursName, Round: 1, CPU: 2e6},
		{Scenario: "a", Variant: peerName, Round: 2, CPU: 6e6},
		{Scenario: "a", Variant: oursName, Round: 2, CPU: 3e6},
		{Scenario: "b", Variant: oursName, Round: 1, CPU: 1e6},
	}
	ours, peers := r.of("a", oursName).each(milliseconds), r.of("a", peerName).each(milliseconds)
	assert.Equal(t, []float64{4, 2}, ratios(peers, ours))
	assert.Equal(t, []float64{3}, ratios([]float64{3, 5}, []float64{1, 0}))
	newer := r.replace(results{{Scenario: "a", Variant: oursName, Round: 1, CPU: 5e6}})
	assert.Len(t, newer, 2, "a load that is measured again replaces all of its runs")
}

func TestTheBarIsForEachLoadThatBothHaveRun(t *testing.T) {
	// Of "100 targets x 1 s" the ratios are 4, 2 and 9, of "1 target x 100 ms" it is 8.
	first, second := "100 targets x 1 s", "1 target x 100 ms"
	r := results{
		{Scenario: first, Variant: peerName, Round: 1, CPU: 8e6},
		{Scenario: first, Variant: oursName, Round: 1, CPU: 2e6},
		{Scenario: first, Variant: peerName, Round: 2, CPU: 6e6},
		{Scenario: first, Variant: oursName, Round: 2, CPU: 3e6},
		{Scenario: first, Variant: peerName, Round: 3, CPU: 9e6},
		{Scenario: first, Variant: oursName, Round: 3, CPU: 1e6},
		{Scenario: second, Variant: peerName, Round: 1, CPU: 8e6},
		{Scenario: second, Variant: oursName, Round: 1, CPU: 1e6},
	}
	require.NoError(t, r.bar(0))
	require.NoError(t, r.bar(4))
	err := r.bar(5)
	require.ErrorContains(t, err, first+": 4.0 times is below the bar of 5")
	require.NotContains(t, err.Error(), second)
	require.ErrorContains(t, r.bar(9), second)
	require.ErrorContains(t, r.of(first, oursName).bar(1), "nothing to compare")
	require.NoError(t, results{}.bar(0), "without a bar nothing need be compared")
}
