package judge

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The first time is kept to a millisecond, the distances to 10 ms, without adding up errors.
func TestTimesAreKeptInSteps(t *testing.T) {
	kept := Times{1.2344}
	for i := range 100 {
		kept = append(kept, 1.2344+0.0137*float64(i+1))
	}
	raw, err := json.Marshal(kept)
	require.NoError(t, err)
	var got Times
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Len(t, got, len(kept))
	assert.InDelta(t, 1.234, got[0], 1e-9)
	for i := range kept {
		assert.InDelta(t, kept[i], got[i], 0.0061, "number %d", i)
		assert.True(t, i == 0 || got[i] >= got[i-1], "number %d", i)
	}
	raw, err = json.Marshal(Times{0.5, 0.5, 0.514, 0.516})
	require.NoError(t, err)
	// 14 ms are 10 ms, and the 6 ms from there on are 10 ms.
	assert.JSONEq(t, "[500, 0, 10, 10]", string(raw))
	assert.Error(t, json.Unmarshal([]byte(`["1"]`), &got))
	raw, err = json.Marshal(Sent{At: 1, End: 2, How: Failed})
	require.NoError(t, err)
	assert.NotContains(t, string(raw), "tokens")
}
