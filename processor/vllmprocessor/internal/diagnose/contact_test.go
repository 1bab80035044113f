package diagnose

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// lostAfter plays scrapes of a server: "+" succeeds, "-" fails. It returns for each whether the
// server is lost then: "!" where it is.
func lostAfter(interval time.Duration, outcomes string) string {
	c, s := contact{}, settings(2)
	var lost strings.Builder
	for n, o := range outcomes {
		c.observe(s, o == '-', int64(time.Hour)+int64(n)*int64(interval))
		mark := "."
		if c.lost {
			mark = "!"
		}
		lost.WriteString(mark)
	}
	return lost.String()
}

// With the default window of a minute, an outage is reported 15 to 60 s after the first failed
// scrape, and its end with the second scrape that succeeds.
func TestAnOutageIsFoundAfterTwoScrapesAndTwentySeconds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		interval time.Duration
		outcomes string
		want     string
	}{
		{5 * time.Second, "++++++++++++-------+++", "................!!!!.."},
		{15 * time.Second, "++++----+++", ".....!!!!.."},
		{30 * time.Second, "++++----+++", ".....!!!!.."},
		{60 * time.Second, "++++----+++", ".....!!!!.."},
	} {
		assert.Equal(t, test.want, lostAfter(test.interval, test.outcomes), test.interval)
	}
}

// One scrape that fails is never reported, at whatever interval; nor are failures of less than
// half of the scrapes.
func TestOneFailedScrapeIsNoOutage(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute} {
		for _, outcomes := range []string{"-", "-++++", "++++-++++", "+++-+++-+++-+++", "-+++++++++++-++++"} {
			assert.NotContains(t, lostAfter(interval, outcomes), "!", "%s each %s", outcomes, interval)
		}
	}
	assert.NotContains(t, lostAfter(5*time.Second, "++++++++++++----++++++++----+++"), "!", "15 s each")
}

// A page that alternates between answering and hanging is unreachable all the time: after
// at most one end, it stays until nothing has failed for a window, or four scrapes.
func TestAPageThatAlternatesIsLost(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute} {
		for _, period := range []string{"-+", "--++", "--+", "-++--+"} {
			got := lostAfter(interval, "++++++++++++"+strings.Repeat(period, 40)+"++++++++++++")
			assert.LessOrEqual(t, strings.Count(got, "!."), 2, "%s each %s: %s", period, interval, got)
			assert.Regexp(t, "!{140,}|!{60,}\\.*$", got, "%s each %s", period, interval)
			assert.Equal(t, byte('.'), got[len(got)-1], "%s each %s: it ends", period, interval)
		}
	}
	// It fails for 45 s and answers for 45 s: only the first answers end it.
	assert.Equal(t, ".....!!!.!!!!!!!!!", lostAfter(15*time.Second, "++++---++---+++---"))
}

// Two outages with an hour between them are two: the second one ends as soon as the first.
func TestALaterOutageIsAnotherOne(t *testing.T) {
	t.Parallel()
	got := lostAfter(15*time.Second, "++++----"+strings.Repeat("+", 240)+"----++++")
	assert.Equal(t, ".....!!!!"+strings.Repeat(".", 240)+"!!!!...", got)
}

// An engine is unreachable, and well again, when its server is, whatever the hold.
func TestAnEngineIsUnreachableWhileItsServerIsLost(t *testing.T) {
	t.Parallel()
	for _, hold := range []int{1, 2, 5} {
		r := newRig(t)
		r.settings = settings(hold)
		r.minutes(12, answers(1), serves("0"), serves("1"))
		var got []Condition
		for _, o := range "-+--+-++++++" {
			if o == '-' {
				r.scrape(answers(0))
			} else {
				r.scrape(answers(1), serves("0"), serves("1"))
			}
			assert.Equal(t, *r.verdict("0"), *r.verdict("1"))
			got = append(got, r.verdict("0").Condition)
		}
		assert.Equal(t, repeat(Healthy, 2, Unreachable, 5, Healthy, 5), got, hold)
		r.minutes(1, answers(0))
		assert.Equal(t, Unreachable, r.verdict("1").Condition)
	}
}

// A failed scrape is not a reading: the hold of another condition goes on.
func TestAFailedScrapeChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	unhealthy := answers(1)
	unhealthy.gauges[input.Healthy] = 0
	for n := range 5 {
		require.Equal(t, Healthy, r.verdict("0").Condition, n)
		if n == 2 {
			r.scrape(answers(0))
			continue
		}
		r.scrape(unhealthy, serves("0"))
	}
	assert.Equal(t, Failing, r.verdict("0").Condition, "a minute after /health failed first")
}

// A server that is being deleted drains, whether it answers or not.
func TestALostServerThatIsDeletedDrains(t *testing.T) {
	t.Parallel()
	deleted := func(up float64) scraped {
		s := answers(up)
		s.gauges[input.PodTerminating] = 1
		return s
	}
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	for _, up := range []float64{0, 0, 0, 1, 0, 1, 1, 1, 0, 0, 0, 0} {
		if up == 1 {
			r.scrape(deleted(1), serves("0"))
		} else {
			r.scrape(deleted(0))
		}
		assert.Equal(t, Draining, r.verdict("0").Condition)
	}
}

// What is kept of a server is bounded, however often it is scraped, and a clock that was set
// back makes no outage.
func TestTheContactIsBounded(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	c, s := contact{}, settings(2)
	at := int64(time.Hour)
	for range 10_000 {
		at += int64(random.IntN(3000)) * int64(time.Millisecond) / 10
		c.observe(s, random.IntN(2) == 0, at)
		require.LessOrEqual(t, len(c.recent), mostScrapes)
	}
	c = contact{}
	c.observe(s, true, at)
	c.observe(s, true, at-int64(time.Hour))
	assert.False(t, c.lost)
	assert.Len(t, c.recent, 1)
}

// A server that two collectors scrape is scraped as often as one of them does.
func TestTheIntervalOfTwoCollectors(t *testing.T) {
	t.Parallel()
	c, s := contact{}, settings(2)
	for n, at := range []int64{100, 101, 115, 116, 130, 131, 140, 141} {
		c.observe(s, false, at*int64(time.Second))
		assert.Equal(t, []int64{0, 1, 14, 14, 14, 14, 14, 9}[n]*int64(time.Second), c.interval(), "scrape %d", n)
	}
	c.observe(s, false, int64(100*time.Second))
	assert.Zero(t, c.interval(), "the clock was set back")
}
