package identity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func TestSizeIsAboutThatOfTheText(t *testing.T) {
	m := pcommon.NewMap()
	require.NoError(t, m.FromRaw(map[string]any{"abc": "12345", "list": []any{"12", "3456"}, "map": map[string]any{"k": "vvv"}, "b": []byte{1, 2}}))
	// abc 8, list 4 + 2 x 1 + 6, map 3 + 4, b 1 + 2
	assert.Equal(t, 8+12+7+3, Size(m))
}

func TestSizeOfNestedValues(t *testing.T) {
	for levels, unlimited := range map[int]bool{1: false, maxLevels - 1: false, maxLevels: true, 800_000: true} {
		lists, maps := pcommon.NewMap(), pcommon.NewMap()
		list, m := lists.PutEmpty("a"), maps
		for range levels {
			list, m = list.SetEmptySlice().AppendEmpty(), m.PutEmptyMap("a")
		}
		m.PutEmpty("a")
		assert.Equal(t, unlimited, Size(lists) == Unlimited, levels)
		assert.Equal(t, unlimited, Size(maps) == Unlimited, levels)
	}
}
