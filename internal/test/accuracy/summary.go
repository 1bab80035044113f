package accuracy

import (
	"cmp"
	"math"
	"slices"
)

// Summary is the score of many stories.
type Summary struct {
	// Minutes and TopTwo are the shares of minutes with a right report, by true class.
	// Runs is the same with each story as one observation, which is the share of its
	// minutes. The minutes of a story are not independent; stories are.
	Minutes, TopTwo, Runs map[string]Share
	// Confusion counts minutes by true class and by reported cause or condition.
	Confusion map[string]map[string]int
	// Delays are in windows, ascending; +Inf is never.
	Delays []float64
	// Settling, Undetermined and Unjudged are harmful minutes that do not count.
	Settling, Undetermined, Unjudged int
	// Quiet counts the minutes before any onset, Noisy those of them with reported harm.
	Quiet, Noisy int
	// Stories is the number of stories, Harmless the number of those without harm.
	Stories, Harmless int
}

// Summarize adds results up.
func Summarize(results []Result) Summary {
	s := Summary{
		Minutes: map[string]Share{}, TopTwo: map[string]Share{}, Runs: map[string]Share{},
		Confusion: map[string]map[string]int{}, Stories: len(results),
	}
	for i := range results {
		s.add(&results[i])
	}
	slices.Sort(s.Delays)
	return s
}

func (s *Summary) add(r *Result) {
	s.Settling += r.Settling
	s.Undetermined += r.Undetermined
	s.Unjudged += r.Unjudged
	s.Quiet += r.Quiet
	s.Noisy += r.Noisy
	if len(r.Harmful) == 0 {
		s.Harmless++
	}
	if !math.IsNaN(r.Delay) {
		s.Delays = append(s.Delays, r.Delay)
	}
	own := map[string]Share{}
	for _, v := range r.Verdicts {
		addShare(s.Minutes, v.Class, v.Right)
		addShare(s.TopTwo, v.Class, v.TopTwo)
		addShare(own, v.Class, v.Right)
		if s.Confusion[v.Class] == nil {
			s.Confusion[v.Class] = map[string]int{}
		}
		s.Confusion[v.Class][v.Reported]++
	}
	for class, share := range own {
		all := s.Runs[class]
		all.Right += share.Value()
		all.Of++
		s.Runs[class] = all
	}
}

func addShare(to map[string]Share, class string, right bool) {
	share := to[class]
	share.Of++
	if right {
		share.Right++
	}
	to[class] = share
}

// quantileOf returns the smallest value that the share q of the ascending values does
// not exceed; NaN without values.
func quantileOf(ascending []float64, q float64) float64 {
	if len(ascending) == 0 {
		return math.NaN()
	}
	n := int(math.Ceil(q*float64(len(ascending)) - 1e-9))
	return ascending[min(len(ascending), max(1, n))-1]
}

// Alarms are the false alarms of healthy engines.
type Alarms struct {
	Hours  float64
	Alarms []Alarm
}

// Count is the number of alarms of a severity.
func (a *Alarms) Count(severity int) int {
	n := 0
	for _, alarm := range a.Alarms {
		if alarm.Severity == severity {
			n++
		}
	}
	return n
}

// worst returns the stories with the most wrong minutes, the worst first.
func worst(results []Result, n int) []Result {
	wrong := func(r *Result) int {
		n := 0
		for _, v := range r.Verdicts {
			if !v.Right {
				n++
			}
		}
		return n
	}
	out := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return wrong(&r) == 0 })
	slices.SortStableFunc(out, func(a, b Result) int { return cmp.Compare(wrong(&b), wrong(&a)) })
	return out[:min(n, len(out))]
}
