package states

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatesComeBackByKey(t *testing.T) {
	t.Parallel()
	states := map[string][]byte{"": {}, "a/ttft": make([]byte, 300), "b/ü": {1, 2, 3}}
	got, err := Decode(Encode(states))
	require.NoError(t, err)
	assert.Equal(t, states, got)
	got, err = Decode(Encode(nil))
	require.NoError(t, err)
	assert.Empty(t, got)
}

func TestWhatIsTooLongIsLeftOut(t *testing.T) {
	t.Parallel()
	got, err := Decode(Encode(map[string][]byte{
		string(make([]byte, maxKey+1)): {1}, "b": make([]byte, MaxSize+1), "c": {2},
	}))
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"c": {2}}, got)
}

func TestWhatEndsEarlyGivesWhatStandsBefore(t *testing.T) {
	t.Parallel()
	data := Encode(map[string][]byte{"a": {1, 2}, "b": {3, 4}})
	got, err := Decode(data[:len(data)-1])
	require.ErrorIs(t, err, ErrDamaged)
	assert.Equal(t, map[string][]byte{"a": {1, 2}}, got)
	for _, garbage := range [][]byte{nil, {'A'}, {'A', 2}, {'B', 1, 0, 0}} {
		got, err = Decode(garbage)
		require.ErrorIs(t, err, ErrDamaged)
		assert.Empty(t, got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(map[string][]byte{"a": {1, 2}, "b": {3, 4}}))
	f.Add([]byte{'A', 1, 255, 255, 255, 255, 15})
	f.Fuzz(func(t *testing.T, data []byte) {
		states, err := Decode(data)
		again, errAgain := Decode(Encode(states))
		if errAgain != nil || len(again) != len(states) {
			t.Fatalf("%d states became %d: %v, %v", len(states), len(again), err, errAgain)
		}
	})
}
