package main

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// table writes rows of a table.
type table struct{ strings.Builder }

func (t *table) line(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

func (t *table) head(cells ...string) {
	t.row(cells...)
	t.line("|%s", strings.Repeat("---|", len(cells)))
}

func (t *table) row(cells ...string) { t.line("| %s |", strings.Join(cells, " | ")) }

// headRow is a row of the headline: minutes of some causes.
type headRow struct {
	name   string
	causes []string
	of     func(Counts) float64
}

func (r *headRow) seen(scores []Score, keep func(*Score, *Verdict) bool) Interval {
	return tally(scores, r.causes, keep).macro(r.of)
}

func headlines() []headRow {
	var out []headRow
	for _, group := range []struct {
		name   string
		causes []string
	}{
		{"causes that must be inferred", stories.Inferred},
		{"causes that are read off", stories.ReadOff},
	} {
		out = append(out, headRow{group.name + ": right cause", group.causes, ofRight}, headRow{group.name + ": among the top two", group.causes, ofTopTwo},
			headRow{group.name + ": harm reported", group.causes, ofReported})
	}
	return out
}

// headline is what a reader must find first.
func (t *table) headline(scores []Score) {
	t.head("harmful minutes of effect 2 or more", "tuned models", "untuned models")
	for _, r := range headlines() {
		t.row(r.name, within(r.seen(scores, tuned)), within(r.seen(scores, untuned)))
	}
	t.line("")
	t.head("without a fault", "warnings and pages in 10,000 hours", "pages", "share of the time with a false report", "hours")
	row := func(name string, a Alarms) {
		t.row(name, a.warningText(), a.pageText(), a.timeText(), fmt.Sprintf("%.0f", a.hours))
	}
	promised := func(s *Score) bool { return !s.Recorded && s.Objectives }
	row("without objectives", falseAlarms(scores, func(s *Score) bool { return !s.Recorded && !s.Objectives }))
	row("with objectives", falseAlarms(scores, promised))
	row("the same, and hours in which an objective is really missed", strictAlarms(scores, promised))
	row("with and without objectives", falseAlarms(scores, func(s *Score) bool { return !s.Recorded }))
}

func (t *table) bars(bars []Bar) {
	t.head("", "must", "moonshot", "measured", "result")
	for i := range bars {
		b := &bars[i]
		t.row(b.Name, b.Must, b.Wish, b.Seen, "**"+b.Verdict()+"**")
	}
}

// causes has a row for each cause, with the minutes that strong keeps.
func (t *table) causes(scores []Score) {
	t.head("true cause", "stories", "minutes", "of these drift or from the start", "harm reported", "right", "among the top two", "right, tuned models", "right, untuned models")
	for _, group := range [][]string{stories.Inferred, stories.ReadOff} {
		for _, name := range group {
			one := []string{name}
			all := tally(scores, one, strong)
			_, n := all.total(0)
			long := tally(scores, one, func(s *Score, v *Verdict) bool { return strong(s, v) && slow(s) })
			t.row(name, strconv.Itoa(n), fmt.Sprintf("%.0f", all.minutes()), fmt.Sprintf("%.0f", long.minutes()), percent(all.macro(ofReported).Value), within(all.macro(ofRight)),
				percent(all.macro(ofTopTwo).Value), percent(tally(scores, one, tuned).macro(ofRight).Value), percent(tally(scores, one, untuned).macro(ofRight).Value))
		}
	}
}

// point is a point of the detection curve.
type point struct {
	stories         int
	reported, right Interval
	ever            float64
}

// curvePoint is the share of harmful minutes of stories of one size that were reported,
// and right, and the share of these stories that were ever reported.
func curvePoint(scores []Score, effect float64, keep func(*Score) bool) point {
	chosen := func(s *Score) bool { return sized(s) && effectBin(s.got()) == effect && keep(s) }
	all := slices.Concat(stories.Inferred, stories.ReadOff)
	minutes := tally(scores, all, func(s *Score, v *Verdict) bool { return chosen(s) && v.Ours })
	reported, _, of := outcomes(scores, chosen)
	p := point{stories: of, reported: minutes.pooled(ofReported), right: minutes.pooled(ofRight), ever: math.NaN()}
	if of > 0 {
		p.ever = float64(reported) / float64(of)
	}
	return p
}

// onCurve keeps the stories of the detection curve at a rate.
func onCurve(rate float64) func(*Score) bool {
	return func(s *Score) bool { return s.Kind == stories.Curve && s.Rate == rate }
}

// singles keeps the other stories of one inferred cause, on all backgrounds.
func singles(tuned bool) func(*Score) bool {
	return func(s *Score) bool {
		return s.Kind == stories.Single && s.Tuned == tuned && slices.Contains(stories.Inferred, s.Injections[0].Cause)
	}
}

func (t *table) curve(scores []Score) {
	t.head("", "effect", "stories", "minutes reported", "minutes right", "stories ever reported")
	rows := func(name string, keep func(*Score) bool) {
		for _, effect := range stories.Effects {
			p := curvePoint(scores, effect, keep)
			t.row(name, number(effect), strconv.Itoa(p.stories), within(p.reported), within(p.right), percent(p.ever))
		}
	}
	for _, rate := range stories.CurveRates {
		rows(fmt.Sprintf("8B, %s/s", number(rate)), onCurve(rate))
	}
	rows("inferred causes, tuned models", singles(true))
	rows("inferred causes, untuned models", singles(false))
}

func (t *table) delays(scores []Score) {
	t.head("effect", "stories", "harm reported: median", "90 %", "reported already", "right cause: median", "90 %", "never right")
	row := func(name string, keep func(*Score) bool) {
		noticed, right := delaysOf(scores, keep, anyDelay), delaysOf(scores, keep, rightDelay)
		already := 0
		for i := range scores {
			if s := &scores[i]; s.Already && keep(s) {
				already++
			}
		}
		t.row(name, strconv.Itoa(len(right)), medianText(noticed), windows(quantile(noticed, 0.9)), strconv.Itoa(already),
			medianText(right), windows(quantile(right, 0.9)), strconv.Itoa(never(right)))
	}
	for _, effect := range stories.Effects {
		row(number(effect), func(s *Score) bool { return sized(s) && effectBin(s.got()) == effect })
	}
	row("without a size (stall, sleep)", func(s *Score) bool { return s.Kind == stories.Single && !s.Recorded && len(s.Sought) == 0 })
	row("two faults", func(s *Score) bool { return s.Kind == stories.Pair })
}

// alarms are false alarms by background and by load.
func (t *table) alarms(scores []Score) {
	columns := []struct {
		name       string
		objectives bool
	}{{"no objectives", false}, {"with objectives", true}}
	head := []string{""}
	for _, c := range columns {
		head = append(head, "hours, "+c.name, "warnings and pages", "pages")
	}
	t.head(head...)
	rowOf := func(name string, of func([]Score, func(*Score) bool) Alarms, keep func(*Score) bool) {
		cells := []string{name}
		for _, c := range columns {
			a := of(scores, func(s *Score) bool { return !s.Recorded && s.Objectives == c.objectives && keep(s) })
			if a.hours == 0 {
				cells = append(cells, "", "", "")
				continue
			}
			cells = append(cells, fmt.Sprintf("%.0f", a.hours), a.warningText(), a.pageText())
		}
		t.row(cells...)
	}
	row := func(name string, keep func(*Score) bool) { rowOf(name, falseAlarms, keep) }
	row("all", func(*Score) bool { return true })
	row("healthy stories", func(s *Score) bool { return s.Kind == stories.Healthy })
	rowOf("first hour of healthy stories", firstHour, func(*Score) bool { return true })
	row("before the onset of a fault, and other servers of a pool", func(s *Score) bool { return s.Kind != stories.Healthy })
	for _, band := range stories.Bands() {
		row("load "+band, func(s *Score) bool { return stories.Band(s.Load) == band })
	}
	row("tuned models", func(s *Score) bool { return s.Tuned })
	row("untuned models", func(s *Score) bool { return !s.Tuned })
	row("20 requests in nine of ten minutes", func(s *Score) bool { return 10*s.Judged >= 9*s.Minutes })
	for _, v := range stories.Variants {
		row(v, func(s *Score) bool { return s.Kind == stories.Healthy && s.Variant == v })
	}
}

// silence are the faults that are easily missed.
func (t *table) silence(scores []Score) {
	all := slices.Concat(stories.Inferred, stories.ReadOff)
	t.head("", "stories with harm", "ever reported", "ever right", "minutes reported", "minutes right", "minutes silent")
	row := func(name string, stories func(*Score) bool, minutes func(*Score, *Verdict) bool) {
		keep := func(s *Score, v *Verdict) bool { return stories(s) && minutes(s, v) }
		reported, right, of := outcomes(scores, stories)
		m := tally(scores, all, keep)
		silent := m.pooled(ofReported)
		silent.Value, silent.Low, silent.High = 1-silent.Value, 1-silent.High, 1-silent.Low
		t.row(name, strconv.Itoa(of), strconv.Itoa(reported), strconv.Itoa(right), within(m.pooled(ofReported)), within(m.pooled(ofRight)), within(silent))
	}
	every := func(_ *Score, v *Verdict) bool { return v.Ours }
	ours := func(s *Score) bool { return !s.Recorded && !slow(s) }
	healthy := func(s *Score) bool { return s.Kind == stories.Healthy && !s.Recorded }
	overloaded := func(s *Score) bool {
		return slices.ContainsFunc(s.Verdicts, func(v Verdict) bool { return v.Class == demand })
	}
	grew := func(s *Score) bool {
		return slices.ContainsFunc(s.Verdicts, func(v Verdict) bool { return v.Class != "" && growth(s, &v) })
	}
	row("all stories with a fault, effect 2 or more", func(s *Score) bool { return ours(s) && s.hasFault() }, func(s *Score, v *Verdict) bool { return strong(s, v) && v.Ours })
	row("mild: minutes of effect 1 to 2 by faults of this effect", func(s *Score) bool { return sized(s) && s.got() < strongEffect }, mild)
	row("mild: stories of effect 1 to 1.3", func(s *Score) bool {
		return sized(s) && effectBin(s.got()) < strongEffect
	}, every)
	row("a ramp of minutes", func(s *Score) bool {
		return s.Kind == stories.Single && !s.Recorded && s.Injections[0].Over > 0
	}, every)
	row("rising traffic, inferred causes", func(s *Score) bool {
		return s.Kind == stories.Single && s.Rising && !s.Recorded && slices.Contains(stories.Inferred, s.Injections[0].Cause)
	}, every)
	row("onset in the first 15 minutes", func(s *Score) bool {
		return s.Kind == stories.Single && !s.Recorded && s.Injections[0].At < 900
	}, every)
	row("drift over 4 h to effect 2", func(s *Score) bool { return s.Kind == stories.Drift }, every)
	row("from the start, alone", func(s *Score) bool { return s.Kind == stories.FromStart && !s.Pool }, every)
	row("from the start, one of three in a pool", func(s *Score) bool { return s.Kind == stories.FromStart && s.Pool }, every)
	row("two faults", func(s *Score) bool { return s.Kind == stories.Pair }, every)
	row("closed loop", func(s *Score) bool { return s.Kind == stories.Single && s.Traffic == "assistant" && !s.Recorded }, every)
	row("clients that retry", func(s *Score) bool { return s.Retries && !s.Recorded }, every)
	row("overload without a fault", func(s *Score) bool { return healthy(s) && overloaded(s) }, func(_ *Score, v *Verdict) bool { return v.Class == demand })
	row("a legitimate growth that does harm", func(s *Score) bool { return healthy(s) && grew(s) }, growth)
	row("with objectives", func(s *Score) bool { return s.Kind == stories.Single && s.Objectives && !s.Recorded }, every)
	row("without objectives", func(s *Score) bool { return s.Kind == stories.Single && !s.Objectives && !s.Recorded }, every)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
