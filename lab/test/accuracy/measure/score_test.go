package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// played is a story of an hour, with a fault from minute 20.5 to minute 40: harmful from
// minute 20 to 42, reported from minute 26 with the cause "said".
func played(truth, said string) *judge.Played {
	p := &judge.Played{}
	for m := range 60 {
		l := judge.Line{Scenario: "a story", Minute: m, Requests: 300, TrueCauses: map[string]float64{}, Condition: "healthy"}
		if m >= 20 && m < 43 {
			l.Harmful, l.Effect, l.TrueCauses = true, 3, map[string]float64{truth: 0.95}
		}
		if m >= 26 && m < 43 {
			l.Condition, l.Severity, l.Causes = "degraded", 2, []judge.Cause{{Name: said, Role: "primary"}}
		}
		p.Lines = append(p.Lines, l)
	}
	p.Alarms = []judge.Alarm{{At: 26*60 + 15, Severity: 2, Condition: "degraded", Cause: said}}
	p.Sought = []judge.Sought{{Parameter: "bandwidth", Wanted: 3, Got: 2.9, Value: 0.6}}
	return p
}

func meta() stories.Meta {
	return stories.Meta{
		Name: "a story", Kind: stories.Single, Servers: 1, Seconds: 3600, Interval: 10,
		Injections: []stories.Injected{{Parameter: "bandwidth", Cause: "slow_steps", At: 20.5 * 60, Until: 40 * 60, Wanted: 3}},
	}
}

func scored(t *testing.T, m stories.Meta, p *judge.Played) Score {
	t.Helper()
	r := newRecord(m, p)
	require.Equal(t, len(p.Lines), r.Minutes)
	return score(&r)
}

func phases(s *Score) map[Phase]int {
	out := map[Phase]int{}
	for _, v := range s.Verdicts {
		out[v.Phase]++
	}
	return out
}

func TestEveryHarmfulMinuteIsInOnePhase(t *testing.T) {
	s := scored(t, meta(), played("slow_steps", "slow_steps"))
	// Minutes 20 to 23 are within 180 s of the onset at 20.5, 24 to 39 count, 40 to 42 drain.
	assert.Equal(t, map[Phase]int{Settling: 4, Counted: 16, Draining: 3}, phases(&s))
	var silent, right int
	for _, v := range s.Verdicts {
		if v.Phase != Counted {
			continue
		}
		if !v.Reported {
			silent++
			assert.False(t, v.Right, "silence is never right")
		}
		if v.Right {
			right++
		}
	}
	assert.Equal(t, 2, silent)
	assert.Equal(t, 14, right)
}

func TestTheDelayBeginsWithTheOnsetWithinItsMinute(t *testing.T) {
	s := scored(t, meta(), played("slow_steps", "slow_steps"))
	want := (26*60 + 15 - 20.5*60) / 60.0
	assert.InDelta(t, want, s.Noticed, 1e-9)
	assert.InDelta(t, want, s.Delay, 1e-9)
	s = scored(t, meta(), played("slow_steps", "kv_pressure"))
	assert.InDelta(t, want, s.Noticed, 1e-9)
	assert.True(t, math.IsInf(s.Delay, 1), "the right cause was never reported")
	healthy := played("slow_steps", "slow_steps")
	for i := range healthy.Lines {
		healthy.Lines[i].Harmful, healthy.Lines[i].TrueCauses = false, nil
	}
	s = scored(t, meta(), healthy)
	assert.True(t, math.IsNaN(s.Delay), "no harm, no delay")
}

func TestWhatIsRight(t *testing.T) {
	cause := func(name, role string) judge.Cause { return judge.Cause{Name: name, Role: role} }
	degraded := func(causes ...judge.Cause) judge.Line {
		return judge.Line{Minute: 30, Harmful: true, Effect: 2, Severity: 2, Condition: "degraded", Causes: causes, TrueCauses: map[string]float64{"slow_steps": 0.9, "decode_load": 0.4}}
	}
	truly := func(l judge.Line, name string, share float64) judge.Line {
		l.TrueCauses[name] = share
		return l
	}
	said := func(l judge.Line, condition string, severity int, truth string) judge.Line {
		l.Condition, l.Severity, l.TrueCauses = condition, severity, map[string]float64{truth: 1}
		return l
	}
	for _, c := range []struct {
		name                           string
		line                           judge.Line
		reported, right, family, named bool
	}{
		{"the greatest share", degraded(cause("slow_steps", "primary")), true, true, true, true},
		{"another of its family", degraded(cause("kv_pressure", "primary")), true, false, true, true},
		{"a true cause that is much smaller", degraded(cause("decode_load", "primary")), true, false, false, true},
		{"its family only", degraded(cause("engine_slower", "primary")), true, false, true, false},
		{"the other family only", degraded(cause("work_grew", "primary")), true, false, false, false},
		{"the family of the work", said(degraded(cause("work_grew", "primary")), "degraded", 2, "prefill_heavy"), true, false, true, false},
		{"the full cache is work", said(degraded(cause("cache_thrash", "primary")), "degraded", 2, "decode_load"), true, false, true, true},
		{"no name", degraded(), true, false, false, false},
		{"what is read off has no family", degraded(cause("erroring", "primary")), true, false, false, false},
		{"a notice of it", degraded(cause("slow_steps", "notice")), true, false, false, false},
		{"nearly as good", truly(degraded(cause("decode_load", "primary")), "decode_load", 0.82), true, true, true, true},
		{"not nearly as good", truly(degraded(cause("decode_load", "primary")), "decode_load", 0.78), true, false, false, true},
		{"silent", said(degraded(cause("slow_steps", "primary")), "healthy", 0, "slow_steps"), false, false, false, false},
		{"a condition", said(degraded(), "stalled", 3, "stalled"), true, true, true, false},
		{"asleep is not an alarm, but it is said", said(degraded(), "asleep", 1, "asleep"), true, true, true, false},
		{"asleep, without a report", said(degraded(), "healthy", 0, "asleep"), false, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRecord(meta(), &judge.Played{Lines: []judge.Line{c.line}})
			v := verdict(&r, &c.line, 0)
			assert.Equal(t, []bool{c.reported, c.right, c.family, c.named}, []bool{v.Reported, v.Right, v.Family, v.Named})
		})
	}
}

// Requests that are longer, and therefore more than the server can do, have two names; but not where something else
// is the primary cause.
func TestDemandByLongerRequestsHasTwoNames(t *testing.T) {
	right := func(said string, truth map[string]float64) bool {
		l := judge.Line{Minute: 30, Harmful: true, Effect: 2, Severity: 2, Condition: "degraded", Causes: []judge.Cause{{Name: said, Role: "primary"}}, TrueCauses: truth}
		r := newRecord(meta(), &judge.Played{Lines: []judge.Line{l}})
		return verdict(&r, &l, 0).Right
	}
	for _, longer := range []string{"prefill_heavy", "decode_load"} {
		assert.True(t, right(demand, map[string]float64{longer: 0.9, demand: 0.2}))
		assert.True(t, right(longer, map[string]float64{longer: 0.2, demand: 0.9}))
		assert.False(t, right(demand, map[string]float64{longer: 0.9, demand: 0.19}))
		assert.False(t, right(longer, map[string]float64{longer: 0.19, demand: 0.9}))
		assert.False(t, right(demand, map[string]float64{"slow_steps": 0.9, longer: 0.3, demand: 0.3}))
	}
	assert.False(t, right("kv_pressure", map[string]float64{"kv_pressure": 0.2, demand: 0.9}), "a full cache is no longer request")
}

func TestOtherNamesOfATrueCauseAreRight(t *testing.T) {
	also := func(truth, said, also string) Score {
		p := played(truth, said)
		for i := range p.Lines {
			p.Lines[i].Also = []string{also}
		}
		m := meta()
		m.Injections[0].Cause = truth
		return scored(t, m, p)
	}
	right := func(s Score) bool { return !math.IsInf(s.Delay, 1) }
	assert.True(t, right(also("prefill_heavy", "cache_thrash", "cache_thrash")))
	assert.True(t, right(also("demand_exceeds_capacity", "decode_load", "decode_load")))
	assert.True(t, right(also("prefill_heavy", "demand_exceeds_capacity", "demand_exceeds_capacity")))
	assert.True(t, right(also("demand_exceeds_capacity", "prefill_heavy", "prefill_heavy")))
	assert.False(t, right(also("slow_steps", "cache_thrash", "cache_thrash")), "it is another name of prefill_heavy only")
	assert.False(t, right(also("prefill_heavy", "decode_load", "cache_thrash")))
}

func TestMinutesWithoutACauseDoNotCount(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	for i := range p.Lines {
		if p.Lines[i].Harmful {
			p.Lines[i].TrueCauses["slow_steps"] = 0.15
		}
	}
	s := scored(t, meta(), p)
	assert.Equal(t, map[Phase]int{Undetermined: 20, Draining: 3}, phases(&s))
}

// Where requests had not ended when the run did, the shares of the causes are bounds only.
func TestMinutesWithRequestsThatHaveNotEndedDoNotCount(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	for i := range p.Lines {
		p.Lines[i].Unended = 0.06
	}
	s := scored(t, meta(), p)
	assert.Zero(t, phases(&s)[Counted])
	assert.Equal(t, 20, phases(&s)[Undetermined])
}

// Where nothing was injected, too much traffic is the cause, and its onset is the
// beginning of the harm.
func TestOverloadWithoutAFaultIsScored(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	s := scored(t, m, played("demand_exceeds_capacity", "demand_exceeds_capacity"))
	assert.Equal(t, map[Phase]int{Settling: 3, Counted: 20}, phases(&s))
	assert.InDelta(t, 6.25, s.Delay, 1e-9)
	assert.Empty(t, s.False)
	// 23 harmful minutes and the three after them are no false-alarm time.
	assert.InDelta(t, (60-26)/60.0, s.Healthy, 1e-9)
}

// Each server has its own truth: what is a fault of one is a false alarm about another.
func TestServersAreScoredApart(t *testing.T) {
	m := meta()
	m.Servers, m.Injections[0].Servers = 2, []int{1}
	one := played("slow_steps", "slow_steps")
	both := &judge.Played{Sought: one.Sought}
	for _, l := range one.Lines {
		healthy := judge.Line{Minute: l.Minute, Requests: 300, Condition: "healthy", TrueCauses: map[string]float64{}}
		l.Server = 1
		both.Lines = append(both.Lines, healthy, l)
	}
	both.Alarms = []judge.Alarm{
		{Server: 0, At: 30 * 60, Severity: 2, Condition: "degraded"},
		{Server: 1, At: 26*60 + 15, Severity: 2, Condition: "degraded", Cause: "slow_steps"},
	}
	s := scored(t, m, both)
	assert.Equal(t, map[Phase]int{Settling: 4, Counted: 16, Draining: 3}, phases(&s))
	require.Len(t, s.False, 1)
	assert.Equal(t, 0, s.False[0].Server)
	assert.InDelta(t, 80/60.0, s.Healthy, 1e-9)
}

func TestARecordKeepsWhatScoringNeeds(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	p.Lines[3].Requests = 19
	r := newRecord(meta(), p)
	assert.Equal(t, 60, r.Minutes)
	assert.Equal(t, 59, r.Judged)
	assert.Len(t, r.Lines, 23)
	assert.Empty(t, r.Lines[0].Scenario)
	assert.InDelta(t, 2.9, r.got(), 0)
	assert.InDelta(t, 3, r.wanted(), 0)
}

// Where the traffic alone is too much before the fault begins, the fault is not noticed by
// the report of that.
func TestTooMuchTrafficIsNoMeritOfTheFault(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	for m := range 20 {
		l := &p.Lines[m]
		l.Harmful, l.Effect, l.TrueCauses = true, 20, map[string]float64{"demand_exceeds_capacity": 1}
		l.Condition, l.Severity, l.Causes = "degraded", 2, []judge.Cause{{Name: "demand_exceeds_capacity", Role: "primary"}}
	}
	for m := 20; m < 60; m++ { // The fault itself is never reported.
		p.Lines[m].Condition, p.Lines[m].Severity, p.Lines[m].Causes = "healthy", 0, nil
	}
	p.Alarms = []judge.Alarm{{At: 60, Severity: 2, Condition: "degraded", Cause: "demand_exceeds_capacity"}}
	p.Sought[0].Got = 1.3
	s := scored(t, meta(), p)
	assert.True(t, math.IsInf(s.Delay, 1))
	reported, right, of := outcomes([]Score{s}, func(*Score) bool { return true })
	assert.Equal(t, []int{0, 0, 1}, []int{reported, right, of}, "that an alarm was there before is not a report")
	for _, v := range s.Verdicts {
		assert.Equal(t, v.Minute >= 20, v.Ours, "minute %d", v.Minute)
	}
}

// After a gap of three minutes or less it is the same harm: without this, harm that comes and
// goes would never count.
func TestHarmThatComesAndGoesHasOneOnset(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	p := played("demand_exceeds_capacity", "demand_exceeds_capacity")
	for _, minute := range []int{24, 26, 27, 32, 33, 34, 35} {
		p.Lines[minute].Harmful, p.Lines[minute].Effect, p.Lines[minute].TrueCauses = false, 0, nil
	}
	s := scored(t, m, p)
	// Minutes 20 to 22 and, after a gap of four, 36 to 38 are an onset.
	assert.Equal(t, map[Phase]int{Settling: 6, Counted: 10}, phases(&s))
}

// Harm by traffic before the fault has an onset of its own.
func TestHarmBeforeAFaultHasAnOnset(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	for minute := 5; minute < 15; minute++ {
		l := &p.Lines[minute]
		l.Harmful, l.Effect, l.TrueCauses = true, 5, map[string]float64{"demand_exceeds_capacity": 1}
	}
	s := scored(t, meta(), p)
	assert.Equal(t, map[Phase]int{Settling: 4 + 3, Counted: 16 + 7, Draining: 3}, phases(&s))
}

// Harm by traffic on a server of a pool that has no fault is not what a report of the fault
// is about.
func TestTheOtherServersOfAPoolHaveNoFault(t *testing.T) {
	m := meta()
	m.Servers, m.Injections[0].Servers = 2, []int{1}
	both := &judge.Played{}
	for _, l := range played("demand_exceeds_capacity", "demand_exceeds_capacity").Lines {
		faulty := l
		faulty.Server, faulty.Condition, faulty.Severity, faulty.Causes = 1, "healthy", 0, nil
		if l.Harmful {
			faulty.TrueCauses = map[string]float64{"slow_steps": 1}
		}
		both.Lines = append(both.Lines, l, faulty)
	}
	s := scored(t, m, both)
	assert.True(t, math.IsInf(s.Noticed, 1), "only the server without the fault was reported")
	for _, v := range s.Verdicts {
		assert.Equal(t, v.Server == 1, v.Ours)
	}
	assert.Contains(t, counted([]Score{s}), "In 0 of 1 stories the fault did no harm.")
}

func TestWhatWasReportedAlreadyIsSaid(t *testing.T) {
	p := played("slow_steps", "slow_steps")
	for minute := 18; minute < 26; minute++ {
		p.Lines[minute].Severity, p.Lines[minute].Condition = 2, "degraded"
	}
	s := scored(t, meta(), p)
	assert.True(t, s.Already)
	assert.Zero(t, s.Noticed)
	assert.Greater(t, s.Delay, 0.0, "the right cause was not reported before")
	s = scored(t, meta(), played("slow_steps", "slow_steps"))
	assert.False(t, s.Already)
}

// The queue that more arrivals leave behind has the name of the fault, and is still a drain;
// where the traffic was too much before the fault as well, it may be that again.
func TestTheQueueAfterMoreArrivalsDrains(t *testing.T) {
	m := meta()
	m.Injections[0].Parameter, m.Injections[0].Cause = "arrival_rate", demand
	p := played(demand, demand)
	s := scored(t, m, p)
	assert.Equal(t, map[Phase]int{Settling: 4, Counted: 16, Draining: 3}, phases(&s))
	p.Lines[5].Harmful, p.Lines[5].Effect, p.Lines[5].TrueCauses = true, 2, map[string]float64{demand: 1}
	s = scored(t, m, p)
	assert.Zero(t, phases(&s)[Draining])
	// A fault of another cause: what is left is traffic, as before.
	m.Injections[0].Parameter, m.Injections[0].Cause = "bandwidth", "slow_steps"
	s = scored(t, m, played(demand, demand))
	assert.Zero(t, phases(&s)[Draining])
}
