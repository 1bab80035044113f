package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Two minutes in a row in which users wait are a natural slow-down, with the three after them; one is chance. The rule is
// the same with and without objectives.
func TestAWarningInANaturalSlowDown(t *testing.T) {
	for _, objectives := range []bool{false, true} {
		m := meta()
		m.Kind, m.Injections, m.Objectives = stories.Healthy, nil, objectives
		p := played("slow_steps", "slow_steps")
		for i := range p.Lines {
			l := &p.Lines[i]
			l.Harmful, l.Effect, l.TrueCauses, l.Requests = false, 0, nil, 4
			l.Slow = i == 5 || i == 20 || i == 21 || i == 50
		}
		for _, minute := range []float64{5, 19, 20, 24, 25, 50} {
			p.Alarms = append(p.Alarms, judge.Alarm{At: 60*minute + 30, Severity: 2})
		}
		p.Alarms = slices.Delete(p.Alarms, 0, 1)
		s := scored(t, m, p)
		require.Len(t, s.Slow, 4)
		at := func(alarms []judge.Alarm) (out []int) {
			for _, a := range alarms {
				out = append(out, int(a.At/60))
			}
			return out
		}
		assert.Equal(t, []int{20, 24}, at(s.Natural))
		assert.Equal(t, []int{5, 19, 25, 50}, at(s.False))
		assert.InDelta(t, 1, s.Healthy, 1e-9, "both are counted in the same hours")
		assert.InDelta(t, 5/60.0, s.Slowed, 1e-9)
		a := alarmsIn([]Score{s}, func(s *Score) bool { return s.Objectives == objectives })
		assert.Equal(t, []float64{4, 2}, []float64{a.sum[nothing], a.sum[natural]})
	}
}

// A notice is not a warning, and is counted apart: once, and not where a warning became weaker.
func TestNoticesAreCountedApart(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	p := &judge.Played{Felt: make([][]judge.Felt, 1), Said: [][]judge.Said{{
		{At: 0, Condition: "healthy"},
		{At: 300, Condition: "degraded", Severity: 1, Cause: "work_grew"},
		{At: 330, Condition: "degraded", Severity: 1},
		{At: 400, Condition: "healthy"},
		{At: 600, Condition: "degraded", Severity: 2},
		{At: 700, Condition: "degraded", Severity: 1},
		{At: 900, Condition: "asleep", Severity: 1},
		{At: 1500, Condition: "degraded", Severity: 1},
	}}}
	for minute := range 60 {
		p.Lines = append(p.Lines, judge.Line{Minute: minute, Requests: 100, Condition: "healthy", Harmful: minute == 24})
	}
	p.Alarms = []judge.Alarm{{At: 600, Severity: 2, Condition: "degraded"}}
	s := scored(t, m, p)
	assert.Equal(t, []judge.Alarm{{At: 300, Severity: 1, Condition: "degraded", Cause: "work_grew"}}, s.Notices, "that of 1500 s is of harm")
	assert.Len(t, s.False, 1)
}

// A report that begins with harm and stays is not a new alarm, but it is time with a false report.
func TestAFalseReportThatStaysIsTime(t *testing.T) {
	m := meta()
	m.Kind, m.Injections = stories.Healthy, nil
	p := played("demand_exceeds_capacity", "demand_exceeds_capacity")
	for minute := 43; minute < 56; minute++ {
		p.Lines[minute].Severity, p.Lines[minute].Condition = 2, "degraded"
		p.Lines[minute].Slow = minute >= 50
	}
	s := scored(t, m, p)
	assert.Empty(t, s.False)
	// Three minutes after the harm are excused, and from minute 50 on users wait, up to three minutes after 55.
	assert.InDelta(t, 4/60.0, s.FalseTime, 1e-9)
	assert.InDelta(t, 9/60.0, s.Slowed, 1e-9)
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
	first, whole := firstHour([]Score{s}), alarmsIn([]Score{s}, func(*Score) bool { return true })
	assert.Equal(t, []float64{2, 1}, []float64{first.sum[nothing], first.sum[paged]})
	assert.InDelta(t, (60-13)/60.0, first.sum[hours], 1e-9)
	assert.InDelta(t, 3, whole.sum[nothing], 0)
	assert.InDelta(t, (120-13)/60.0, whole.sum[hours], 1e-9)
	s.Kind = stories.Single
	assert.Zero(t, firstHour([]Score{s}).sum[hours], "stories with a fault are too short")
}

// A burst of the traffic makes users wait: a warning is natural then, but a page needs great harm.
func TestWhatUsersFeelIsANaturalSlowDown(t *testing.T) {
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
	assert.Equal(t, []judge.Alarm{{At: 630, Severity: 2}, {At: 650, Severity: 3}, {At: 1830, Severity: 3}}, s.Natural)
	assert.Equal(t, []judge.Alarm{{At: 3030, Severity: 2}, {Server: 1, At: 640, Severity: 2}}, s.False)
	assert.Equal(t, []judge.Alarm{{At: 650, Severity: 3}}, s.Pages)
	assert.InDelta(t, 4, s.Healthy, 1e-9)
	assert.InDelta(t, (5+4)/60.0, s.Slowed, 1e-9, "minutes 10 to 14, and 30 to 33")
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
