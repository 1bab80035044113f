package observed

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestObservationsOnABoundCountUpToItOrBelowIt(t *testing.T) {
	h := NewHistogram([]float64{1, 2, 5})
	h.Observe(1)
	h.ObserveN(2, 3)
	h.Observe(4)
	h.Observe(9)
	h.ObserveN(100, 0)
	for _, c := range []struct {
		name      string
		bounds    []float64
		exclusive bool
		want      []uint64
	}{
		{"at most", []float64{1, 2, 5}, false, []uint64{1, 4, 5}},
		{"below, as Ray counts", []float64{1, 2, 5}, true, []uint64{0, 1, 5}},
		{"some of the bounds", []float64{2}, false, []uint64{4}},
		{"first and last", []float64{1, 5}, false, []uint64{1, 5}},
	} {
		got, err := h.Cumulative(c.bounds, c.exclusive)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, got, c.name)
	}
	assert.Equal(t, uint64(6), h.Count)
	assert.InDelta(t, 1+3*2+4+9, h.Sum, 0)
}

func TestABoundThatIsNotKeptIsAnError(t *testing.T) {
	h := NewHistogram([]float64{1, 2})
	for _, bounds := range [][]float64{{1.5}, {0.5}, {1, 3}} {
		_, err := h.Cumulative(bounds, false)
		assert.ErrorContains(t, err, "is not kept")
	}
}

func TestAddingHistogramsAddsEverything(t *testing.T) {
	a, b := NewHistogram([]float64{1, 2}), NewHistogram([]float64{1, 2})
	a.Observe(1)
	b.ObserveN(2, 2)
	a.Add(b)
	got, err := a.Cumulative([]float64{1, 2}, false)
	require.NoError(t, err)
	assert.Equal(t, []uint64{1, 3}, got)
	assert.InDelta(t, 5, a.Sum, 0)
	assert.Equal(t, uint64(3), a.Count)
}
