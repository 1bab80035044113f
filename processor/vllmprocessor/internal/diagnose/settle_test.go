package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Where no window has two scrapes nothing can be judged, and somebody is told why;
// with the first scrape of an engine it is too early to say so.
func TestScrapesThatAreFarApartAreTold(t *testing.T) {
	t.Parallel()
	s, c := &State{}, settings(2)
	e := &engine{baseline: newBaseline(), first: int64(time.Hour)}
	take := func(at int64, elapsed float64, raw Condition) (news []Transition) {
		s.transitions = s.transitions[:0]
		e.last, e.at = healthyReading(at), at
		e.last.elapsed = elapsed
		e.settle(c, s, raw, at, &symptoms{})
		for _, t := range s.transitions {
			if t.News() {
				news = append(news, t)
			}
		}
		return news
	}
	assert.Empty(t, take(int64(time.Hour), 0, Unknown))
	s.engines = []*engine{e}
	s.unreachable(c, int64(time.Hour+15*time.Second))
	assert.Equal(t, JustSeen, e.told.Because, "what cannot be read is no scrape")
	news := take(int64(time.Hour+150*time.Second), 0, Unknown)
	if assert.Len(t, news, 1) {
		assert.Contains(t, news[0].To.Because.Sentence(), "between two scrapes")
	}
	assert.Empty(t, take(int64(time.Hour+300*time.Second), 0, Unknown), "once")
	news = take(int64(time.Hour+315*time.Second), 15, Healthy)
	assert.Len(t, news, 1)
	assert.Equal(t, Healthy, e.told.Condition, "what is known at last is told at once")
}
