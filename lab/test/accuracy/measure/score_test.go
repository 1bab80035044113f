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
	cause := func(name, role string, share float64) judge.Cause {
		return judge.Cause{Name: name, Role: role, Share: share}
	}
	degraded := func(causes ...judge.Cause) judge.Line {
		return judge.Line{Minute: 30, Harmful: true, Effect: 2, Severity: 2, Condition: "degraded", Causes: causes, TrueCauses: map[string]float64{"slow_steps": 0.9, "kv_pressure": 0.4}}
	}
	for _, c := range []struct {
		name                    string
		line                    func() judge.Line
		reported, right, topTwo bool
	}{
		{"the greatest share", func() judge.Line { return degraded(cause("slow_steps", "primary", 0)) }, true, true, true},
		{"a true cause that is much smaller", func() judge.Line { return degraded(cause("kv_pressure", "primary", 0)) }, true, false, false},
		{"the second", func() judge.Line {
			return degraded(cause("kv_pressure", "primary", 0), cause("slow_steps", "contributing", 0))
		}, true, false, true},
		{"one of two without shares", func() judge.Line {
			return degraded(cause("kv_pressure", "primary", 0), cause("slow_steps", "contributing", 0), cause("erroring", "contributing", 0))
		}, true, false, false},
		{"the stronger one of two with shares", func() judge.Line {
			return degraded(cause("kv_pressure", "primary", 0.5), cause("erroring", "contributing", 0.1), cause("slow_steps", "contributing", 0.3))
		}, true, false, true},
		{"a notice is no report", func() judge.Line { return degraded(cause("slow_steps", "notice", 0)) }, true, false, false},
		{"nearly as good", func() judge.Line {
			l := degraded(cause("kv_pressure", "primary", 0))
			l.TrueCauses["kv_pressure"] = 0.82
			return l
		}, true, true, true},
		{"not nearly as good", func() judge.Line {
			l := degraded(cause("kv_pressure", "primary", 0))
			l.TrueCauses["kv_pressure"] = 0.78
			return l
		}, true, false, false},
		{"silent", func() judge.Line {
			l := degraded(cause("slow_steps", "contributing", 0))
			l.Severity, l.Condition = 0, "healthy"
			return l
		}, false, false, false},
		{"a condition", func() judge.Line {
			l := degraded()
			l.Condition, l.Severity, l.TrueCauses = "stalled", 3, map[string]float64{"stalled": 1}
			return l
		}, true, true, true},
		{"asleep is no alarm, but it is said", func() judge.Line {
			l := degraded()
			l.Condition, l.Severity, l.TrueCauses = "asleep", 1, map[string]float64{"asleep": 1}
			return l
		}, true, true, true},
		{"asleep, without a report", func() judge.Line {
			l := degraded()
			l.Condition, l.Severity, l.TrueCauses = "healthy", 0, map[string]float64{"asleep": 1}
			return l
		}, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := meta()
			l := c.line()
			r := newRecord(m, &judge.Played{Lines: []judge.Line{l}})
			v := verdict(&r, &l, 0)
			assert.Equal(t, []bool{c.reported, c.right, c.topTwo}, []bool{v.Reported, v.Right, v.TopTwo})
		})
	}
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

func TestFalseAlarms(t *testing.T) {
	m := meta()
	p := played("slow_steps", "slow_steps")
	p.Alarms = append(p.Alarms, judge.Alarm{At: 600, Severity: 2, Condition: "degraded"}, judge.Alarm{At: 3000, Severity: 3, Condition: "failing"})
	s := scored(t, m, p)
	assert.Len(t, s.False, 1, "after the onset of a fault no hour is healthy")
	assert.InDelta(t, 20/60.0, s.Healthy, 1e-9)

	m.Injections = nil
	m.Faults = []judge.Fault{{Kind: judge.Restart, At: 570, Until: 590}, {Kind: judge.Missed, At: 50, Until: 100}}
	s = scored(t, m, p)
	require.Len(t, s.False, 1, "the one in the minute of the restart is excused")
	assert.InDelta(t, 3000, s.False[0].At, 0)
	// Without minutes 20 to 45 (harm and three windows), 9 and 10 (restart and a window).
	assert.InDelta(t, (60-26-2)/60.0, s.Healthy, 1e-9)
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
	assert.Equal(t, []int{0, 0, 1}, []int{reported, right, of}, "that an alarm was there before is no report")
	for _, v := range s.Verdicts {
		assert.Equal(t, v.Minute >= 20, v.Ours, "minute %d", v.Minute)
	}
	curve := curvePoint([]Score{s}, 1.3, func(*Score) bool { return true })
	assert.Zero(t, curve.reported.Value)
}

// A report that an objective is missed is not false where it is missed for longer than two
// windows, and false where it is missed by chance.
func TestAMissedObjectiveIsNoFalseAlarm(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	p := played("slow_steps", "slow_steps")
	for i := range p.Lines {
		l := &p.Lines[i]
		l.Harmful, l.Effect, l.TrueCauses = false, 0, nil
		l.Missed = i == 5 || i == 6 || i >= 20 && i < 30
	}
	p.Alarms = []judge.Alarm{{At: 6*60 + 30, Severity: 2}, {At: 22 * 60, Severity: 2}, {At: 32 * 60, Severity: 2}, {At: 34 * 60, Severity: 2}}
	s := scored(t, m, p)
	require.Len(t, s.Missed, 12)
	assert.Len(t, s.Broken, 2)
	assert.Len(t, s.False, 2)
	assert.InDelta(t, 13/60.0, s.MissedHours, 1e-9)
	assert.InDelta(t, 47/60.0, s.Healthy, 1e-9)
	all := func(*Score) bool { return true }
	assert.Equal(t, 4, strictAlarms([]Score{s}, all).warnings)
	assert.InDelta(t, 1, strictAlarms([]Score{s}, all).hours, 1e-9)
	assert.Equal(t, 2, falseAlarms([]Score{s}, all).warnings)
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
	assert.Contains(t, counted([]Score{s}), "In 0 of 1 stories with a fault, the fault did harm in no minute.")
}

// A report that begins with harm and stays is no new alarm, but it is time with a false report.
func TestAFalseReportThatStaysIsTime(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	p := played("demand_exceeds_capacity", "demand_exceeds_capacity")
	for minute := 43; minute < 56; minute++ {
		p.Lines[minute].Severity, p.Lines[minute].Condition = 2, "degraded"
		p.Lines[minute].Missed = minute >= 50
	}
	s := scored(t, m, p)
	assert.Empty(t, s.False)
	// Three minutes after the harm are excused, and in the last six an objective is missed.
	assert.InDelta(t, 4/60.0, s.FalseTime, 1e-9)
	assert.InDelta(t, 6/60.0, s.BrokenTime, 1e-9)
	all := func(*Score) bool { return true }
	loose, strict := falseAlarms([]Score{s}, all), strictAlarms([]Score{s}, all)
	assert.InDelta(t, 4/60.0, loose.time, 1e-9)
	assert.InDelta(t, 10/60.0, strict.time, 1e-9)
	assert.InDelta(t, strict.hours, s.Healthy+s.MissedHours, 1e-9)
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

func TestTheFirstHourIsApart(t *testing.T) {
	m := meta()
	m.Kind, m.Injections, m.Seconds = stories.Healthy, nil, 7200
	p := &judge.Played{Alarms: []judge.Alarm{{At: 600, Severity: 2}, {At: 3600, Severity: 3}, {At: 3601, Severity: 2}}}
	for minute := range 120 {
		l := judge.Line{Minute: minute, Requests: 100, Condition: "healthy", Harmful: minute >= 30 && minute < 40}
		p.Lines = append(p.Lines, l)
	}
	s := scored(t, m, p)
	all := func(*Score) bool { return true }
	first, whole := firstHour([]Score{s}, all), falseAlarms([]Score{s}, all)
	assert.Equal(t, []int{2, 1}, []int{first.warnings, first.pages})
	assert.InDelta(t, (60-13)/60.0, first.hours, 1e-9)
	assert.Equal(t, 3, whole.warnings)
	assert.InDelta(t, (120-13)/60.0, whole.hours, 1e-9)
	s.Kind = stories.Single
	assert.Zero(t, firstHour([]Score{s}, all).hours, "stories with a fault are too short")
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

// A burst of the traffic makes users wait: what is reported of it is not false, but a page needs great harm.
func TestWhatUsersFeelIsNotFalse(t *testing.T) {
	m := meta()
	m.Kind, m.Injections, m.Seconds = stories.Healthy, nil, 7200
	p := &judge.Played{
		Alarms: []judge.Alarm{{At: 630, Severity: 2}, {At: 650, Severity: 3}, {At: 1830, Severity: 3}, {At: 3030, Severity: 2}, {Server: 1, At: 640, Severity: 2}},
		Felt: [][]judge.Felt{{
			{Level: judge.Clear, What: "first token", From: 610, To: 700},
			{Level: judge.Great, What: "first token", From: 1810, To: 1850},
		}, nil},
		Said: make([][]judge.Said, 2),
	}
	for minute := range 120 {
		p.Lines = append(p.Lines, judge.Line{Minute: minute, Requests: 100, Condition: "healthy"})
	}
	for minute := range 120 {
		p.Lines = append(p.Lines, judge.Line{Server: 1, Minute: minute, Requests: 100, Condition: "healthy"})
	}
	m.Servers = 2
	s := scored(t, m, p)
	assert.Equal(t, []judge.Alarm{{At: 650, Severity: 3}, {At: 3030, Severity: 2}, {Server: 1, At: 640, Severity: 2}}, s.False)
	assert.InDelta(t, (240-5-4)/60.0, s.Healthy, 1e-9, "minutes 10 to 14, and 30 to 33")
}
