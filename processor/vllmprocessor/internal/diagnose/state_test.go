package diagnose

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const scrape = int64(15 * time.Second)

func settings(hold int) *Settings {
	return &Settings{Window: time.Minute, Hold: hold, RelearnAfter: time.Hour, StartTimeout: 10 * time.Minute, MaxStaleness: 5 * time.Minute}
}

// healthyReading is one of an engine that serves a request a second.
func healthyReading(at int64) reading {
	r := reading{Window: signal.Window{Signals: signal.Unknown(), At: at}, elapsed: 60, runningNow: 2, waitingNow: 0, awake: 1, fromServer: fromServer{healthy: 1}}
	s := &r.Signals
	s[signal.Running], s[signal.KVUtilization], s[signal.Waiting], s[signal.Deferred] = 2, 0.1, 0, 0
	s[signal.TimeToFirstToken], s[signal.StepTime], s[signal.InterTokenLatency] = 0.1, 0.02, 0.02
	s[signal.FirstTokenRate], s[signal.ArrivalRate] = 1, 1
	s[signal.PromptTokens], s[signal.ComputedTokens], s[signal.OutputTokens] = 500, 500, 100
	s[signal.QueueWait], s[signal.Preemptions] = 0, 0
	r.FirstTokens, r.gaps, r.finished = 60, 5940, 60
	r.served, r.recent = 15, recent{30, 0.1, 2970, 0.02, recently}
	r.Generation, r.Computed = 100, 500
	return r
}

// learned is a baseline of some healthy windows.
func learned(windows int) *signal.Baseline {
	b := signal.NewBaseline()
	for n := range max(windows, 5) {
		r := healthyReading(int64(n+1) * int64(time.Minute))
		b.Learn(&r.Window, time.Minute, &signal.Set{})
	}
	return b
}

// reported feeds an engine with what each scrape alone shows, and returns what is reported
// after each.
func reported(hold int, raw []Condition) (all []Condition) {
	s := &State{}
	e := &engine{baseline: signal.NewBaseline()}
	for n, condition := range raw {
		at := int64(n+1) * scrape
		e.last = healthyReading(at)
		e.last.awake = truth(condition != Asleep)
		e.report(settings(hold), s, condition, at, &symptoms{})
		all = append(all, e.Reported.Condition)
	}
	return all
}

// repeat is so many scrapes of a condition, four of which are a window.
func repeat(parts ...any) (all []Condition) {
	for i := 0; i < len(parts); i += 2 {
		for range parts[i+1].(int) {
			all = append(all, parts[i].(Condition))
		}
	}
	return all
}

// A window is over the minute before its end. So a state that holds for hold
// windows is reported hold-1 minutes after the first window that shows it: 4 scrapes
// for each.
func TestAStateIsReportedAfterTheHold(t *testing.T) {
	t.Parallel()
	for hold, after := range map[int]int{1: 0, 2: 4, 3: 8} {
		for _, condition := range []Condition{Degraded, Failing, Starting, Unreachable, Idle} {
			begins := after
			if condition == Idle {
				begins = after / 2 // It is not harm.
			}
			got := reported(hold, repeat(Healthy, 10, condition, 20, Healthy, 20))
			assert.Equal(t, repeat(Healthy, 10+begins, condition, 20+after-begins, Healthy, 20-after), got, "%s with hold %d", condition, hold)
		}
	}
}

// Unknown ends at once, except by harm.
func TestUnknownEndsAtOnce(t *testing.T) {
	t.Parallel()
	assert.Equal(t, repeat(Unknown, 5, Healthy, 5), reported(2, repeat(Unknown, 5, Healthy, 5)))
	assert.Equal(t, repeat(Unknown, 9, Degraded, 1), reported(2, repeat(Unknown, 5, Degraded, 5)))
}

// Standing still takes a minute and three scrapes by itself.
func TestAStallIsReportedAtOnceAndHeldAfterwards(t *testing.T) {
	t.Parallel()
	for hold, after := range map[int]int{1: 0, 2: 4, 3: 8} {
		got := reported(hold, repeat(Healthy, 10, Stalled, 3, Healthy, 20))
		assert.Equal(t, repeat(Healthy, 10, Stalled, 3+after, Healthy, 20-after), got, hold)
	}
}

// A server says itself that it sleeps, and that it is awake.
func TestSleepIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	all := repeat(Healthy, 10, Asleep, 3, Healthy, 5, Degraded, 20, Asleep, 2)
	assert.Equal(t, repeat(Healthy, 10, Asleep, 3, Healthy, 9, Degraded, 16, Asleep, 2), reported(2, all))
	assert.Equal(t, repeat(Healthy, 10, Asleep, 9, Degraded, 4), reported(2, repeat(Healthy, 10, Asleep, 5, Degraded, 8)))
}

// What does not last is not reported.
func TestABlipIsNotReported(t *testing.T) {
	t.Parallel()
	for hold, longest := range map[int]int{2: 4, 3: 8} {
		got := reported(hold, repeat(Healthy, 10, Degraded, longest, Healthy, 10))
		assert.Equal(t, repeat(Healthy, 20+longest), got, hold)
		got = reported(hold, repeat(Healthy, 10, Degraded, 20, Healthy, longest, Degraded, 10))
		assert.Equal(t, repeat(Healthy, 10+longest, Degraded, 20+10), got, hold)
	}
}

// One harm that turns into another is harm all the time.
func TestOneHarmAfterAnotherIsReported(t *testing.T) {
	t.Parallel()
	got := reported(2, repeat(Healthy, 10, Failing, 3, Degraded, 3, Failing, 3))
	assert.Equal(t, repeat(Healthy, 14, Degraded, 5), got)
}

// Whatever single windows show, the beginning and the end of harm
// are more than hold-1 windows apart, except that standing still, sleep and draining are reported at once;
// and neither is reported while the newest window shows the contrary.
func TestNothingFlaps(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		hold := 2 + random.IntN(2)
		var raw []Condition
		for len(raw) < 400 {
			condition := Condition(random.IntN(int(NumConditions)))
			for range 1 + random.IntN(12) {
				raw = append(raw, condition)
			}
		}
		got := reported(hold, raw)
		harmful := func(c Condition) bool { return conditions[c].Severity >= 2 }
		crossed, crossings := 0, 0
		for n := 1; n < len(got); n++ {
			if harmful(got[n]) == harmful(got[n-1]) {
				continue
			}
			if got[n] != Stalled && got[n] != Asleep && got[n] != Draining && crossings > 0 {
				require.Greater(t, n-crossed, 4*(hold-1), "seed %d: %s at %d, %s before since %d", seed, got[n], n, got[n-1], crossed)
			}
			crossed, crossings = n, crossings+1
			require.Equal(t, harmful(got[n]), harmful(raw[n]), "seed %d at %d", seed, n)
		}
		require.Positive(t, crossings)
	}
}

// Latencies beyond the baseline become usual when they have been stable for
// relearn_after; errors and objectives do not.
func TestAStableLevelIsRelearned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		found symptoms
		want  bool
	}{
		"slow":      {symptoms{firstToken: true}, true},
		"errors":    {symptoms{errors: true}, false},
		"objective": {symptoms{firstToken: true, objective: missed{name: "ttft"}}, false},
	} {
		s, c := &State{}, settings(2)
		e := &engine{baseline: learned(10), saved: saved{Reported: Verdict{Condition: Degraded, Severity: 2}}}
		e.memory.conditions = []reportedCondition{{Degraded, presence{on: true}}}
		began := int64(time.Hour)
		relearned := int64(0)
		for at := began; at < began+int64(2*time.Hour) && relearned == 0; at += scrape {
			r := healthyReading(at)
			r.Signals[signal.TimeToFirstToken] = 0.5
			e.last = r
			e.learn(c, s, &r, &test.found, Degraded)
			if len(s.transitions) > 0 {
				relearned = at
			}
		}
		if !test.want {
			assert.Zero(t, relearned, name)
			continue
		}
		require.Equal(t, began+int64(time.Hour), relearned, name)
		assert.True(t, s.transitions[0].Relearned)
		assert.Equal(t, Healthy, e.Reported.Condition)
		assert.Zero(t, e.Reported.Severity)
		assert.InEpsilon(t, 0.5, e.baseline.Usual(signal.TimeToFirstToken), 0.01)
	}
}

// A level that keeps rising is not stable.
func TestWhatGetsWorseIsNotRelearned(t *testing.T) {
	t.Parallel()
	s, c := &State{}, settings(2)
	e := &engine{baseline: learned(10), saved: saved{Reported: Verdict{Condition: Degraded, Severity: 2}}}
	e.memory.conditions = []reportedCondition{{Degraded, presence{on: true}}}
	slow := 0.5
	for n := range 4 * 240 {
		r := healthyReading(int64(time.Hour) + int64(n)*scrape)
		if n%80 == 0 { // every 20 minutes
			slow *= 1.6
		}
		r.Signals[signal.TimeToFirstToken] = slow
		e.last = r
		e.learn(c, s, &r, &symptoms{firstToken: true}, Degraded)
	}
	assert.Empty(t, s.transitions)
	assert.InEpsilon(t, 0.1, e.baseline.Usual(signal.TimeToFirstToken), 0.01)
}

// A clock that was set back since does not stop the learning.
func TestABaselineFromTheFutureGoesOnLearning(t *testing.T) {
	t.Parallel()
	b := learned(20)
	b.Learned = int64(10 * time.Hour)
	s := &State{Keeper: kept(b.Encode())}
	again := s.beginBaseline(nil, int64(time.Hour))
	require.Equal(t, 20, again.Windows)
	r := healthyReading(int64(time.Hour + time.Minute))
	again.Learn(&r.Window, time.Minute, &signal.Set{})
	assert.Equal(t, 21, again.Windows)
}

type kept []byte

func (k kept) Begin(kind Kept, _ []input.Attribute) []byte {
	if kind == Baseline {
		return k
	}
	return nil
}

func (kept) End(Kept, []input.Attribute, []byte) {}
