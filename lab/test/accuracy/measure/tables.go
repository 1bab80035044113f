package main

import (
	"fmt"
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

// headRow is a row of the headline: the share of some minutes that are of a kind.
type headRow struct {
	name string
	// seen and figure are of the minutes that a filter keeps.
	seen   func([]Score, func(*Score, *Verdict) bool) Interval
	figure func(func(*Score, *Verdict) bool) figure
}

// mean is a row of a mean over causes, each with the same weight.
func mean(name string, causes []string, of func(Counts) float64) headRow {
	return headRow{name, func(scores []Score, keep func(*Score, *Verdict) bool) Interval {
		return tally(scores, causes, keep).macro(of)
	}, func(keep func(*Score, *Verdict) bool) figure { return macroFigure(causes, keep, of) }}
}

// headlines are the rows about harmful minutes.
func headlines() []headRow {
	return []headRow{
		mean("inferred causes: right", stories.Inferred, ofRight),
		mean("inferred causes: right by family", stories.Inferred, ofFamily),
		mean("inferred causes: harm reported", stories.Inferred, ofReported),
		mean("inferred causes: a cause is named", stories.Inferred, ofNamed),
		{"a named inferred cause is right", func(scores []Score, keep func(*Score, *Verdict) bool) Interval {
			return tally(scores, everyCause, precise(keep)).pooled(ofRight)
		}, func(keep func(*Score, *Verdict) bool) figure { return pooledFigure(everyCause, precise(keep), ofRight) }},
		{"the same, mean over the names", func(scores []Score, keep func(*Score, *Verdict) bool) Interval {
			named := make([]Score, len(scores))
			for i := range scores {
				named[i] = *byName(&scores[i], keep)
			}
			return tally(named, inferredNames, whatever).macro(ofRight)
		}, func(keep func(*Score, *Verdict) bool) figure {
			f := macroFigure(inferredNames, whatever, ofRight)
			of := f.of
			f.of = func(s *Score) []float64 { return of(byName(s, keep)) }
			return f
		}},
		mean("causes that are read off: right", stories.ReadOff, ofRight),
	}
}

// fleetRows are what is counted in hours without a fault.
var fleetRows = []struct {
	name   string
	column int
}{
	{"warnings with nothing behind them", nothing},
	{"warnings in natural slow-downs", natural},
	{"notices of slower service", noticed},
	{"pages without a cause to page", paged},
}

// group are servers whose alarms are told apart.
type group struct {
	name string
	keep func(*Score) bool
}

// groups are those on generated traffic.
func groups() (out []group) {
	for _, tuned := range []bool{true, false} {
		for _, objectives := range []bool{false, true} {
			name := map[bool]string{true: "tuned", false: "untuned"}[tuned] + map[bool]string{true: ", objectives", false: ", no objectives"}[objectives]
			out = append(out, group{name, func(s *Score) bool { return !s.Recorded && s.Tuned == tuned && s.Objectives == objectives }})
		}
	}
	return out
}

// week is what a fleet of servers as in the bars gets in a week.
func (t *table) week(scores []Score) {
	of := judgedIn(scores)
	in := func(objectives bool) Alarms {
		return alarmsIn(scores, func(s *Score) bool { return of.models(s) && !s.Recorded && s.Objectives == objectives })
	}
	without, with := in(false), in(true)
	t.head("100 servers without a fault ("+of.name+"), in a week", "without objectives", "with")
	for _, r := range fleetRows {
		t.row(r.name, without.weekText(r.column), with.weekText(r.column))
	}
	t.row("time in natural slow-downs", without.shareText(slowed), with.shareText(slowed))
	t.row("hours measured", fmt.Sprintf("%.0f", without.sum[hours]), fmt.Sprintf("%.0f", with.sum[hours]))
}

func fleetNames() (out []string) {
	for _, r := range fleetRows {
		out = append(out, r.name)
	}
	return out
}

// headline is what a reader must find first.
func (t *table) headline(scores []Score) {
	t.week(scores)
	t.line("")
	t.right(scores)
}

// right is how often reports are right.
func (t *table) right(scores []Score) {
	t.head("harmful minutes of effect 2 or more", "tuned models", "untuned models")
	for _, r := range headlines() {
		t.row(r.name, within(r.seen(scores, tuned)), within(r.seen(scores, untuned)))
	}
}

// bars has what was measured.
func (t *table) bars(bars []Bar) {
	t.head("untuned models", "must", "moonshot", "measured", "result")
	for i := range bars {
		b := &bars[i]
		t.row(b.Name, b.Must, b.Wish, b.Seen, "**"+b.Verdict()+"**")
	}
}

// causes has a row for each cause, with the minutes that strong keeps.
func (t *table) causes(scores []Score) {
	t.head("true cause", "stories", "minutes", "of these drift or from the start", "harm reported", "right", "by family", "right, tuned models", "right, untuned models")
	for _, name := range everyCause {
		one := []string{name}
		all := tally(scores, one, strong)
		_, n := all.total(0)
		long := tally(scores, one, func(s *Score, v *Verdict) bool { return strong(s, v) && slow(s) })
		t.row(name, strconv.Itoa(n), fmt.Sprintf("%.0f", all.minutes()), fmt.Sprintf("%.0f", long.minutes()), percent(all.macro(ofReported).Value), within(all.macro(ofRight)),
			percent(all.macro(ofFamily).Value), percent(tally(scores, one, tuned).macro(ofRight).Value), percent(tally(scores, one, untuned).macro(ofRight).Value))
	}
}

func (t *table) delays(scores []Score) {
	t.head("effect", "stories", "harm reported: median", "harm reported: 90 %", "reported already", "right cause: median", "right cause: 90 %", "never right")
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

// alarms are what is counted in 10,000 hours without a fault, by background and by load.
func (t *table) alarms(scores []Score) {
	t.head(append([]string{"", "hours", "in natural slow-downs", "with a false report"}, fleetNames()...)...)
	rowOf := func(name string, a Alarms) {
		cells := []string{name, fmt.Sprintf("%.0f", a.sum[hours]), a.shareText(slowed), a.shareText(falsely)}
		for _, r := range fleetRows {
			cells = append(cells, a.text(r.column))
		}
		t.row(cells...)
	}
	row := func(name string, keep func(*Score) bool) {
		rowOf(name, alarmsIn(scores, func(s *Score) bool { return !s.Recorded && keep(s) }))
	}
	row("all", func(*Score) bool { return true })
	for _, g := range groups() {
		row(g.name, g.keep)
	}
	row("before the onset of a fault, and other servers of a pool", func(s *Score) bool { return s.Kind != stories.Healthy })
	rowOf("first hour of healthy stories", firstHour(scores))
	for _, band := range stories.Bands() {
		row("load "+band, func(s *Score) bool { return stories.Band(s.Load) == band })
	}
	row("20 requests in nine of ten minutes", func(s *Score) bool { return 10*s.Judged >= 9*s.Minutes })
	row("fewer requests", func(s *Score) bool { return 10*s.Judged < 9*s.Minutes })
	for _, v := range stories.Variants {
		row(v, func(s *Score) bool { return s.Kind == stories.Healthy && s.Variant == v })
	}
	rowOf("recorded traffic", alarmsIn(scores, func(s *Score) bool { return s.Recorded }))
}

// silence are the faults that are easily missed.
func (t *table) silence(scores []Score) {
	t.head("", "stories with harm", "ever reported", "ever right", "minutes reported", "minutes right", "minutes silent")
	row := func(name string, stories func(*Score) bool, minutes func(*Score, *Verdict) bool) {
		keep := func(s *Score, v *Verdict) bool { return stories(s) && minutes(s, v) }
		reported, right, of := outcomes(scores, stories)
		m := tally(scores, everyCause, keep)
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
