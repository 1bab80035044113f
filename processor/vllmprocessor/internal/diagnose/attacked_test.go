package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// few is an engine with so many first tokens since the scrape before, and so many gaps.
func few(first, seconds, gaps, gap float64) scraped {
	s := serves("0")
	s.gauges[input.Running] = 1
	s.counts = map[input.Metric]float64{input.PromptTokens: 500 * first, input.GenerationTokens: first + gaps}
	s.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": first, "error": 0}}
	s.observed = map[input.Metric][2]float64{
		input.TimeToFirstToken: {first, seconds}, input.InterTokenLatency: {gaps, gap}, input.RequestGenerationTokens: {first, 100},
	}
	return s
}

// every scrapes after so long, with the work of serves for that time.
func (r *rig) every(d time.Duration, seconds float64) {
	x := d.Seconds() / 15
	s := few(15*x, seconds, 1485*x, 0.02)
	r.at += int64(d)
	r.part(answers(1), s)
}

func (r *rig) later(d time.Duration, s scraped) {
	r.at += int64(d)
	r.part(answers(1), s)
}

func (r *rig) was(c Condition) bool {
	for _, x := range r.changes {
		if x.To.Condition == c && (&input.Group{Attributes: x.Attributes}).Engine() == "0" {
			return true
		}
	}
	return false
}

func TestANewProcessWithMoreFilesHasNoHiddenRequests(t *testing.T) {
	r := follow(t, perRequest)
	r.stay(8, 35)
	r.restart()
	r.stay(60, 60)
	assert.False(t, r.was(Stalled))
}

func TestScrapesMoreThanAMinuteApart(t *testing.T) {
	for _, d := range []time.Duration{61 * time.Second, 90 * time.Second} {
		r := newRig(t)
		for range 30 {
			r.every(d, 0.1)
		}
		for range 20 {
			r.every(d, 20)
		}
		assert.True(t, r.was(Critical), d)
	}
}

func TestGreatHarmBecomesUsual(t *testing.T) {
	r := usually(t)
	r.minutes(180, answers(1), lately(15, 8, 0)) // relearn_after is one hour.
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}

func TestAfterRelearningNothingIsFelt(t *testing.T) {
	r := usually(t)
	for range 4 * 180 {
		s := serves("0")
		s.observed[input.InterTokenLatency] = [2]float64{1485, 0.25}
		r.scrape(answers(1), s)
	}
	assert.Equal(t, "unknown healthy degraded healthy", r.conditions("0"))
}

func TestDesertedAfterHarmIsIdle(t *testing.T) {
	r := newRig(t)
	r.version = "0.9.2"
	for range 40 {
		r.scrape(answered(15), serves("0"))
	}
	for range 8 {
		r.scrape(answered(15), lately(15, 8, 5))
	}
	gone := standsStill("0") // The gauges froze with 2 that run and 5 that wait.
	gone.gauges[input.Waiting] = 5
	gone.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 0, "error": 0}}
	r.scrape(answered(7), gone)
	r.minutes(120, answered(0), gone)
	assert.Equal(t, deserted, r.engine("0").still)
	assert.Equal(t, Idle, r.verdict("0").Condition)
}

func TestOneSlowRequestIsNotCritical(t *testing.T) {
	before := bounds
	bounds = []float64{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 7.5, 10, 20, 40} // As vLLM has them.
	defer func() { bounds = before }()
	for _, prompt := range []float64{500, 100_000} {
		r := newRig(t)
		d := 5 * time.Second
		for range 240 {
			r.every(d, 0.1)
		}
		for range 6 {
			r.later(d, rests("0"))
		}
		r.later(d, few(2, 0.1, 198, 0.02))
		r.later(d, rests("0"))
		long := few(1, 20, 99, 0.02) // The only slow one of three.
		long.counts[input.PromptTokens] = prompt
		r.later(d, long)
		for range 400 {
			r.later(d, rests("0"))
		}
		assert.False(t, r.was(Critical), prompt)
		assert.Equal(t, Idle, r.verdict("0").Condition, prompt)
	}
}

func TestOneLongGapIsNotCritical(t *testing.T) {
	r := usually(t)
	for range 40 {
		r.scrape(answers(1), few(1, 0.1, 40, 0.02))
	}
	r.scrape(answers(1), few(0, 0, 1, 15))
	for range 20 {
		r.scrape(answers(1), few(1, 0.1, 40, 0.02))
	}
	assert.False(t, r.was(Critical))
}

func TestDeferredRequestsDoNotWait(t *testing.T) {
	r := usually(t)
	for n := range 60 {
		s := few(float64(n%2), 0.1, 99, 0.02)
		s.gauges[input.Waiting] = 6 // As sessions that wait for input of their clients.
		s.labelled[input.WaitingByReason] = map[string]float64{"deferred": 6, "capacity": 0}
		r.scrape(answers(1), s)
	}
	assert.False(t, r.was(Critical))
}

func TestABurstThatIsOverWithAnObjective(t *testing.T) {
	r := usually(t)
	r.settings.Objectives = []Objective{{Name: "ttft", Input: input.TimeToFirstToken, Threshold: 1, Target: 0.9, Matches: func(string) bool { return true }}}
	r.scrape(answers(1), lately(15, 0.1, 60))
	r.scrape(answers(1), lately(60, 7, 0))
	r.minutes(3, answers(1), serves("0"))
	assert.False(t, r.was(Critical)) // Without the objective it is not.
}

func TestGapsAloneEndHarm(t *testing.T) {
	r := usually(t)
	streams := func(gap float64) scraped {
		s := few(0, 0, 1485, gap)
		s.counts[input.PromptTokens] = 0
		return s
	}
	r.minutes(2, answers(1), streams(0.02))
	r.minutes(2, answers(1), streams(0.4))
	r.minutes(60, answers(1), streams(0.02))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}

func TestWarmRequestsAfterSleep(t *testing.T) {
	r := usually(t)
	r.minutes(5, answers(1), sleeps())
	r.scrape(answers(1), few(3, 0.7, 99, 0.02))
	r.minutes(10, answers(1), rests("0"))
	assert.False(t, r.was(Degraded))
	assert.Equal(t, Idle, r.verdict("0").Condition)
}

func TestAllClearBeforeABaseline(t *testing.T) {
	r := newRig(t)
	for range 6 {
		r.scrape(answers(1), lately(15, 35, 3))
	}
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	r.minutes(1.25, answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}

func TestAHangThatLasts(t *testing.T) {
	r := follow(t, perRequest)
	r.stay(8, 35)
	r.stay(60, 45)
	assert.Equal(t, Stalled, r.verdict("0").Condition)
}

func TestConnectionsThatAreOpenedAhead(t *testing.T) {
	r := follow(t, perRequest)
	r.stay(8, 35)
	r.stay(20, 45) // A balancer opens ten connections and sends nothing: that looks like a hang.
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	for n := range 8 { // Requests that are served end it.
		r.scrape(connected(float64(1+n%3), float64(46+n%3))...)
	}
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	r.stay(20, 45)
	assert.NotEqual(t, Stalled, r.verdict("0").Condition, "these connections are known now")
}

func TestAHiddenHangSurvivesTheCollector(t *testing.T) {
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.follow(perRequest)
	r.stay(8, 35)
	r.stay(16, 80)
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.restartCollector(r.state.Keeper.(*store))
	r.stay(20, 80)
	assert.Equal(t, Stalled, r.verdict("0").Condition)
}

func TestOneReadingWithoutFiles(t *testing.T) {
	r := follow(t, perRequest)
	r.stay(8, 35)
	r.stay(16, 80)
	lacks := hangs(0, 80)
	delete(lacks[0].gauges, input.OpenFiles)
	r.scrape(lacks...) // Late, perhaps.
	r.scrape(lacks...) // Gone.
	r.stay(20, 80)
	assert.Equal(t, Stalled, r.verdict("0").Condition)
}

func TestOneHugeQueue(t *testing.T) {
	r := usually(t)
	r.scrape(answers(1), lately(15, 0.1, 1e300))
	r.minutes(5, answers(1), serves("0"))
	assert.GreaterOrEqual(t, r.after(Critical, func(n int) scraped { return lately(15, 0.1, float64(40+20*n)) }), 0.0)
}
