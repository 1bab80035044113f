package diagnose

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// After a standstill, a sleep or a start, the time of its end is known until the engine is
// reported as healthy or idle for a second time. An unreachable engine may have worked.
func TestTheEndOfAStandstillIsRememberedUntilTheEngineIsHealthy(t *testing.T) {
	t.Parallel()
	for c := range NumConditions {
		for _, then := range []Condition{Healthy, Idle, Degraded} {
			if c == then {
				continue
			}
			s, e := &State{}, &engine{baseline: signal.NewBaseline()}
			at := int64(time.Hour)
			step := func(raw Condition) bool {
				at += scrape
				e.last = healthyReading(at)
				e.report(settings(2), s, raw, at, &symptoms{})
				return e.Reported.Condition == raw
			}
			for range 10 {
				step(c)
			}
			require.Equal(t, c, e.Reported.Condition)
			assert.Zero(t, e.Resumed, c)
			for !step(then) {
				assert.Zero(t, e.Resumed, "%s is still reported", c)
			}
			want := int64(0)
			if c == Stalled || c == Asleep || c == Starting {
				want = at
			}
			assert.Equal(t, want, e.Resumed, "%s, then %s", c, then)
			step(then)
			if then != Degraded {
				want = 0
			}
			assert.Equal(t, want, e.Resumed, "%s, then %s twice", c, then)
		}
	}
	// From one standstill into another is not an end.
	s, e := &State{}, &engine{baseline: signal.NewBaseline()}
	for n, raw := range repeat(Asleep, 10, Starting, 10, Stalled, 10) {
		at := int64(time.Hour) + int64(n)*scrape
		e.last = healthyReading(at)
		e.report(settings(2), s, raw, at, &symptoms{})
		assert.Zero(t, e.Resumed, n)
	}
}

// Only an engine of which nothing shows work is idle.
func TestAnEngineThatShowsAnyWorkIsNotIdle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(r *reading)
		want   Condition
	}{
		"nothing":               {func(*reading) {}, Idle},
		"a request runs":        {func(r *reading) { r.runningNow = 1 }, Healthy},
		"a request waits":       {func(r *reading) { r.waitingNow = 1 }, Healthy},
		"one ran in the window": {func(r *reading) { r.Signals[signal.Running] = 0.1 }, Healthy},
		"one got a first token": {func(r *reading) { r.FirstTokens = 1 }, Healthy},
		"tokens were generated": {func(r *reading) { r.Generation = 1 }, Healthy},
		"nothing is known of it": {func(r *reading) {
			r.Signals[signal.Running], r.FirstTokens, r.Generation = math.NaN(), math.NaN(), math.NaN()
		}, Idle},
		"no window yet": {func(r *reading) { r.elapsed = 0 }, Unknown},
		"no latencies":  {func(r *reading) { r.runningNow, r.lacks = 1, true }, Unknown},
	} {
		r := healthyReading(int64(time.Hour))
		r.runningNow, r.waitingNow, r.Signals[signal.Running], r.FirstTokens, r.Generation = 0, 0, 0, 0, 0
		test.change(&r)
		e := &engine{baseline: signal.NewBaseline()}
		e.Progress.observe(&r)
		assert.Equal(t, test.want, e.judge(settings(2), &r, &symptoms{}), name)
	}
}

// An engine that reports one latency can be judged by it.
func TestOneLatencyIsEnoughToJudge(t *testing.T) {
	t.Parallel()
	for _, left := range []input.Metric{input.TimeToFirstToken, input.InterTokenLatency} {
		r := newRig(t)
		s := serves("0")
		for _, in := range []input.Metric{input.TimeToFirstToken, input.InterTokenLatency} {
			if in != left {
				delete(s.observed, in)
			}
		}
		r.minutes(3, answers(1), s)
		assert.False(t, r.engine("0").last.lacks, left)
		assert.Equal(t, Healthy, r.verdict("0").Condition, left)
	}
}

// A notice ends with the condition that it belongs to, and a scrape without evidence starts
// none and ends none.
func TestANoticeBelongsToItsCondition(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		condition     Condition
		was           [2]bool // frozen gauges, shift of the work
		frozen, shift bool
	}{
		"none before, healthy":   {Healthy, [2]bool{}, false, false},
		"none before, idle":      {Idle, [2]bool{}, false, false},
		"both before, healthy":   {Healthy, [2]bool{true, true}, false, true},
		"both before, idle":      {Idle, [2]bool{true, true}, true, false},
		"both before, degraded":  {Degraded, [2]bool{true, true}, false, false},
		"frozen before, healthy": {Healthy, [2]bool{true, false}, false, false},
		"shift before, idle":     {Idle, [2]bool{false, true}, false, false},
	} {
		for _, gap := range []bool{false, true} {
			e := &engine{baseline: learned(10), last: healthyReading(int64(time.Hour))}
			e.last.Signals[signal.ArrivalRate] = 5
			if gap {
				e.last.elapsed = 0
			} else {
				e.last.Signals[signal.Running] = math.NaN()
			}
			e.Reported.Condition = test.condition
			e.Reported.Notices[FrozenGauges], e.Reported.Notices[WorkloadShift] = test.was[0], test.was[1]
			e.notices()
			assert.Equal(t, test.frozen, e.Reported.Notices[FrozenGauges], name)
			assert.Equal(t, test.shift, e.Reported.Notices[WorkloadShift], name)
		}
	}
}

// A shift of the work takes a baseline, three requests in the window and twice or half of
// what is usual. It is reported until it is clearly below that.
func TestAShiftOfTheWorkNeedsItsEvidence(t *testing.T) {
	t.Parallel()
	double := math.Exp(shifted)
	for name, test := range map[string]struct {
		change func(e *engine)
		was    bool
		want   bool
	}{
		"twice as much":            {func(*engine) {}, false, true},
		"half as much":             {func(e *engine) { e.last.Signals[signal.ArrivalRate] = 1 / double / 1.05 }, false, true},
		"a bit less than twice":    {func(e *engine) { e.last.Signals[signal.ArrivalRate] = double / 1.05 }, false, false},
		"still nearly twice":       {func(e *engine) { e.last.Signals[signal.ArrivalRate] = double / 1.05 }, true, true},
		"still, but as usual":      {func(e *engine) { e.last.Signals[signal.ArrivalRate] = 1 }, true, false},
		"three requests":           {func(e *engine) { e.last.FirstTokens = leastObjectiveSeen }, false, true},
		"two requests":             {func(e *engine) { e.last.FirstTokens = leastObjectiveSeen - 1 }, false, false},
		"nothing is usual yet":     {func(e *engine) { e.baseline = signal.NewBaseline() }, false, false},
		"all have ended":           {func(e *engine) { e.last.recent, e.last.runningNow = recent{}, 0 }, true, false},
		"not in an idle engine":    {func(e *engine) { e.Reported.Condition = Idle }, false, false},
		"not in a degraded engine": {func(e *engine) { e.Reported.Condition = Degraded }, false, false},
	} {
		e := &engine{baseline: learned(10), last: healthyReading(int64(time.Hour))}
		e.last.Signals[signal.ArrivalRate] = double * 1.05
		e.Reported.Condition, e.Reported.Notices[WorkloadShift] = Healthy, test.was
		test.change(e)
		e.notices()
		assert.Equal(t, test.want, e.Reported.Notices[WorkloadShift], name)
	}
}

// The detail of a demand beyond the capacity is what limits the engine.
func TestTheDetailOfDemandIsWhatLimitsTheEngine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(r *reading)
		want   string
	}{
		"nothing waits":                     {func(*reading) {}, "unknown"},
		"requests wait":                     {func(r *reading) { r.Signals[signal.Waiting] = 1 }, "seqs"},
		"less than one waits":               {func(r *reading) { r.Signals[signal.Waiting] = 0.9 }, "unknown"},
		"those that wait are deferred":      {func(r *reading) { r.Signals[signal.Waiting], r.Signals[signal.Deferred] = 1, 1 }, "unknown"},
		"the cache is full":                 {func(r *reading) { r.Signals[signal.KVUtilization] = 0.99 }, "kv"},
		"requests are preempted":            {func(r *reading) { r.Signals[signal.Preemptions] = 1 }, "kv"},
		"steps are mostly prompts":          {func(r *reading) { r.Signals[signal.Waiting], r.Computed = 1, 1e5 }, "tokens"},
		"prompts, but nothing waits":        {func(r *reading) { r.Computed = 1e5 }, "unknown"},
		"the use of the cache is not known": {func(r *reading) { r.Signals[signal.Waiting], r.Signals[signal.KVUtilization] = 1, math.NaN() }, "unknown"},
	} {
		e := &engine{baseline: learned(10), last: healthyReading(int64(time.Hour))}
		test.change(&e.last)
		assert.Equal(t, test.want, e.detail(DemandExceedsCapacity), name)
	}
}

// What is learned waits for the hold, one reading of each window, so that the first readings
// of a harm or of a change are known for what they are before they are learned.
func TestReadingsWaitForTheHoldBeforeTheyAreLearned(t *testing.T) {
	t.Parallel()
	s, c := &State{}, settings(2)
	e := &engine{baseline: learned(10)}
	began := int64(time.Hour)
	for n := range 20 {
		r := healthyReading(began + int64(n)*scrape)
		e.learn(c, s, &r, &symptoms{}, Healthy)
		// The first reading is learned with the eighth scrape after it, when it is two windows
		// old, and another one with each fourth from then on.
		learnedNow := 0
		if n >= 8 {
			learnedNow = (n-8)/4 + 1
		}
		assert.Equal(t, 10+learnedNow, e.baseline.Windows, "scrape %d", n)
		assert.Len(t, e.unlearned, n/4+1-learnedNow, "scrape %d", n)
	}
	// However long harm lasts, no more readings wait than for the hold.
	for n := range 80 {
		r := healthyReading(began + int64(20+n)*scrape)
		e.learn(c, s, &r, &symptoms{firstToken: true, suspect: true}, Degraded)
		assert.LessOrEqual(t, len(e.unlearned), 3)
	}
	// An engine that cannot be judged ends the wait: what it was before is not known to be
	// healthy.
	r := healthyReading(began + 100*scrape)
	e.learn(c, s, &r, &symptoms{}, Stalled)
	assert.Empty(t, e.unlearned)
}

// An engine that does not serve teaches nothing.
func TestOnlyAnEngineThatServesIsLearned(t *testing.T) {
	t.Parallel()
	for c := range NumConditions {
		for _, windows := range []int{0, 10} {
			e := &engine{baseline: signal.NewBaseline()}
			if windows > 0 {
				e.baseline = learned(windows)
			}
			r := healthyReading(int64(time.Hour))
			e.learn(settings(2), &State{}, &r, &symptoms{}, c)
			serves := c == Healthy || c == Degraded || c == Critical
			if windows > 0 {
				assert.Equal(t, windows, e.baseline.Windows, c)
				assert.Equal(t, serves, len(e.unlearned) == 1, c)
				continue
			}
		}
	}
}

// What an engine was before the collector restarted is that of the engine with the same
// attributes, and never later than now.
func TestAnEngineIsFoundAgainByItsAttributes(t *testing.T) {
	t.Parallel()
	engine := func(number string) []input.Attribute { return []input.Attribute{{Name: "engine", Value: number}} }
	s := &server{restored: []savedEngine{{Attributes: engine("0"), First: 10}, {Attributes: engine("1"), First: 20}, {Attributes: engine("2")}}}
	assert.Equal(t, int64(10), s.first(engine("0"), 100))
	assert.Equal(t, int64(20), s.first(engine("1"), 100))
	assert.Equal(t, int64(15), s.first(engine("1"), 15), "the clock was set back")
	assert.Equal(t, int64(100), s.first(engine("2"), 100), "no time was saved")
	assert.Equal(t, int64(100), s.first(engine("3"), 100))
}

// The contact with a server goes on after a restart of the collector, from the first of the
// scrapes that failed.
func TestTheContactWithARestoredServerGoesOn(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		saved []savedEngine
		up    float64
		want  bool
	}{
		"was well":                   {[]savedEngine{{}}, 0, false},
		"failed once":                {[]savedEngine{{Since: 40}, {Since: 40}}, 0, true},
		"was lost":                   {[]savedEngine{{}, {Unreachable: true}}, 0, true},
		"has come back":              {[]savedEngine{{Since: 40, Unreachable: true}}, 1, false},
		"failed after now, by clock": {[]savedEngine{{Since: 400 * int64(time.Second)}}, 0, false},
	} {
		s := &server{read: true, restored: test.saved}
		s.contact.resume(test.saved)
		s.count(settings(2), test.up, 100*int64(time.Second))
		assert.Equal(t, test.want, s.certain(Unreachable), name)
	}
}

// The server as a whole is not one of its engines, wherever it stands in the list.
func TestAServerIsNoneOfItsEngines(t *testing.T) {
	t.Parallel()
	s := seen(nil, []input.Attribute{{Name: "engine", Value: "0"}}, []input.Attribute{{Name: "engine", Value: "1"}})
	s.engines[0].number = ServerOnly
	for i := range s.engines {
		s.engines[i].baseline = learned(10)
	}
	saved, sound := decodeServer(s.encodeServer())
	require.True(t, sound)
	assert.Len(t, saved.Engines, 2)
	members, baselines := 0, 0
	for m := range s.Members() {
		assert.NotEmpty(t, m.Attributes)
		members++
	}
	s.Learned(func(kind Kept, attributes []input.Attribute, _ []byte) {
		if kind == Baseline {
			assert.NotEmpty(t, attributes)
			baselines++
		}
	})
	assert.Equal(t, []int{2, 2}, []int{members, baselines})
	for range s.Members() {
		break // The caller may stop.
	}
}

// As many engines as fit are saved: with attributes of 100 bytes, about a hundred.
func TestASavedServerHasTheEnginesThatFit(t *testing.T) {
	t.Parallel()
	var engines [][]input.Attribute
	for range 2000 {
		engines = append(engines, []input.Attribute{{Name: "model_name", Value: string(make([]byte, 100))}})
	}
	for i := range engines {
		for b := range 100 {
			engines[i][0].Value = engines[i][0].Value[:b] + "m" + engines[i][0].Value[b+1:]
		}
	}
	saved, sound := decodeServer(seen(engines...).encodeServer())
	require.True(t, sound)
	// Each counts 128 bytes, and twice 110 bytes and 32 for its attribute: 412.
	assert.Len(t, saved.Engines, (32<<10)/412)
}

// What is damaged, of another version or without a time is not a server.
func TestOnlyAWholeServerIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"server":1,"at":1}`: true, `{"server":1,"at":0}`: false, `{"server":1,"at":-1}`: false, `{"server":2,"at":1}`: false,
		`{"server":1,"at":1`: false, `{"server":1,"at":1,"more":1}`: false, ``: false,
	} {
		_, sound := decodeServer([]byte(text))
		assert.Equal(t, want, sound, text)
	}
}

// Only a server that was never read is certain to be unreachable after three refusals.
func TestOnlyRefusalsFromTheBeginningAreCertain(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		condition Condition
		read      bool
		blocked   int
		want      bool
	}{
		{Unreachable, false, 3, true},
		{Unreachable, false, 2, false},
		{Unreachable, true, 3, false}, // One that was read has rules of its own.
		{Starting, false, 3, false},
		{Failing, true, 9, false},
	} {
		assert.Equal(t, test.want, (&server{read: test.read, blocked: test.blocked}).certain(test.condition), test)
	}
}

// The primary cause changes only where another one explains clearly more, so that two
// causes of about the same size do not take turns.
func TestAPrimaryCauseIsOvertakenOnlyByAClearlyLargerOne(t *testing.T) {
	t.Parallel()
	for share, want := range map[float64]Cause{0.3: SlowSteps, 0.41: SlowSteps, 0.49: SlowSteps, 0.51: DecodeLoad} {
		e := &engine{baseline: learned(10), last: healthyReading(int64(time.Hour))}
		before := Verdict{Condition: Degraded, Explained: true, Primary: SlowSteps}
		e.Reported = before
		e.Shares[SlowSteps], e.Shares[DecodeLoad] = 0.4, share // a quarter more is 0.5
		e.causes(settings(2), &before, &symptoms{tokenGap: true})
		assert.True(t, e.Reported.Explained)
		assert.Equal(t, want, e.Reported.Primary, "a share of %g", share)
	}
	// Without a primary cause the largest becomes it at once.
	e := &engine{baseline: learned(10), last: healthyReading(int64(time.Hour))}
	e.Shares[SlowSteps], e.Shares[DecodeLoad] = 0.45, 0.46
	e.causes(settings(2), &Verdict{Condition: Healthy}, &symptoms{tokenGap: true})
	assert.Equal(t, DecodeLoad, e.Reported.Primary)
}

// The queue of a standstill may take longer than startingFor. While it becomes shorter, nobody asks for more than the engine can do.
func TestTheQueueOfAStandstillIsItsAftermathWhileItBecomesShorter(t *testing.T) {
	t.Parallel()
	const since, late = int64(time.Hour), int64(time.Hour + startingFor)
	for name, c := range map[string]struct {
		at, queued      int64
		served, arrives float64
		want            bool
	}{
		"soon after it":           {late - 1, 0, 1, 9, true},
		"it becomes shorter":      {late, since, 9, 1, true},
		"it should be gone":       {int64(time.Hour + leavesFor), since, 9, 1, false},
		"it becomes longer":       {late, since, 1, 9, false},
		"there was none":          {late, 0, 9, 1, false},
		"it is a later one":       {late, since + 1, 9, 1, false},
		"the rates are not known": {late, since, math.NaN(), math.NaN(), false},
	} {
		r := healthyReading(c.at)
		r.Signals[signal.FirstTokenRate], r.Signals[signal.ArrivalRate] = c.served, c.arrives
		e := &engine{}
		e.Backlog.Since = c.queued
		assert.Equal(t, c.want, e.aftermath(&r, since), name)
		e.wellAt = since + 1
		assert.False(t, e.aftermath(&r, since), "%s, after it had served as usual again", name)
		assert.False(t, e.aftermath(&r, 0), "%s, without a standstill", name)
	}
}
