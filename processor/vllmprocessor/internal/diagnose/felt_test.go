package diagnose

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// The wait so far of those that wait is that of a queue in its order, whatever arrives and is served,
// and whoever gives up: up to the time between two scrapes.
func TestTheWaitOfThoseThatWaitIsThatOfAQueue(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		var w waits
		var queue []int // When each arrived, in seconds.
		arrived := 0
		every := 1 + random.IntN(15)
		for at := range 900 {
			for range random.IntN(5) {
				queue = append(queue, at)
				arrived++
			}
			// Served, or gone: the oldest first. For a minute nobody is.
			if stands := at/60%5 == 2; !stands {
				queue = queue[min(len(queue), random.IntN(5)):]
			}
			if at%every != 0 {
				continue
			}
			w.add(int64(at)*int64(time.Second), float64(arrived), float64(len(queue)))
			limit := float64(random.IntN(60))
			sum, over := 0.0, 0.0
			for _, since := range queue {
				sum += float64(at - since)
				if float64(at-since) > limit {
					over++
				}
			}
			waiting, seconds, late := w.now(int64(at)*int64(time.Second), limit)
			assert.InDelta(t, float64(len(queue)), waiting, 1e-9)
			// Samples of a long queue are further apart than the scrapes.
			apart := every + (at-append(queue, at)[0])/(mostSamples/2)
			assert.LessOrEqual(t, seconds, sum+1e-9)
			assert.GreaterOrEqual(t, seconds, sum-float64(len(queue)*apart)-1e-9)
			assert.LessOrEqual(t, late, over)
			assert.GreaterOrEqual(t, late, over-float64(5*(apart+1)))
			assert.LessOrEqual(t, len(w.recent), mostSamples)
		}
	}
}

// lately is an engine that gives so many requests their first token after so many seconds, and has
// others that wait.
func lately(first, seconds, waiting float64) scraped {
	s := serves("0")
	s.gauges[input.Waiting] = waiting
	s.observed[input.TimeToFirstToken] = [2]float64{first, seconds}
	return s
}

// after scrapes until the engine is reported in a condition, and returns after how many seconds; -1
// where that does not happen within ten minutes.
func (r *rig) after(c Condition, next func(n int) scraped) float64 {
	r.t.Helper()
	for n := range 40 {
		for _, change := range r.scrape(answers(1), next(n)) {
			if change.To.Condition == c {
				return float64(n) * time.Duration(scrape).Seconds()
			}
		}
	}
	return -1
}

func usually(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	for range 40 {
		r.scrape(answers(1), serves("0"))
	}
	return r
}

// A wait of many times the usual is harm, whatever its reason.
func TestGreatHarmIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		next func(n int) scraped
		want Condition
		// within is in seconds.
		within float64
	}{
		"first tokens come late":         {func(int) scraped { return lately(15, 6, 0) }, Critical, 45},
		"the queue grows":                {func(n int) scraped { return lately(15, 0.1, float64(40+20*n)) }, Critical, 60},
		"nobody gets a token, many wait": {func(int) scraped { s := standsStill("0"); s.gauges[input.Waiting] = 9; return s }, Stalled, 45},
		"first tokens take six times":    {func(int) scraped { return lately(15, 0.7, 0) }, Degraded, 90},
		"tokens take twenty times": {func(int) scraped {
			s := serves("0")
			s.observed[input.InterTokenLatency] = [2]float64{1485, 0.4}
			return s
		}, Critical, 45},
		"tokens take six times": {func(int) scraped {
			s := serves("0")
			s.observed[input.InterTokenLatency] = [2]float64{1485, 0.12}
			return s
		}, Degraded, 90},
		"a burst drains in half a minute": {func(n int) scraped { return lately(15, 0.1, max(0, 60-float64(30*n))) }, Critical, -1},
		"a wait of 4 s is not great":      {func(int) scraped { return lately(15, 4, 0) }, Critical, -1},
		"two are too few": {func(int) scraped {
			s := lately(1, 30, 0)
			s.observed[input.InterTokenLatency] = [2]float64{10, 0.02}
			return s
		}, Critical, -1},
		"one of fifteen waits for long": {func(int) scraped { return lately(15, 0.3, 0) }, Critical, -1},
	} {
		r := usually(t)
		got := r.after(test.want, test.next)
		if test.within < 0 {
			assert.InDelta(t, -1, got, 0, name)
			continue
		}
		if test.want == Critical {
			// It is reported as harm first, and pages if it lasts.
			assert.LessOrEqual(t, got, test.within+30, name)
			got = usually(t).after(Degraded, test.next)
		}
		assert.LessOrEqual(t, got, test.within, name)
		assert.GreaterOrEqual(t, got, 0.0, name)
	}
}

// Nobody gets a token for a minute: the mean of those that got one does not rise, the wait does, by a second
// each second. Of 15 requests with 0.1 s each and 5 that wait since the scrape before it is their mean.
func TestTheWaitIsThatOfThoseThatWaitAsWell(t *testing.T) {
	t.Parallel()
	r := usually(t)
	wait := func() float64 { seconds, _ := r.state.engines[0].Felt.wait(&r.state.engines[0].last); return seconds }
	assert.InDelta(t, 0.1, wait(), 0.001)
	r.scrape(answers(1), lately(15, 0.1, 5))
	r.scrape(answers(1), lately(15, 0.1, 5))
	assert.InDelta(t, (30*0.1+5*0)/35, wait(), 0.05, "who waits has come since the scrape before")
	stands := standsStill("0")
	stands.gauges[input.Waiting] = 5
	for range 4 {
		r.scrape(answers(1), stands)
	}
	assert.InDelta(t, 60, wait(), 1)
}

// Half of the answers are errors: nobody has to wait for that. Fewer have the hold.
func TestManyErrorsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	for wrong, within := range map[float64][2]float64{60: {15, 30}, 25: {60, 150}} {
		r := usually(t)
		failed := -1.0
		for n := range 12 {
			a := answers(1)
			http(&a, wrong, 100-wrong)
			for _, change := range r.scrape(a, serves("0")) {
				if change.To.Condition == Failing && failed < 0 {
					failed = float64(n) * 15
				}
			}
		}
		assert.GreaterOrEqual(t, failed, within[0], "%g %%", wrong)
		assert.LessOrEqual(t, failed, within[1], "%g %%", wrong)
	}
	r := usually(t)
	a := answers(1)
	http(&a, 1, 1)
	for range 3 {
		r.scrape(a, serves("0"))
	}
	assert.NotEqual(t, Failing, r.verdict("0").Condition, "four answers in half a minute are too few to be failing at once")
}

// Four requests that have waited for 4 s in all wait for 1 s each.
func TestABurstIsOverOnceThoseThatWaitDoNotWaitForLong(t *testing.T) {
	t.Parallel()
	r := healthyReading(int64(time.Hour))
	r.served, r.servedAfter = 15, 0.1
	for limit, want := range map[float64]bool{0.5: false, 2: true} {
		var f felt
		f.waits.add(r.At-int64(time.Second), 4, 4)
		assert.Equal(t, want, f.drained(&r, limit), limit)
	}
}

// At an all-clear a latency may be the documented limit where no usual is known, and no more.
func TestTheLimitOfAnAllClearIsStillAsUsual(t *testing.T) {
	t.Parallel()
	w := newWard(t, signal.NewBaseline())
	for first, want := range map[float64]bool{defaultFirstToken: true, defaultFirstToken + 1e-9: false} {
		r := healthyReading(w.at)
		r.recent.first = first
		assert.Equal(t, want, w.Felt.over(w.settings, w.baseline, w.view, &r), first)
	}
}

// The all-clear needs requests that are served as usual. It needs no more than half a minute of them.
func TestTheAllClearNeedsService(t *testing.T) {
	t.Parallel()
	r := usually(t)
	assert.GreaterOrEqual(t, r.after(Critical, func(int) scraped { return lately(15, 8, 20) }), 0.0)
	assert.InDelta(t, -1, r.after(Healthy, func(int) scraped { return lately(15, 1.5, 0) }), 0, "still late")
	assert.LessOrEqual(t, r.after(Healthy, func(int) scraped { return serves("0") }), 60.0)
}

// Harm that comes and goes does not open and close an alert each time.
func TestHarmThatComesBackEndsLater(t *testing.T) {
	t.Parallel()
	r := usually(t)
	late := func(int) scraped { return lately(15, 8, 20) }
	well := func(int) scraped { return serves("0") }
	require.GreaterOrEqual(t, r.after(Critical, late), 0.0)
	first := r.after(Healthy, well)
	require.LessOrEqual(t, first, 60.0)
	for range 4 {
		r.scrape(answers(1), well(0))
	}
	require.GreaterOrEqual(t, r.after(Critical, late), 0.0)
	again := r.after(Healthy, well)
	assert.GreaterOrEqual(t, again, first+15)
	assert.LessOrEqual(t, again, 90.0)
	for range 40 {
		r.scrape(answers(1), well(0))
	}
	require.GreaterOrEqual(t, r.after(Critical, late), 0.0)
	assert.InDelta(t, first, r.after(Healthy, well), 0, "ten minutes later it is another harm")
}

// With an objective great harm is three times its threshold, and what is usual does not matter.
func TestGreatHarmIsThatOfTheObjective(t *testing.T) {
	t.Parallel()
	r := usually(t)
	r.settings.Objectives = []Objective{{Name: "ttft", Input: input.TimeToFirstToken, Threshold: 4, Target: 0.5, Matches: func(string) bool { return true }}}
	assert.InDelta(t, -1, r.after(Critical, func(int) scraped { return lately(15, 10, 0) }), 0)
	assert.LessOrEqual(t, r.after(Critical, func(int) scraped { return lately(15, 13, 0) }), 60.0)
}

// What users ask for warns nobody, also where they wait for room, until they wait five times as long as usual. That
// warns until the harm has ended.
func TestLongerWorkAloneWarnsNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), finishes("0"))
	long := finishes("0")
	for _, in := range []input.Metric{input.PromptTokens, input.PrefixCacheQueries, input.PrefixCacheHits} {
		long.counts[in] *= 5
	}
	long.observed[input.RequestPromptTokens] = [2]float64{15, 2500}
	long.observed[input.TimeToFirstToken] = [2]float64{15, 0.45}
	long.observed[input.PrefillTime] = [2]float64{15, 0.4}
	severity := func() [2]any { v := r.verdict("0"); return [2]any{v.Condition, v.Severity} }
	r.minutes(8, answers(1), long)
	assert.Equal(t, [2]any{Degraded, 1}, severity())
	for m := range r.state.Members() {
		assert.False(t, m.Harmed(), "nor a pool")
	}
	long.gauges[input.Waiting] = 4
	r.minutes(2, answers(1), long)
	assert.Equal(t, [2]any{Degraded, 1}, severity())
	long.observed[input.TimeToFirstToken] = [2]float64{15, 3}
	r.minutes(2, answers(1), long)
	assert.Equal(t, [2]any{Degraded, 2}, severity())
	long.gauges[input.Waiting] = 0
	long.observed[input.TimeToFirstToken] = [2]float64{15, 0.45}
	r.minutes(2, answers(1), long)
	assert.Equal(t, [2]any{Degraded, 2}, severity(), "an alert does not come and go")
}

// Without anything to compare with, a wait of half a minute is harm for anybody.
func TestALongWaitIsHarmFromTheFirstMinute(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	got := r.after(Degraded, func(int) scraped { return lately(15, 31, 3) })
	assert.GreaterOrEqual(t, got, 0.0)
	assert.LessOrEqual(t, got, 120.0)
}

// Longer prompts take longer. Without a queue that is not harm of this kind before it is great.
func TestLongerPromptsMayTakeLonger(t *testing.T) {
	t.Parallel()
	b := learned(10)
	r := healthyReading(int64(time.Hour))
	assert.InDelta(t, 0.5, firstLimits(settings(2), b, "m", &r).clear, 1e-9)
	r.Signals[signal.PromptTokens] *= 6
	longer := firstLimits(settings(2), b, "m", &r)
	assert.InDelta(t, 3, longer.clear, 1e-9)
	assert.InDelta(t, 5, longer.great, 0)
	r.waitingNow = 2
	assert.InDelta(t, 0.5, firstLimits(settings(2), b, "m", &r).clear, 1e-9)
}

// A collector that has not seen a server for a while does not know for how long requests have waited.
func TestAfterAGapNobodyHasWaited(t *testing.T) {
	t.Parallel()
	var w waits
	r := healthyReading(int64(time.Hour))
	r.waitingNow, r.served = 5, math.NaN()
	w.observe(&r)
	r.At += int64(time.Minute)
	r.served = 0
	w.observe(&r)
	_, seconds, _ := w.now(r.At, 0)
	assert.InDelta(t, 300, seconds, 1e-9)
	r.At += int64(time.Hour)
	r.served = math.NaN()
	w.observe(&r)
	_, seconds, _ = w.now(r.At, 0)
	assert.InDelta(t, 0, seconds, 1e-9)
}

// Without a request nobody knows whether an engine serves again.
func TestWithoutARequestNothingIsOver(t *testing.T) {
	t.Parallel()
	r := usually(t)
	assert.GreaterOrEqual(t, r.after(Critical, func(int) scraped { return lately(15, 8, 20) }), 0.0)
	r.minutes(5, answers(1), rests("0"))
	assert.Equal(t, Unknown, r.verdict("0").Condition)
	assert.Equal(t, NoRequestSince, r.verdict("0").Because)
	r.minutes(20, answers(1), rests("0"))
	assert.Equal(t, Unknown, r.verdict("0").Condition)
	r.minutes(10, answers(1), rests("0"))
	assert.Equal(t, Idle, r.verdict("0").Condition)
}

// Harm that has become small is not critical any more.
func TestWhatIsLeftOfGreatHarmIsNotCritical(t *testing.T) {
	t.Parallel()
	r := usually(t)
	assert.GreaterOrEqual(t, r.after(Critical, func(int) scraped { return lately(15, 8, 0) }), 0.0)
	r.minutes(4, answers(1), lately(15, 0.3, 0))
	assert.NotEqual(t, Critical, r.verdict("0").Condition)
	r.minutes(4, answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}
