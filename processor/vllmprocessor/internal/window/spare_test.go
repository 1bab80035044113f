package window

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A huge batch must not keep its memory in an update that is used for ever.
func TestAnUpdateKeepsTheListsOfUsualBatchesOnly(t *testing.T) {
	t.Parallel()
	for size, kept := range map[int]bool{1000: true, 100_000: false} {
		u := &update{groups: make([]*Group, 1), series: make([]*series, size)}
		u.empty()
		assert.Empty(t, u.series)
		assert.Equal(t, kept, cap(u.series) == size, "%d samples", size)
		assert.LessOrEqual(t, cap(u.series), maxSpare)
	}
}
