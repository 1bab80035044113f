package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// inPool tells an engine what the others of its pool are asked for.
func (r *rig) inPool(others Load) {
	for m := range r.state.Members() {
		m.Beside(others.Plus(r.engine("0").inPool))
	}
}

// share is what is reported of the users that the engine harms; -1 without a series.
func (r *rig) share() float64 {
	for _, v := range r.state.Values(r.window, allRows()) {
		if v.Row == engineRows.users {
			return v.Number
		}
	}
	return -1
}

const stillSends = "The router still sends requests to it: "

// 20 requests are at the others, and 2 come to them in a second.
func TestAnEngineThatHangsSaysWhichUsersItHarms(t *testing.T) {
	t.Parallel()
	r := follow(t, perRequest)
	r.inPool(Load{20, 2})
	assert.Equal(t, -1.0, r.share(), "it never harmed anybody")
	for n := range 8 {
		r.scrape(hangs(0, 35+5*float64(n))...)
	}
	// The newest scrape with progress had 40 files, so that 30 more are 30 requests.
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.InDelta(t, 30.0/50, r.share(), 0.01)
	last := r.changes[len(r.changes)-1]
	assert.Contains(t, last.Words("", func(string) bool { return true }).Sentence, stillSends+"it has ")
	for range 4 {
		r.scrape(hangs(0, 70)...)
		assert.Positive(t, r.share(), "a minute has not passed since the last request")
	}
	r.scrape(hangs(0, 70)...)
	assert.Zero(t, r.share(), "none came for a minute")
	r.scrape(hangs(0, 72)...)
	assert.InDelta(t, 32.0/52, r.share(), 0.01)
}

// Taken out of rotation before the collector was there: what its gauges show has not come just now.
func TestRequestsThatWereThereBeforeAreNotSent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 8 {
		r.scrape(answers(1), standsStill("0"))
		r.inPool(Load{5, 1})
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.Zero(t, r.share())
	assert.NotContains(t, r.changes[len(r.changes)-1].Felt, stillSends)
	more := standsStill("0")
	more.gauges[input.Waiting] = 8
	r.scrape(answers(1), more)
	assert.InDelta(t, 10.0/15, r.share(), 1e-9)
}

// One that fails at once has hardly a request at any time.
func TestAnEngineThatFailsHasTheShareOfThoseThatCome(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(10, answers(1), serves("0"))
	failing := serves("0")
	failing.gauges[input.Running] = 0
	failing.labelledCounts[input.RequestSuccess] = map[string]float64{"stop": 1, "error": 14}
	failing.observed[input.TimeToFirstToken] = [2]float64{1, 0.1}
	for range 16 {
		r.scrape(answers(1), failing)
		r.inPool(Load{30, 3})
	}
	assert.Equal(t, Failing, r.verdict("0").Condition)
	assert.InDelta(t, 0.25, r.share(), 0.01, "one of four that come in a second")
	r.minutes(10, answers(1), serves("0"))
	assert.Zero(t, r.share(), "it serves them, and the alert ends by a number")
	r.minutes(4, answers(0))
	assert.Equal(t, Unreachable, r.verdict("0").Condition)
	assert.Zero(t, r.share(), "what is sent there is not known")
}

func TestAnEngineWithoutAPoolHarmsNoShareOfIt(t *testing.T) {
	t.Parallel()
	r := follow(t, perRequest)
	for n := range 8 {
		r.scrape(hangs(0, 35+5*float64(n))...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.Equal(t, -1.0, r.share())
}

// At the first evaluation of a pool nobody knows what its engines are asked for: it is not all of it.
func TestBeforeAPoolIsKnownThereIsNoShareOfIt(t *testing.T) {
	t.Parallel()
	r := follow(t, perRequest)
	for n := range 8 {
		r.scrape(hangs(0, 35+5*float64(n))...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	beside := func(pool Load) {
		for m := range r.state.Members() {
			m.Beside(pool)
		}
	}
	beside(Load{})
	assert.Equal(t, -1.0, r.share())
	beside(r.engine("0").asked.Load.Plus(Load{20, 2}))
	assert.InDelta(t, 30.0/50, r.share(), 0.01)
	beside(r.engine("0").asked.Load)
	assert.InDelta(t, 1, r.share(), 0.01, "all others have left")
}

// After a gap there is no window yet. What the server says is in another part of the batch, and is known from before.
func TestAGapIsNoEndlessNumberOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := answers(1)
	http(&s, 5, 20)
	r.minutes(3, s, serves("0"))
	r.at += 4 * 60 * 1e9
	r.scrape(serves("0"))
	assert.Less(t, r.engine("0").asked.Arrivals, 5.0)
}

// An alert on the share does not end and begin again because the collector restarts.
func TestWhatIsSentIsKnownAfterARestartOfTheCollector(t *testing.T) {
	t.Parallel()
	r := follow(t, perRequest)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	for n := range 8 {
		r.scrape(hangs(2, 35+5*float64(n))...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.restartCollector(r.state.Keeper.(*store))
	for _, sent := range []bool{true, true, true, true, false} {
		r.scrape(hangs(2, 70)...)
		r.inPool(Load{20, 2})
		assert.Equal(t, Stalled, r.verdict("0").Condition)
		assert.Equal(t, sent, r.share() > 0)
	}
}
