package diagnose

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A batch that is sent again, or a part of it that does not say whether the scrape
// succeeded, is not another scrape.
func TestAScrapeIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := &server{begun: true, failure: "not_found"}
	for range 5 {
		s.count(settings(2), 0, 100)
		s.count(settings(2), math.NaN(), 200)
	}
	assert.Equal(t, 1, s.blocked)
	assert.Equal(t, Unknown, s.unread(settings(2), 0))
	s.count(settings(2), 0, 200)
	s.count(settings(2), 0, 300)
	assert.Equal(t, Unreachable, s.unread(settings(2), 0))
	s.count(settings(2), 1, 400)
	assert.True(t, s.read)
	assert.Zero(t, s.blocked)
}
