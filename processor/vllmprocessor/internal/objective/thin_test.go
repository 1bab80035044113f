package objective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What a state loses when it is thinned is nothing that a window still reaches.
func TestAThinnedStateReadsAsTheWholeOne(t *testing.T) {
	t.Parallel()
	o := ttft()
	windows := Windows{Burn: []time.Duration{time.Hour, 6 * time.Hour}, Budget: 30 * 24 * time.Hour}
	start := int64(1_700_000_000) * int64(time.Second)
	whole := NewTracker(&o, windows, start)
	at := start
	for range 2000 {
		next := at + int64(30*time.Second)
		whole.Add(at, next, Counts{Valid: 3, Good: 2})
		at = next
	}
	state := whole.Encode()
	for _, later := range []time.Duration{0, 20 * time.Minute, 3 * time.Hour, 8 * time.Hour, 29*24*time.Hour + 12*time.Hour, 40 * 24 * time.Hour} {
		now := at + int64(later)
		thin := Thin(state, now)
		assert.LessOrEqual(t, len(thin), len(state))
		one, other := NewTracker(&o, windows, now), NewTracker(&o, windows, now)
		assert.Equal(t, one.Restore(state, now), other.Restore(thin, now), later)
		for i := range windows.Burn {
			assert.Equal(t, one.Burn(i, now), other.Burn(i, now), later)
		}
		assert.Equal(t, one.Budget(now), other.Budget(now), later)
	}
	assert.Equal(t, []byte("no state"), Thin([]byte("no state"), at))
}
