package engine

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// No server takes more sequences than its limit or its cache allows: a curve that waits for
// more of them would never end.
func TestTheCurvesOfEachPresetEndAtItsLimits(t *testing.T) {
	models := Models()
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m := models[name]
		points, err := itlByBatch(m, 1)
		require.NoError(t, err, name)
		most := points[len(points)-1].X
		require.GreaterOrEqual(t, most, 256.0, name)
		if m.MaxSeqs > 0 {
			require.LessOrEqual(t, most, float64(m.MaxSeqs), name)
		}
		points, err = ttftByPrompt(m, 1)
		require.NoError(t, err, name)
		require.Less(t, points[len(points)-1].X, float64(m.Blocks*16), name)
	}
}
