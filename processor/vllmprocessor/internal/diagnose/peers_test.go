package diagnose

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// among returns siblings that expect some times at any load, with no uncertainty and a deviation of
// 0.05, and what an engine gets from them.
func among(seconds float64, expected ...float64) beside {
	p, times := &Peers{}, map[*signal.Model]float64{}
	for _, t := range expected {
		m := &signal.Model{}
		times[m] = t
		p.Siblings = append(p.Siblings, Sibling{Usual: m, engine: &engine{}})
	}
	return p.compareAt(&engine{}, seconds, func(m *signal.Model) signal.Expected {
		if math.IsNaN(times[m]) {
			return signal.Expected{Seconds: math.NaN(), Uncertainty: math.NaN(), Deviation: math.NaN()}
		}
		return signal.Expected{Seconds: times[m], Deviation: 0.05}
	})
}

// Siblings that lie, in either direction, do not move the median.
func TestAFewSiblingsCannotMoveTheMedian(t *testing.T) {
	t.Parallel()
	for _, lie := range []float64{1e-9, 1e30, math.NaN()} {
		b := among(0.03, 0.02, 0.0201, 0.0199, 0.02, lie)
		assert.InDelta(t, math.Log(1.5), b.growth, 0.01, lie)
		_, deviations := b.slower(0, 0)
		assert.Greater(t, deviations, 3.0, lie)
		b = among(0.02, 0.02, 0.0201, 0.0199, 0.02, lie)
		_, deviations = b.slower(0, 0)
		assert.Less(t, deviations, slack, lie)
	}
	assert.Zero(t, among(0.03).siblings)
	assert.True(t, math.IsNaN(among(0.03, math.NaN()).growth))
}

// Of two engines one is slower only beyond any doubt. 4 deviations of sqrt(0.05^2 + 0.075) are 0.40
// with one sibling: a ratio of 1.49.
func TestOfTwoEnginesOneIsSlowerOnlyBeyondDoubt(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64]bool{1.2: false, 1.4: false, 1.6: true, 0.5: false} {
		b := among(0.02*ratio, 0.02)
		grown, deviations := b.slower(0, 0)
		assert.Equal(t, want, deviations > slack, "%g times", ratio)
		assert.Equal(t, want, grown > 0, "%g times", ratio)
	}
}

// More than a third of a pool that is as slow is other hardware.
func TestAClassOfHardwareIsNoFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		siblings []float64
		slower   bool
	}{
		{[]float64{0.02, 0.02, 0.02}, true},
		{[]float64{0.02, 0.02, 0.02, 0.02, 0.02, 0.03}, true}, // 2 of 7
		{[]float64{0.02, 0.02, 0.02, 0.03}, false},            // 2 of 5
		{[]float64{0.02, 0.02, 0.03}, false},
	} {
		b := among(0.03, test.siblings...)
		grown, deviations := b.slower(0, 0)
		assert.Equal(t, test.slower, grown > 0.3 && deviations > 2, "%v: %+v", test.siblings, b)
	}
}

// A ratio that was taken as usual is not evidence any more; more than that is.
func TestARatioThatWasAcceptedIsNoEvidence(t *testing.T) {
	t.Parallel()
	b := among(0.03, 0.02, 0.02, 0.02)
	_, deviations := b.slower(math.Log(1.5), 0)
	assert.Less(t, deviations, slack)
	b = among(0.05, 0.02, 0.02, 0.02)
	_, deviations = b.slower(math.Log(1.5), 0)
	assert.Greater(t, deviations, 3.0)
}

// An engine is not its own sibling, and at most 16 others count.
func TestAnEngineIsNotItsOwnSibling(t *testing.T) {
	t.Parallel()
	e := &engine{}
	p := &Peers{Siblings: []Sibling{{Usual: &signal.Model{}, engine: e}}}
	for range 100 {
		p.Siblings = append(p.Siblings, Sibling{Usual: &signal.Model{}, engine: &engine{}})
	}
	asked := 0
	b := p.compareAt(e, 1, func(m *signal.Model) signal.Expected {
		asked++
		assert.NotSame(t, p.Siblings[0].Usual, m)
		return signal.Expected{Seconds: 1}
	})
	assert.Equal(t, MostSiblings, b.siblings)
	assert.Equal(t, MostSiblings, asked)
}

// The sentence of the log has both versions and the percentage.
func TestTheWordsOfASlowReleaseNameTheVersions(t *testing.T) {
	t.Parallel()
	v := Verdict{Condition: Degraded, Explained: true, Primary: SlowSteps}
	transition := Transition{To: v, Earlier: "0.24.0", Version: "0.25.0", Slower: 0.304}
	transition.Details[SlowSteps] = sinceVersion
	words := transition.Words("", func(string) bool { return true })
	assert.Contains(t, words.Sentence, "It is slower since version 0.25.0, by 30 % at equal work; before it was version 0.24.0.")
	transition.Details[SlowSteps], transition.Earlier = "", ""
	assert.NotContains(t, transition.Words("", func(string) bool { return true }).Sentence, "since version")
}

// A level that is taken as usual takes the greatest ratio of the last hour with it: the next reading
// that compares with siblings otherwise is not a new alarm.
func TestWhatIsTakenAsUsualIsTheGreatestRatio(t *testing.T) {
	t.Parallel()
	e := &engine{saved: saved{Ratio: 0.43}, baseline: signal.NewBaseline()}
	e.SlowerThanPeers[0].On = true
	e.acceptPeers()
	assert.InDelta(t, 0.43, e.baseline.Accepted, 1e-9)
	assert.False(t, e.SlowerThanPeers[0].On)
	e = &engine{saved: saved{Ratio: -0.2}, baseline: signal.NewBaseline()}
	e.acceptPeers()
	assert.Zero(t, e.baseline.Accepted, "an engine that is faster is not allowed to become slower than the others")
}

// A sibling that knows only other loads says nothing about this one.
func TestASiblingThatIsNotSureSaysNothing(t *testing.T) {
	t.Parallel()
	sure, unsure := &signal.Model{}, &signal.Model{}
	p := &Peers{Siblings: []Sibling{{Usual: sure, engine: &engine{}}, {Usual: unsure, engine: &engine{}}}}
	b := p.compareAt(&engine{}, 0.03, func(m *signal.Model) signal.Expected {
		if m == unsure {
			return signal.Expected{Seconds: 9, Uncertainty: 0.21, Deviation: 0.05}
		}
		return signal.Expected{Seconds: 0.02, Uncertainty: 0.2, Deviation: 0.05}
	})
	assert.Equal(t, 1, b.siblings)
	assert.InDelta(t, math.Log(1.5), b.growth, 1e-9)
}

// Siblings that differ among themselves are weaker evidence. Of three whose logarithms are -0.5, 0 and
// 0.5 the median difference is 0.5, which is a deviation of 0.74; with the prior of 0.1 for three more
// it is sqrt((0.01 + 0.5476) / 2), and with that of a single time, 0.05, 0.5304.
func TestSiblingsThatDifferAreWeakerEvidence(t *testing.T) {
	t.Parallel()
	b := among(0.03, 0.02*math.Exp(-0.5), 0.02, 0.02*math.Exp(0.5))
	assert.InDelta(t, 0.5304, b.deviation, 1e-3)
	same := among(0.03, 0.02, 0.02, 0.02)
	assert.InDelta(t, math.Sqrt(0.01/2+0.05*0.05), same.deviation, 1e-9)
}

// An engine that is harmed, may be slower, or has another version since a short time does not become
// the reference of its pool.
func TestOnlyASettledEngineIsAReference(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(e *engine)
		settled bool
	}{
		"healthy":       {func(*engine) {}, true},
		"harmed":        {func(e *engine) { e.Reported.Severity = 2 }, false},
		"maybe slower":  {func(e *engine) { e.Changes[slowerSteps].Score = suspicious }, false},
		"newer version": {func(e *engine) { e.baseline.Upgrade("0.28.0") }, false},
	} {
		e := &engine{baseline: learned(30)}
		e.baseline.Version = "0.27.0"
		test.change(e)
		got, known := (&Member{engine: e}).Sibling()
		assert.True(t, known, name)
		assert.Equal(t, test.settled, got.Settled, name)
	}
}

// A level that has become usual takes with it how much slower than its siblings the engine is.
func TestALevelThatIsRelearnedTakesTheRatioWithIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := serves("0")
	slow.observed[input.InterTokenLatency] = [2]float64{1485, 0.06}
	r.minutes(12, answers(1), serves("0"))
	r.engine("0").Ratio = 0.43
	r.minutes(40, answers(1), slow)
	assert.Zero(t, r.engine("0").baseline.Accepted)
	r.minutes(25, answers(1), slow)
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.InDelta(t, 0.43, r.engine("0").baseline.Accepted, 1e-9)
}
