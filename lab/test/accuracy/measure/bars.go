package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Bar is a value that the method of the diagnosis must reach. The measure prints
// whether the present one does.
type Bar struct {
	Name, Must, Wish, Seen string
	// Held is whether Must is reached, Wished whether Wish is. Unmeasured bars are neither.
	// Unproven bars are held by too few hours or stories to exclude that they are missed.
	Held, Wished, Unmeasured, Unproven bool
	// figure is what is compared between two methods; that of an unmeasured bar has nothing.
	figure figure
}

// Verdict is the bar's result as a word.
func (b Bar) Verdict() string {
	switch {
	case b.Unmeasured:
		return "not measured"
	case b.Held && b.Unproven:
		return "held as far as measured"
	case b.Wished:
		return "held, the moonshot as well"
	case b.Held:
		return "held"
	}
	return "missed"
}

// strongEffect is the effect from which a minute counts for the bars.
const strongEffect = 2.0

// strong reports whether a minute counts for the bars: the harm is at least twice the bar
// of harm, and the traffic is the generator's, which anybody has.
func strong(s *Score, v *Verdict) bool {
	return v.Effect >= strongEffect && !s.Recorded && !growth(s, v)
}

// growth reports whether the harm is by a legitimate growth. It is not a fault, its size was
// not sought, and it lasts for hours: the few stories that have it would outweigh all faults
// with the same cause. They have a row of their own.
func growth(s *Score, v *Verdict) bool {
	return s.Kind == stories.Healthy && v.Class != demand
}

// demand is the cause of traffic that is too much by itself.
const demand = "demand_exceeds_capacity"

func untuned(s *Score, v *Verdict) bool { return strong(s, v) && !s.Tuned }
func tuned(s *Score, v *Verdict) bool   { return strong(s, v) && s.Tuned }

// mild reports whether the harm is between once and twice the bar of harm, and by a fault
// of this effect: the beginning of a severe fault, or traffic that is a little too much, is
// no mild fault.
func mild(s *Score, v *Verdict) bool {
	return v.Effect > 1 && v.Effect < strongEffect && v.Ours && sized(s) && s.got() < strongEffect
}

// slow are the stories with tables of their own.
func slow(s *Score) bool { return s.Kind == stories.Drift || s.Kind == stories.FromStart }

// drifting are the stories of a bar.
func drifting(s *Score) bool { return s.Kind == stories.Drift }

// judged are the models that the bars are about: those that nothing was tuned on. Of the tuning set, which has none of them,
// it is all.
type judged struct {
	name    string
	models  func(*Score) bool
	minutes func(*Score, *Verdict) bool
}

func judgedIn(scores []Score) judged {
	held := func(s *Score) bool { return !s.Tuned }
	if slices.ContainsFunc(scores, func(s Score) bool { return held(&s) }) {
		return judged{"untuned models", held, untuned}
	}
	return judged{"tuned models", func(*Score) bool { return true }, tuned}
}

// everyCause are all causes.
var everyCause = slices.Concat(stories.Inferred, stories.ReadOff)

// inferredNames are the names of causes that must be inferred; cache_thrash is never the true cause, but another name of one.
var inferredNames = append(slices.Clone(stories.Inferred), "cache_thrash")

// precise keeps the minutes with a named cause that must be inferred.
func precise(keep func(*Score, *Verdict) bool) func(*Score, *Verdict) bool {
	return func(s *Score, v *Verdict) bool { return keep(s, v) && v.Named }
}

// Bars compares what was measured with the bars.
func Bars(scores []Score) []Bar {
	of := judgedIn(scores)
	everywhere := func(*Score) bool { return true }
	moderate := func(objectives bool) func(*Score) bool {
		return func(s *Score) bool { return of.models(s) && s.Load < 0.8 && s.Objectives == objectives }
	}
	warned := func(name string, objectives bool) Bar {
		a := alarmsIn(scores, moderate(objectives))
		return rate("warnings with nothing behind, to 80 % load, "+name, 60, 2, 10_000, &a, nothing, alarmFigure(moderate(objectives), nothing))
	}
	pages, tickets := alarmsIn(scores, everywhere), ticketsIn(scores, of.models)
	inferred := func(name string, must, wish float64, count func(Counts) float64) Bar {
		return share(name, must, wish, tally(scores, stories.Inferred, of.minutes).macro(count), macroFigure(stories.Inferred, of.minutes, count), true)
	}
	named := precise(of.minutes)
	return []Bar{
		warned("without objectives", false), warned("with objectives", true),
		rate("tickets, natural slow-downs included", 120, 10, 10_000, &tickets, natural, ratioFigure(func(s *Score) []float64 {
			if !of.models(s) {
				return nil
			}
			return ticketRow(s)
		}, 10_000, "")),
		rate("pages without a cause to page, all models", 0, 0, 15_000, &pages, paged, alarmFigure(everywhere, paged)),
		inferred("inferred causes right", 0.57, 0.65, ofRight),
		inferred("right by family", 0.62, 0.72, ofFamily),
		share("precision of named causes", 0.75, 0.90, tally(scores, everyCause, named).pooled(ofRight), pooledFigure(everyCause, named, ofRight), false),
		delayed(scores, of.models),
		drifted(scores),
	}
}

// share is a bar for a share; for its lower bound if lower is set.
func share(name string, must, wish float64, seen Interval, f figure, lower bool) Bar {
	value, of := seen.Value, ""
	if lower {
		value, of = seen.Low, "lower bound"
	}
	b := Bar{
		Name: name, Must: strings.TrimSpace(fmt.Sprintf("%s %.0f %%", of, 100*must)), Wish: fmt.Sprintf("%.0f %%", 100*wish), Seen: within(seen),
		Unmeasured: math.IsNaN(seen.Value), figure: f,
	}
	b.Held, b.Wished = !b.Unmeasured && value >= must, !b.Unmeasured && value >= wish
	return b
}

// rate is a bar for what is counted in so many hours.
func rate(name string, must, wish, per float64, a *Alarms, column int, f figure) Bar {
	seen, of := a.rate(column), a.sum[hours]
	b := Bar{
		Name: name, Must: fmt.Sprintf("%.0f in %.0f,000 h", must, per/1000), Wish: fmt.Sprintf("%.0f", wish),
		Seen: fmt.Sprintf("%s, %.0f in %.0f h", perTenThousand(seen), a.sum[column], of), Unmeasured: of == 0, figure: f,
	}
	b.Held, b.Wished = of > 0 && seen.Value <= must, of > 0 && seen.Value <= wish
	b.Unproven = seen.High > must && (must > 0 || of < per)
	return b
}

// triple are the stories whose fault does three times the bar of harm.
func triple(s *Score) bool { return sized(s) && effectBin(s.got()) == 3 }

// delayed is the bar for the time to detect.
func delayed(scores []Score, models func(*Score) bool) Bar {
	keep := func(s *Score) bool { return triple(s) && models(s) }
	d := delaysOf(scores, keep, rightDelay)
	seen := medianOf(d)
	b := Bar{
		Name: "median delay of the right cause at effect 3", Must: "3 windows", Wish: "2",
		Seen: fmt.Sprintf("%s, never in %d of %d stories", medianText(d), never(d), len(d)), Unmeasured: len(d) == 0,
		figure: delayFigure(keep, rightDelay),
	}
	b.Held, b.Wished = seen.Value <= 3, seen.Value <= 2
	return b
}

// medianOf is the median of ascending delays, with an interval over stories.
func medianOf(ascending []float64) Interval {
	return bootstrap(len(ascending), func(times []int) float64 {
		n := 0
		for i, d := range ascending {
			if n += times[i]; 2*n >= len(ascending) {
				return d
			}
		}
		return math.NaN()
	})
}

// medianText is the median of ascending delays, with its interval if there are several.
func medianText(ascending []float64) string {
	seen := medianOf(ascending)
	if len(ascending) < 2 {
		return windows(seen.Value)
	}
	return fmt.Sprintf("%s (%s to %s)", windows(seen.Value), windows(seen.Low), windows(seen.High))
}

// never counts the delays without a report.
func never(delays []float64) int {
	n := 0
	for _, d := range delays {
		if math.IsInf(d, 1) {
			n++
		}
	}
	return n
}

// drifted is the bar for drifts: of driftsHarm stories with harm all are reported, and so many with the right cause.
func drifted(scores []Score) Bar {
	const driftsHarm, driftsRight = 27, 20
	reported, right, of := outcomes(scores, drifting)
	b := Bar{
		Name: "drift over 4 h reported, right, all models", Must: fmt.Sprintf("%d of %d, %d", driftsHarm, driftsHarm, driftsRight),
		Wish: fmt.Sprintf("%d, %d", driftsHarm, driftsHarm), Seen: fmt.Sprintf("%d of %d, %d", reported, of, right),
		Unmeasured: of == 0, Unproven: of < driftsHarm, figure: outcomeFigure(drifting, anyDelay),
	}
	b.Held, b.Wished = of > 0 && reported == of && driftsHarm*right >= driftsRight*of, of > 0 && right == of
	return b
}

// outcomes counts the stories with harm that were ever reported, and with the right cause.
func outcomes(scores []Score, keep func(*Score) bool) (reported, right, of int) {
	for i := range scores {
		s := &scores[i]
		if !keep(s) || math.IsNaN(s.Noticed) {
			continue
		}
		of++
		if !math.IsInf(s.Noticed, 1) {
			reported++
		}
		if !math.IsInf(s.Delay, 1) {
			right++
		}
	}
	return reported, right, of
}

func rightDelay(s *Score) float64 { return s.Delay }
func anyDelay(s *Score) float64   { return s.Noticed }

// delaysOf are the delays of stories with harm, ascending.
func delaysOf(scores []Score, keep func(*Score) bool, delay func(*Score) float64) []float64 {
	var out []float64
	for i := range scores {
		if s := &scores[i]; keep(s) && !math.IsNaN(delay(s)) {
			out = append(out, delay(s))
		}
	}
	slices.Sort(out)
	return out
}

// sized reports whether a story has one fault of a size that was found.
func sized(s *Score) bool {
	return (s.Kind == stories.Single || s.Kind == stories.Curve) && !s.Recorded && len(s.Sought) == 1 && effectBin(s.got()) > 0
}

// effectBin is the nearest of the effects in ratio; 0 for what is smaller than all.
func effectBin(effect float64) float64 {
	for i, e := range stories.Effects {
		if i == 0 && effect < e*0.87 {
			return 0
		}
		if i == len(stories.Effects)-1 || effect < math.Sqrt(e*stories.Effects[i+1]) {
			return e
		}
	}
	return 0
}

func percent(p float64) string {
	if math.IsNaN(p) {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*p)
}

// within is a share with its interval.
func within(i Interval) string {
	if math.IsNaN(i.Value) {
		return "no minutes"
	}
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*i.Value, 100*i.Low, 100*i.High)
}

// perTenThousand is a rate with its interval.
func perTenThousand(i Interval) string {
	if math.IsNaN(i.Value) {
		return "-"
	}
	return fmt.Sprintf("%.0f (%.0f to %.0f)", i.Value, i.Low, i.High)
}

func windows(n float64) string {
	switch {
	case math.IsNaN(n):
		return "-"
	case math.IsInf(n, 1):
		return "never"
	}
	return fmt.Sprintf("%.1f", n)
}
