package diagnose

import (
	"fmt"
	"strings"
	"testing"
	"time"

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
	for range 20 {
		r.scrape(hangs(0, 70)...)
		assert.InDelta(t, 30.0/50, r.share(), 0.01, "they still wait there")
	}
	for range 5 {
		r.scrape(hangs(0, 41)...)
	}
	assert.Zero(t, r.share(), "none are there any more")
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
	for _, known := range []bool{true, false} {
		r := newRig(t)
		r.scrape(connected(0, 60)...)
		if known {
			r.inPool(Load{9, 3})
		}
		r.follow(func(float64) float64 { return 60 })
		r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
		for range 8 {
			r.scrape(freezes(2, 60, -1)...)
		}
		assert.Equal(t, Stalled, r.verdict("0").Condition)
		r.restartCollector(r.state.Keeper.(*store))
		for n := range 8 {
			r.scrape(freezes(2, 60, -1)...)
			r.inPool(Load{9, 3})
			assert.Equal(t, Stalled, r.verdict("0").Condition)
			if known {
				assert.InDelta(t, 0.25, r.share(), 0.01, n)
			} else {
				assert.Zero(t, r.share(), n)
			}
		}
	}
}

// freezes is an engine that hangs in a step: its gauges stay. A load of -1 is not reported.
func freezes(running, files, load float64) []scraped {
	all := withFiles(standsStill("0"), running, files)
	all[1].gauges[input.Waiting] = 0
	if load >= 0 {
		all[0].gauges[input.ServerLoad] = load
	}
	return all
}

// One request comes to it in a second, and some to the others. 3 ran when it began to hang; of the others hardly one
// runs at any time.
func TestAnEngineThatStandsStillHasTheShareThatItHadBefore(t *testing.T) {
	t.Parallel()
	kept := func(float64) float64 { return 60 }
	for name, test := range map[string]struct {
		files  func(float64) float64
		others float64
		load   bool
		share  float64
		ends   time.Duration
	}{
		"open files are requests":             {files: perRequest, others: 1, share: 0.5, ends: time.Minute},
		"a quarter":                           {files: perRequest, others: 3, share: 0.25, ends: time.Minute},
		"the server counts them":              {files: kept, others: 1, load: true, share: 0.5, ends: time.Minute},
		"clients keep their connections":      {files: kept, others: 1, share: 0.5, ends: 15 * time.Minute},
		"all others stand still or have gone": {files: kept, others: 0, share: 1, ends: 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.scrape(connected(0, test.files(0))...)
			r.inPool(Load{1, test.others})
			r.follow(test.files)
			r.scrape(connected(3, test.files(3))...)
			began := r.at
			hang := func(requests float64) []scraped {
				load := -1.0
				if test.load {
					load = requests
				}
				return freezes(3, test.files(requests), load)
			}
			reported := 0
			for n := range 40 {
				// Clients give up after two minutes.
				r.scrape(hang(3 + 15*float64(min(n, 8)))...)
				if r.verdict("0").Condition != Stalled {
					continue
				}
				reported++
				assert.InDelta(t, test.share, r.share(), 0.01, n)
				for m := range r.state.Members() {
					assert.InDelta(t, 1, m.Asked.Arrivals, 0.02, "its pool knows what comes to it")
				}
			}
			assert.Greater(t, reported, 30)
			sentence := r.changes[len(r.changes)-1].Felt
			assert.Contains(t, sentence, fmt.Sprintf("t had about %.0f %% of the pool's requests before it stood still", 100*test.share))
			seen := test.ends == time.Minute
			assert.Equal(t, seen, strings.Contains(sentence, stillSends))
			assert.Equal(t, !seen, strings.Contains(sentence, "nothing shows whether the router still sends"))
			if seen {
				began = r.at
			}
			for r.at < began+int64(test.ends) {
				assert.InDelta(t, test.share, r.share(), 0.01)
				r.scrape(hang(0)...) // Out of rotation.
			}
			for range 20 {
				r.scrape(hang(0)...)
				assert.Equal(t, Stalled, r.verdict("0").Condition)
			}
			assert.Zero(t, r.share())
			for m := range r.state.Members() {
				assert.Zero(t, m.Asked.Arrivals)
			}
		})
	}
}

// An engine with few requests mostly rests: its share is that of all the time, not of when it works.
func TestTheShareOfAnEngineThatRestsIsThatOfAllTheTime(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	few := serves("0")
	few.observed[input.TimeToFirstToken] = [2]float64{3, 0.1}
	few.labelledCounts, few.observed[input.RequestGenerationTokens] = nil, [2]float64{3, 100}
	still := standsStill("0")
	still.gauges = rests("0").gauges
	few.gauges[input.KVCacheUtilization], few.gauges[input.Running] = 0, 0
	r.scrape(answers(1), few)
	r.inPool(Load{1, 0.1})
	for range 20 {
		r.scrape(answers(1), few)
		r.minutes(1.75, answers(1), still)
	}
	for range 8 {
		r.scrape(freezes(3, 60, -1)...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.InDelta(t, 0.2, r.share(), 0.03, "3 in two minutes, and 12 to the others")
}

// What comes to the others while it hangs says nothing about its share, also where the hang shows late.
func TestAHangIsNotCountedInTheShareThatItHadBefore(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.scrape(connected(0, 35)...)
	r.inPool(Load{1, 1})
	r.follow(perRequest)
	r.minutes(10, freezes(3, 38, -1)...)
	r.scrape(connected(0, 35)...)
	r.scrape(connected(0, 35)...)
	rests := func(files float64) []scraped { return freezes(0, files, -1) }
	r.minutes(2, rests(35)...)
	for n := range 8 {
		r.scrape(rests(40 + 5*float64(n))...)
	}
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	assert.InDelta(t, 0.5, r.share(), 0.02)
}

// A server that counts its requests shows that no more come.
func TestWhatAServerCountsShowsThatNothingIsSent(t *testing.T) {
	t.Parallel()
	for load, sent := range map[float64]bool{-1: true, 3: false} {
		r := newRig(t)
		r.scrape(connected(0, 60)...)
		r.inPool(Load{1, 1})
		r.follow(func(float64) float64 { return 60 })
		r.minutes(4, freezes(3, 60, load)...)
		assert.Equal(t, Stalled, r.verdict("0").Condition)
		assert.Equal(t, sent, r.share() > 0, load)
	}
}

// One that is out of rotation before it hangs: open files that are requests would be more by now. Of few requests
// they would not.
func TestOpenFilesThatAreRequestsShowThatNothingIsSent(t *testing.T) {
	t.Parallel()
	for few, sent := range map[bool]bool{false: false, true: true} {
		r := newRig(t)
		r.scrape(connected(0, 35)...)
		r.inPool(Load{1, 1})
		r.follow(perRequest)
		one := connected(0, 35)
		one[1].observed[input.TimeToFirstToken] = [2]float64{1, 0.1}
		one[1].observed[input.RequestGenerationTokens] = [2]float64{1, 100}
		one[1].labelledCounts = nil
		if few {
			r.minutes(30, one...)
		}
		r.minutes(2, freezes(3, 38, -1)...)
		assert.Equal(t, Stalled, r.verdict("0").Condition)
		assert.Equal(t, sent, r.share() > 0, few)
	}
}
