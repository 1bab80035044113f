package plot

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The axes of a linear chart begin at 0 and have round marks.
func TestALinearChartHasRoomForAllPoints(t *testing.T) {
	picture, err := Linear("title", "x", "y", []Line{{Name: "line", Color: "#000000", Points: [][2]float64{{0, 0}, {10, 40}, {20, 160}}}})
	require.NoError(t, err)
	wellFormed(t, picture)
	// 648 by 300 pixels from 78, 78 on; the axes end at 20 and 160.
	assert.Contains(t, string(picture), "points=\"\n78.0,378.0\n402.0,303.0\n726.0,78.0\n\"")
	assert.Contains(t, string(picture), `<text x="726.0" y="397" text-anchor="middle">20</text>`)
	assert.Contains(t, string(picture), ">160</text>")
	_, err = Linear("title", "x", "y", []Line{{Name: "line", Points: [][2]float64{{0, -1}}}})
	assert.ErrorContains(t, err, "lies outside the axes")
}

func TestMarksAreRoundAndNotTooMany(t *testing.T) {
	for most, want := range map[float64]float64{1: 1, 7: 7, 99: 100, 101: 120, 300.5: 350, 0.03: 0.03, 0: 1} {
		a := upTo("x", most)
		assert.InDelta(t, want, a.most, 1e-9, "the end of an axis for %v", most)
		assert.GreaterOrEqual(t, len(a.marks), 5, "%v", most)
		assert.LessOrEqual(t, len(a.marks), 11, "%v", most)
	}
}
