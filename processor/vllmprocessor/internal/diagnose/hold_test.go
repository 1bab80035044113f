package diagnose

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Where no window has two scrapes nothing can be judged, and the log says why;
// with the first scrape of an engine it is too early to say so.
func TestScrapesThatAreFarApartAreReported(t *testing.T) {
	t.Parallel()
	s, c := &State{}, settings(2)
	e := &engine{baseline: signal.NewBaseline(), saved: saved{First: int64(time.Hour)}, began: int64(time.Hour)}
	take := func(at int64, elapsed float64, raw Condition) (news []Transition) {
		s.transitions = s.transitions[:0]
		e.last, e.at = healthyReading(at), at
		e.last.elapsed = elapsed
		e.report(c, s, raw, at, &symptoms{})
		for _, t := range s.transitions {
			if t.News() {
				news = append(news, t)
			}
		}
		return news
	}
	assert.Empty(t, take(int64(time.Hour), 0, Unknown))
	s.engines = []*engine{e}
	s.reportUnreachable(c, int64(time.Hour+15*time.Second))
	assert.Equal(t, JustSeen, e.Reported.Because, "what cannot be read is not a scrape")
	news := take(int64(time.Hour+150*time.Second), 0, Unknown)
	if assert.Len(t, news, 1) {
		assert.Contains(t, news[0].To.Because.Sentence(), "more than two windows apart")
	}
	assert.Empty(t, take(int64(time.Hour+300*time.Second), 0, Unknown), "once")
	news = take(int64(time.Hour+315*time.Second), 15, Healthy)
	assert.Len(t, news, 1)
	assert.Equal(t, Healthy, e.Reported.Condition, "the end of unknown is reported at once")
}

// A notice outlasts a scrape that failed, and the first one after a gap.
func TestANoticeOutlastsAScrapeThatFailed(t *testing.T) {
	t.Parallel()
	s, c := &State{}, settings(2)
	e := &engine{baseline: learned(10)}
	s.engines = []*engine{e}
	take := func(n int) {
		r := healthyReading(int64(time.Hour) + int64(n)*scrape)
		r.Signals[signal.ArrivalRate] = 3
		e.last, e.at = r, r.At
		e.report(c, s, Healthy, r.At, &symptoms{})
	}
	take(0)
	take(1)
	assert.True(t, e.Reported.Notices[WorkloadShift])
	s.transitions = nil
	s.reportUnreachable(c, int64(time.Hour)+2*scrape)
	take(3)
	e.last = healthyReading(int64(time.Hour) + 20*scrape)
	e.last.elapsed, e.last.FirstTokens, e.last.Signals[signal.ArrivalRate] = 0, math.NaN(), math.NaN()
	e.report(c, s, Unknown, e.last.At, &symptoms{})
	take(21)
	assert.True(t, e.Reported.Notices[WorkloadShift])
	assert.Empty(t, s.transitions, "nothing has changed")
}

// A server is lost after some scrapes, and since the first of them.
func TestALostServerIsSoSinceItsFirstFailedScrape(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(10, answers(1), serves("0"))
	r.scrape(answers(0))
	failed := r.at
	r.minutes(1, answers(0))
	last := r.changes[len(r.changes)-1]
	assert.Equal(t, Unreachable, last.To.Condition)
	assert.Equal(t, failed, last.Since)
}

// A line says since when it has been so: of harm, since it began, whatever its condition has been since.
func TestATransitionSaysSinceWhen(t *testing.T) {
	t.Parallel()
	minute := int64(time.Minute)
	for name, test := range map[string]struct {
		e    engine
		want int64
	}{
		"harm that has got worse":                 {engine{saved: saved{Reported: Verdict{Condition: Critical}, Raw: Critical, RawSince: 8 * minute, Bad: true, BadSince: 5 * minute}}, 5 * minute},
		"waits that showed before the window did": {engine{saved: saved{Reported: Verdict{Condition: Degraded}, Bad: true, BadSince: 5 * minute, Felt: felt{clearSince: 4 * minute}}}, 4 * minute},
		"a standstill":                            {engine{saved: saved{Reported: Verdict{Condition: Stalled}, Bad: true, BadSince: 9 * minute}, last: reading{Window: signal.Window{Signals: signal.Values{signal.Standstill: 90}}}}, 10*minute - 90*int64(time.Second)},
		"the end of harm":                         {engine{saved: saved{Reported: Verdict{Condition: Healthy}, Raw: Healthy, RawSince: 7 * minute, BadSince: 7 * minute}}, 7 * minute},
		"what no reading alone has shown":         {engine{saved: saved{Reported: Verdict{Condition: Unknown}, Raw: Degraded, RawSince: 7 * minute}}, 10 * minute},
	} {
		test.e.last.At = 10 * minute
		assert.Equal(t, test.want, test.e.shownSince(), name)
	}
}
