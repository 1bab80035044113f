package archive

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStatesComeBackByKey(t *testing.T) {
	t.Parallel()
	states := map[string][]byte{"a": {}, "a/ttft": make([]byte, 300), "b/ü": {1, 2, 3}}
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
		"": {1}, string(make([]byte, maxKey+1)): {1}, "b": make([]byte, MaxSize+1), "c": {2},
	}))
	require.NoError(t, err)
	assert.Equal(t, map[string][]byte{"c": {2}}, got)
}

// A storage can return other bytes than it took: after a crash of the machine a part
// can be zeros.
func TestAnyChangeIsNoticed(t *testing.T) {
	t.Parallel()
	data := Encode(map[string][]byte{"a": {1, 2}, "b": {3, 4}})
	for i := range data {
		for _, other := range []byte{0, data[i] ^ 1, data[i] ^ 0x80} {
			if other == data[i] {
				continue
			}
			changed := slices.Clone(data)
			changed[i] = other
			_, err := Decode(changed)
			require.ErrorIs(t, err, ErrDamaged, "byte %d is %d instead of %d", i, other, data[i])
		}
		{
			_, err := Decode(data[:i])
			require.ErrorIs(t, err, ErrDamaged, "the first %d bytes", i)
			_, err = Decode(append(slices.Clone(data[:i]), make([]byte, len(data)-i)...))
			require.ErrorIs(t, err, ErrDamaged, "zeros after %d bytes", i)
		}
	}
	_, err := Decode(append(slices.Clone(data), 0))
	require.ErrorIs(t, err, ErrDamaged)
	for _, garbage := range [][]byte{nil, {0}, {0, 0, 0}, {0, 0, 0, 0, 0}, {'A', 1, 0, 5, 3, 0, 0, 0, 0}} {
		got, err := Decode(garbage)
		require.ErrorIs(t, err, ErrDamaged)
		assert.Empty(t, got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode(map[string][]byte{"a": {1, 2}, "b": {3, 4}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		states, err := Decode(data)
		again, errAgain := Decode(Encode(states))
		if errAgain != nil || len(again) != len(states) {
			t.Fatalf("%d states became %d: %v, %v", len(states), len(again), err, errAgain)
		}
	})
}
