package main

import (
	"slices"
)

// Counts are numbers of harmful minutes.
type Counts struct{ Of, Reported, Right, Family, Named float64 }

func (c *Counts) add(v *Verdict) {
	c.Of++
	if v.Reported {
		c.Reported++
	}
	if v.Right {
		c.Right++
	}
	if v.Family {
		c.Family++
	}
	if v.Named {
		c.Named++
	}
}

// The measures of a minute.
func ofReported(c Counts) float64 { return c.Reported }
func ofRight(c Counts) float64    { return c.Right }
func ofFamily(c Counts) float64   { return c.Family }
func ofNamed(c Counts) float64    { return c.Named }

// Tally adds up the counted minutes of stories by their cause.
type Tally struct {
	causes []string
	// byStory has, for each story with such minutes, its counts in the order of the causes.
	byStory [][]Counts
}

// tally counts the minutes that a filter keeps, of the given causes.
func tally(scores []Score, causes []string, keep func(*Score, *Verdict) bool) *Tally {
	t := &Tally{causes: causes}
	for i := range scores {
		if own := countsOf(&scores[i], causes, keep); own != nil {
			t.byStory = append(t.byStory, own)
		}
	}
	return t
}

// countsOf are the counts of a story in the order of the causes; nil without a minute.
func countsOf(s *Score, causes []string, keep func(*Score, *Verdict) bool) []Counts {
	var own []Counts
	for j := range s.Verdicts {
		v := &s.Verdicts[j]
		c := slices.Index(causes, v.Class)
		if c < 0 || v.Phase != Counted || !keep(s, v) {
			continue
		}
		if own == nil {
			own = make([]Counts, len(causes))
		}
		own[c].add(v)
	}
	return own
}

// byName has the minutes of a story that a filter keeps, by the cause that is named instead of the true one.
func byName(s *Score, keep func(*Score, *Verdict) bool) *Score {
	out := *s
	out.Verdicts = slices.DeleteFunc(slices.Clone(s.Verdicts), func(v Verdict) bool { return !v.Named || !keep(s, &v) })
	for i := range out.Verdicts {
		out.Verdicts[i].Class = out.Verdicts[i].Said
	}
	return &out
}

// whatever keeps every minute.
func whatever(*Score, *Verdict) bool { return true }

// total is the sum over all stories, of one cause.
func (t *Tally) total(cause int) (sum Counts, stories int) {
	for _, own := range t.byStory {
		if own[cause].Of > 0 {
			stories++
		}
		sum.Of += own[cause].Of
		sum.Reported += own[cause].Reported
		sum.Right += own[cause].Right
		sum.Family += own[cause].Family
		sum.Named += own[cause].Named
	}
	return sum, stories
}

// macro is the mean over the causes of the share of minutes, each cause with the same
// weight, with an interval over stories.
func (t *Tally) macro(of func(Counts) float64) Interval {
	rows := t.rows(of)
	return shareOf(len(rows), func(times []int) float64 { return meanOfShares(rows, times) })
}

// rows has for each story and cause the minutes of a kind, and all.
func (t *Tally) rows(of func(Counts) float64) [][]float64 {
	out := make([][]float64, 0, len(t.byStory))
	for _, own := range t.byStory {
		out = append(out, rowOf(own, of))
	}
	return out
}

// minutes is the number of minutes of all causes.
func (t *Tally) minutes() float64 {
	n := 0.0
	for c := range t.causes {
		sum, _ := t.total(c)
		n += sum.Of
	}
	return n
}

// missing are the causes without a minute.
func (t *Tally) missing() []string {
	var out []string
	for c, name := range t.causes {
		if sum, _ := t.total(c); sum.Of == 0 {
			out = append(out, name)
		}
	}
	return out
}

// pooled is the share of all minutes, whatever their cause, with an interval over stories.
func (t *Tally) pooled(of func(Counts) float64) Interval {
	rows := t.rows(of)
	return shareOf(len(rows), func(times []int) float64 { return shareOfAll(rows, times) })
}
