package pools

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// poolOf is a pool of engines.
func poolOf(engines ...one) *pool {
	p := &pool{place: place[Source]{attributes: named("m")}, report: diagnose.NewReport(0, named("m"))}
	for i := range engines {
		m := engines[i].member("m")
		p.members = append(p.members, newMember(&m, "s"))
	}
	return p
}

// The evidence of a pool has the sums of what its readable engines report, and the mean use
// of the caches of those that have one.
func TestTheEvidenceOfAPoolAddsUpItsReadableEngines(t *testing.T) {
	t.Parallel()
	p := poolOf(
		one{condition: diagnose.Unreachable},
		one{condition: diagnose.Healthy, load: 7, waiting: 3, kv: 0.2, in: 2},
		one{condition: diagnose.Idle, kv: math.NaN(), in: math.NaN()},
		one{condition: diagnose.Degraded, load: 12, waiting: 5, kv: 0.6, in: 4},
	)
	s := p.signals()
	assert.InDelta(t, 4+7, s[signal.Running], 1e-9)
	assert.InDelta(t, 3+5, s[signal.Waiting], 1e-9)
	assert.InDelta(t, 6, s[signal.ArrivalRate], 1e-9)
	assert.InDelta(t, 0.4, s[signal.KVUtilization], 1e-9)
	s = poolOf(one{condition: diagnose.Idle, kv: math.NaN()}).signals()
	assert.InDelta(t, 0, s[signal.Running], 1e-9)
	assert.True(t, math.IsNaN(s[signal.KVUtilization]), "no engine reports its cache")
	assert.False(t, math.IsInf(s[signal.KVUtilization], 0))
}

// Healthy engines have no part in the details, and of two engines with equal harm the first
// one decides.
func TestTheDetailIsOfTheEngineThatIsHarmedMost(t *testing.T) {
	t.Parallel()
	harmed := func(load float64) one {
		return one{condition: diagnose.Degraded, load: load, causes: map[diagnose.Cause]float64{diagnose.PrefillHeavy: 0.5}}
	}
	p := poolOf(one{condition: diagnose.Healthy, load: 50, causes: map[diagnose.Cause]float64{diagnose.PrefillHeavy: 1}}, harmed(5), harmed(8), harmed(8))
	for i, detail := range []string{"of a healthy one", "of the smaller one", "of the first", "of the second"} {
		p.members[i].Details[diagnose.PrefillHeavy] = detail
	}
	assert.Equal(t, "of the first", p.details()[diagnose.PrefillHeavy])
	assert.Empty(t, p.details()[diagnose.DecodeLoad], "no engine is harmed by it")
}

// Without a harmed engine a pool is compared with nothing but the defaults.
func TestTheReferenceIsThatOfMostHarmedRequests(t *testing.T) {
	t.Parallel()
	p := poolOf(one{condition: diagnose.Healthy, load: 50}, one{condition: diagnose.Degraded, load: 5}, one{condition: diagnose.Failing, load: 8})
	p.members[0].Verdict.Reference = diagnose.Objectives
	p.members[1].Verdict.Reference = diagnose.Objectives
	p.members[2].Verdict.Reference = diagnose.Learned
	assert.Equal(t, diagnose.Learned, p.reference())
	assert.Equal(t, diagnose.Defaults, poolOf(one{condition: diagnose.Healthy}).reference())
}

// The work of an engine is the tokens that arrive: of prompts, and of answers where the
// engine reports them.
func TestTheWorkOfAnEngineIsItsArrivingTokens(t *testing.T) {
	t.Parallel()
	m := (&one{in: 2}).member("m")
	assert.InDelta(t, 2*(900+100), newMember(&m, "s").work, 1e-9)
	m.Signals[signal.OutputTokens] = math.NaN()
	assert.InDelta(t, 2*900, newMember(&m, "s").work, 1e-9)
}

func TestAnEngineHasRoomUpTo70PercentOfItsCacheAndWithoutAQueue(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		one
		want bool
	}{
		{one{condition: diagnose.Healthy, kv: 0.7, waiting: 0.9}, true},
		{one{condition: diagnose.Healthy, kv: 0.71}, false},
		{one{condition: diagnose.Healthy, kv: 0.1, waiting: 1}, false},
		{one{condition: diagnose.Healthy, kv: math.NaN()}, true},
		{one{condition: diagnose.Idle, kv: 0.9}, true},
		{one{condition: diagnose.Degraded, kv: 0.1}, false},
	} {
		m := test.one.member("m")
		of := newMember(&m, "s")
		assert.Equal(t, test.want, of.roomy(), "%+v", test.one)
	}
}

// What waits at a gateway is for no pool without engines.
func TestAPoolWithoutEnginesTakesNoRequests(t *testing.T) {
	t.Parallel()
	assert.False(t, (*pool)(nil).takes(&diagnose.Queue{Requests: 9}))
	assert.False(t, poolOf().takes(&diagnose.Queue{Requests: 9}))
	p := poolOf(one{condition: diagnose.Idle})
	assert.True(t, p.takes(&diagnose.Queue{Requests: 9}))
	assert.False(t, p.takes(&diagnose.Queue{Attributes: named("n"), Requests: 9}))
}

// One waiting request is enough, and a tenth of a second of the arrivals is.
func TestRequestsAreHeldBackFromATenthOfASecondOn(t *testing.T) {
	t.Parallel()
	settings := &diagnose.Settings{Window: time.Minute, Hold: 1}
	for _, test := range []struct {
		queued, rate float64
		want         bool
	}{{1, 1, true}, {0.99, 1, false}, {2, 20, true}, {1.99, 20, false}} {
		p := poolOf(one{condition: diagnose.Healthy, in: test.rate})
		p.queued = test.queued
		assert.Equal(t, test.want, p.starved(settings, int64(time.Hour)), test)
	}
}

// The time for which requests have waited begins again whenever they do not, unless that is
// what the pool is reported for.
func TestWaitingThatIsNotReportedBeginsAnew(t *testing.T) {
	t.Parallel()
	settings := &diagnose.Settings{Window: time.Minute, Hold: 3}
	for name, test := range map[string]struct {
		verdict diagnose.Verdict
		holds   bool
	}{
		"reported":               {diagnose.Verdict{Condition: diagnose.Degraded, Explained: true, Primary: diagnose.UpstreamStarved}, true},
		"healthy":                {diagnose.Verdict{Condition: diagnose.Healthy}, false},
		"not explained":          {diagnose.Verdict{Condition: diagnose.Degraded, Primary: diagnose.UpstreamStarved}, false},
		"for another cause":      {diagnose.Verdict{Condition: diagnose.Degraded, Explained: true, Primary: diagnose.SlowSteps}, false},
		"in another condition":   {diagnose.Verdict{Condition: diagnose.Failing, Explained: true, Primary: diagnose.UpstreamStarved}, false},
		"it was reported before": {diagnose.Verdict{Condition: diagnose.Healthy, Primary: diagnose.UpstreamStarved}, false},
	} {
		p := poolOf(one{condition: diagnose.Healthy, in: 1})
		p.queued = 5
		p.starved(settings, int64(time.Hour))
		p.report.Reported = test.verdict
		p.queued = 0
		p.starved(settings, int64(time.Hour)+int64(15*time.Second))
		assert.Equal(t, test.holds, p.report.Starved > 0, name)
		assert.Equal(t, test.holds, p.report.Fed > 0, name)
	}
}

// The routing is uneven where the degraded engines have twice the requests and one and a
// half times the arriving tokens of the others, each on average, and half of the others
// have room.
func TestTheRoutingIsUnevenFromTwiceTheRequestsOn(t *testing.T) {
	t.Parallel()
	degraded := func(load, in float64) one { return one{condition: diagnose.Degraded, load: load, kv: 0.9, in: in} }
	healthy := func(load, in float64) one { return one{condition: diagnose.Healthy, load: load, kv: 0.1, in: in} }
	full := one{condition: diagnose.Healthy, load: 10, waiting: 3, kv: 0.9, in: 2}
	for name, test := range map[string]struct {
		engines []one
		want    bool
	}{
		"twice, and one and a half times":  {[]one{degraded(20, 3), healthy(10, 2)}, true},
		"less than twice the requests":     {[]one{degraded(19.9, 3), healthy(10, 2)}, false},
		"less than 1.5 times the tokens":   {[]one{degraded(20, 2.99), healthy(10, 2)}, false},
		"in the mean of two":               {[]one{degraded(20, 3), degraded(20, 3), healthy(10, 2), healthy(10, 2)}, true},
		"two with as many tokens":          {[]one{degraded(20, 2), degraded(20, 2), healthy(10, 2)}, false},
		"half of the others have room":     {[]one{degraded(20, 3), healthy(10, 2), full}, true},
		"fewer of the others have room":    {[]one{degraded(20, 3), healthy(10, 2), full, full}, false},
		"as many tokens at an idle one":    {[]one{degraded(20, 2), {condition: diagnose.Idle, in: 2}}, false},
		"an idle one that reports no work": {[]one{degraded(20, 2), {condition: diagnose.Idle, in: math.NaN()}}, true},
		"no others":                        {[]one{degraded(20, 3)}, false},
		"no degraded one":                  {[]one{healthy(20, 3), healthy(1, 1)}, false},
	} {
		var shares diagnose.Shares
		shares[diagnose.DemandExceedsCapacity], shares[diagnose.SlowSteps] = 0.5, 0.5
		got := balance(shares, poolOf(test.engines...).uneven())
		assert.Equal(t, test.want, got[diagnose.Imbalanced] > 0, name)
		total := 0.0
		for _, share := range got {
			total += share
		}
		assert.InDelta(t, 1, total, 1e-9, name)
		assert.InDelta(t, 0.5, got[diagnose.SlowSteps], 1e-9, "%s: the routing makes no step slow", name)
	}
}

// An engine without a place is left out alone: the others of its server are in their pools.
func TestAnEngineWithoutAPlaceIsLeftOutAlone(t *testing.T) {
	t.Parallel()
	p := NewDiagnosis(1, nil)
	p.Begin()
	assert.False(t, p.Add(server(well.member("a"), well.member("b"), well.member("a")), "s", itsModel))
	assert.Len(t, p.byKey[string(keyOf(nil, named("a")))].members, 2)
}

// A pool of several servers is not taken from the one that made it, neither in the same
// evaluation nor later.
func TestASharedPoolIsNotEvicted(t *testing.T) {
	t.Parallel()
	several := func(models ...string) *source {
		s := &source{}
		for _, model := range models {
			s.members = append(s.members, well.member(model))
		}
		return s
	}
	has := func(p *Diagnosis, model string) bool {
		return p.byKey[string(keyOf(nil, named(model)))] != nil
	}
	for _, later := range []bool{false, true} {
		p := NewDiagnosis(3, nil)
		noisy, friend, other := several("a", "b", "shared"), several("shared"), several("m")
		p.Begin()
		p.Add(noisy, "s", itsModel)
		p.Add(friend, "s", itsModel)
		if later {
			p.Begin()
		}
		assert.True(t, p.Add(other, "s", itsModel))
		assert.True(t, has(p, "m") && has(p, "a") && has(p, "shared"), later)
		assert.False(t, has(p, "b"), "it is the newest that the first server has for itself")
	}
}
