package main

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// The stories differ much, and the methods by the same in each: pairs show the difference
// exactly, although each value alone is uncertain.
func TestADifferenceIsOverPairs(t *testing.T) {
	var from, to []Score
	for i := range 40 {
		from = append(from, Score{Record: &Record{}, Healthy: 1, Slowed: float64(i%2) * 0.8})
		to = append(to, Score{Record: &Record{}, Healthy: 1, Slowed: float64(i%2)*0.8 + 0.1})
	}
	f := alarmFigure(func(*Score) bool { return true }, slowed)
	f.scale, f.unit = 100, points
	assert.InDelta(t, 0.4, f.valueOf(from), 1e-12)
	assert.Equal(t, "+10.0 points (+10.0 to +10.0)", f.differenceText(from, to))
	assert.Equal(t, "-10.0 points (-10.0 to -10.0)", f.differenceText(to, from))
	assert.Equal(t, "0.0 points (0.0 to 0.0)", f.differenceText(from, from))
	// The methods differ in half of the pairs: 40 independent differences of 0 or 0.8, whose mean
	// has a standard deviation of 0.4/sqrt(40).
	for i := range to {
		to[i].Slowed = 0
	}
	d := f.difference(to, from)
	assert.InDelta(t, 0.4, d.Value, 1e-12)
	assert.InDelta(t, 0.4-1.96*0.4/math.Sqrt(40), d.Low, 0.02)
	assert.InDelta(t, 0.4+1.96*0.4/math.Sqrt(40), d.High, 0.02)
	assert.Equal(t, "-", f.differenceText(nil, nil))
	assert.Equal(t, "+10.0 points", f.differenceText([]Score{{Record: &Record{}, Healthy: 1}}, []Score{{Record: &Record{}, Healthy: 1, Slowed: 0.1}}))
}

func TestADelayThatBecameNever(t *testing.T) {
	one := func(delay float64) []Score { return []Score{{Record: &Record{}, Noticed: 1, Delay: delay}} }
	f := delayFigure(func(*Score) bool { return true }, rightDelay)
	assert.Equal(t, "to never", f.differenceText(one(2), one(math.Inf(1))))
	assert.Equal(t, "from never", f.differenceText(one(math.Inf(1)), one(2)))
	assert.Equal(t, "-", f.differenceText(one(math.Inf(1)), one(math.Inf(1))))
	assert.Equal(t, "-1.5 windows", f.differenceText(one(3.5), one(2)))
}

// The figures are the values of the tables that they stand for.
func TestTheFiguresAreThoseOfTheTables(t *testing.T) {
	some := Scores(records(t, func(r *Record) {
		if r.Seed%3 == 0 {
			for i := range r.Lines {
				r.Lines[i].Causes = []judge.Cause{{Name: "cache_thrash", Role: "primary"}}
			}
			r.Alarms = append(r.Alarms, judge.Alarm{At: 200, Severity: 3, Condition: "failing"})
		}
		if r.Seed%5 == 0 {
			for i := range r.Lines {
				r.Lines[i].Severity, r.Lines[i].Condition, r.Lines[i].Causes = 0, "healthy", nil
			}
		}
	}))
	all := slices.Concat(stories.Inferred, stories.ReadOff)
	value := func(f figure) float64 { return f.valueOf(some) }
	for _, of := range []func(Counts) float64{ofRight, ofFamily, ofReported} {
		want := tally(some, all, strong).macro(of).Value
		require.Less(t, want, 1.0)
		assert.InDelta(t, want, value(macroFigure(all, strong, of)), 1e-12)
	}
	for _, r := range headlines() {
		assert.InDelta(t, r.seen(some, untuned).Value, value(r.figure(untuned)), 1e-12, r.name)
	}
	assert.InDelta(t, tally(some, all, mild).pooled(ofReported).Value, value(pooledFigure(all, mild, ofReported)), 1e-12)
	few := func(s *Score) bool { return !s.Objectives }
	a := alarmsIn(some, few)
	for _, column := range []int{nothing, paged} {
		require.Positive(t, a.sum[column])
		assert.InDelta(t, a.rate(column).Value, 10_000*value(alarmFigure(few, column)), 1e-9)
	}
	reported, right, of := outcomes(some, drifting)
	assert.InDelta(t, float64(reported)/float64(of), value(outcomeFigure(drifting, anyDelay)), 1e-12)
	assert.InDelta(t, float64(right)/float64(of), value(outcomeFigure(drifting, rightDelay)), 1e-12)
	assert.InDelta(t, medianOf(delaysOf(some, triple, anyDelay)).Value, value(delayFigure(triple, anyDelay)), 1e-12)
}

// Only stories that both have played, with the same truth, are compared.
func TestOnlyTheSameStoriesAreCompared(t *testing.T) {
	named := func(name, said string, change func(*Record)) Record {
		m := meta()
		m.Name = name
		r := newRecord(m, played("slow_steps", said))
		if change != nil {
			change(&r)
		}
		return r
	}
	before := []Record{
		named("only before", "slow_steps", nil), named("same", "decode_load", nil), named("other harm", "slow_steps", func(r *Record) { r.Lines[3].Effect++ }),
		named("other load", "slow_steps", func(r *Record) { r.Load = 0.7 }),
		named("never ended", "slow_steps", func(r *Record) { r.Lines[3].Unended = 0.5 }),
	}
	after := []Record{
		named("other harm", "slow_steps", nil), named("only after", "slow_steps", nil), named("same", "slow_steps", func(r *Record) {
			r.Alarms, r.Print, r.CPU = nil, "other sources", 7
		}), named("other load", "slow_steps", nil), named("never ended", "slow_steps", nil),
	}
	from, to, other := sameStories(before, after)
	require.Len(t, from, 1)
	require.Len(t, to, 1)
	assert.Equal(t, 3, other)
	assert.Equal(t, "decode_load", label(&from[0].Lines[10]))
	assert.Equal(t, "slow_steps", label(&to[0].Lines[10]))
	var page table
	page.compared(origin(), &Before{"0123abc", before}, after)
	assert.Contains(t, page.String(), "*Before* is the method of commit 0123abc")
	assert.Contains(t, page.String(), "the same 1 stories; 4 of the 5 stories of this page")
	assert.Contains(t, page.String(), "them (1) or because what is true of them differs (3)")
}

func TestThePageComparesWithTheMethodOfBefore(t *testing.T) {
	after := records(t, nil)
	before := records(t, func(r *Record) {
		for i := range r.Lines {
			if !r.Tuned {
				r.Lines[i].Severity, r.Lines[i].Condition, r.Lines[i].Causes = 0, "healthy", nil
			}
		}
		if r.Kind == stories.Healthy {
			r.Alarms = append(r.Alarms, judge.Alarm{At: 3000, Severity: 2, Condition: "degraded"})
		}
	})
	var page table
	page.compared(origin(), &Before{"0123abc", before}, after)
	section := page.String()
	assert.Contains(t, section, "| inferred causes: right, untuned models | 0.0 % (0.0 to ")
	assert.Contains(t, section, "| +100.0 points (+100.0 to +100.0) |")
	assert.Regexp(t, `inferred causes: right, tuned models \| 100.0 % .* \| 0.0 points \(0.0 to 0.0\) \|`, section)
	for _, b := range Bars(Scores(after)) {
		assert.Contains(t, section, "| "+b.Name+" |", "every bar has a row")
	}
	assert.Regexp(t, `warnings with nothing behind them, untuned, no objectives .* \| -\d+ \(-\d+ to -\d+\) \|`, section)
	assert.NotContains(t, section, "NaN")
	assert.NotContains(t, section, "%!")
	page = table{}
	page.compared(origin(), &Before{"0123abc", before[4:]}, after[:2])
	assert.Contains(t, page.String(), "has no story of this page")
}
