package main

import (
	"fmt"
	"math"
	"slices"

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

// rising is the traffic on which a residual and the traffic are hard to tell apart: it
// rises around the onset, or it is a recorded trace.
func rising(s *Score, v *Verdict) bool {
	return v.Effect >= strongEffect && !s.Tuned && (s.Rising || s.Recorded) && !growth(s, v)
}

// mild reports whether the harm is between once and twice the bar of harm, and by a fault
// of this effect: the beginning of a severe fault, or traffic that is a little too much, is
// no mild fault.
func mild(s *Score, v *Verdict) bool {
	return v.Effect > 1 && v.Effect < strongEffect && v.Ours && sized(s) && s.got() < strongEffect
}

// slow are the stories with tables of their own.
func slow(s *Score) bool { return s.Kind == stories.Drift || s.Kind == stories.FromStart }

// drifting and inPool are the stories of a bar each.
func drifting(s *Score) bool { return s.Kind == stories.Drift }
func inPool(s *Score) bool   { return s.Kind == stories.FromStart && s.Pool }

// moderate keeps the stories of loads to 80 % of the knee, with or without objectives.
func moderate(objectives bool) func(*Score) bool {
	return func(s *Score) bool { return s.Load < 0.8 && s.Objectives == objectives }
}

// Bars compares what was measured with the bars.
func Bars(scores []Score) []Bar {
	all := slices.Concat(stories.Inferred, stories.ReadOff)
	alarms := falseAlarms(scores, func(*Score) bool { return true })
	without, with := falseAlarms(scores, moderate(false)), falseAlarms(scores, moderate(true))
	inferred := tally(scores, stories.Inferred, untuned)
	return []Bar{
		share("causes that need inference, untuned models, mean over the causes", 0.85, 0.92, inferred.macro(ofRight), macroFigure(stories.Inferred, untuned, ofRight), true),
		share("the same, rising or recorded traffic", 0.80, 0.90, tally(scores, stories.Inferred, rising).macro(ofRight), macroFigure(stories.Inferred, rising, ofRight), true),
		share("top two, all causes, untuned models", 0.95, 0.98, tally(scores, all, untuned).macro(ofTopTwo), macroFigure(all, untuned, ofTopTwo), false),
		share("mild faults (1 to 2 times the bar of harm), harm reported", 0.40, 0.60, tally(scores, all, mild).pooled(ofReported), pooledFigure(all, mild, ofReported), false),
		rate("pages without a fault, all backgrounds, recorded ones as well", 0, 0, alarms.pageRate(), alarms.pages, pageFigure(func(*Score) bool { return true })),
		rate("warnings without a fault, loads to 80 % of the knee, no objectives", 40, 4, without.warningRate(), without.warnings, warningFigure(moderate(false))),
		rate("warnings without a fault, loads to 80 % of the knee, with objectives", 100, 10, with.warningRate(), with.warnings, warningFigure(moderate(true))),
		delayed(scores),
		always("drift over 4 h to twice the bar of harm", scores, drifting),
		always("a fault from the start in a pool", scores, inPool),
		{
			Name: "recordings of real engines", Must: "right condition and cause in every run", Wish: "the same",
			Seen: "see [Recordings](#recordings-of-real-engines)", Unmeasured: true,
		},
	}
}

// share is a bar for a share; for its lower bound if lower is set.
func share(name string, must, wish float64, seen Interval, f figure, lower bool) Bar {
	value, of := seen.Value, "at least"
	if lower {
		value, of = seen.Low, "lower bound at least"
	}
	b := Bar{
		Name: name, Must: fmt.Sprintf("%s %.0f %%", of, 100*must), Wish: fmt.Sprintf("%.0f %%", 100*wish), Seen: within(seen),
		Unmeasured: math.IsNaN(seen.Value), figure: f,
	}
	b.Held, b.Wished = !b.Unmeasured && value >= must, !b.Unmeasured && value >= wish
	return b
}

// rate is a bar for false alarms in 10,000 hours.
func rate(name string, must, wish float64, seen Interval, events int, f figure) Bar {
	hours := seen.Of
	b := Bar{
		Name: name, Must: fmt.Sprintf("at most %.0f in 10,000 h", must), Wish: fmt.Sprintf("%.0f", wish),
		Seen: fmt.Sprintf("%s, %d in %.0f h", perTenThousand(seen), events, hours), Unmeasured: hours == 0, figure: f,
	}
	b.Held, b.Wished = hours > 0 && seen.Value <= must, hours > 0 && seen.Value <= wish
	b.Unproven = seen.High > must && (must > 0 || hours < 10_000)
	return b
}

// triple are the stories whose fault does three times the bar of harm.
func triple(s *Score) bool { return sized(s) && effectBin(s.got()) == 3 }

// delayed is the bar for the time to detect.
func delayed(scores []Score) Bar {
	d := delaysOf(scores, triple, rightDelay)
	seen := medianOf(d)
	b := Bar{
		Name: "median delay of the right cause at 3 times the bar of harm", Must: "at most 3 windows", Wish: "2",
		Seen: fmt.Sprintf("%s, never in %d of %d stories", medianText(d), never(d), len(d)), Unmeasured: len(d) == 0,
		figure: delayFigure(triple, rightDelay),
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

// fewStories is how many are too few to say that something is always so.
const fewStories = 10

// always is a bar that every story must meet: reported, or with the right cause.
func always(name string, scores []Score, keep func(*Score) bool) Bar {
	reported, right, of := outcomes(scores, keep)
	played := 0
	for i := range scores {
		if keep(&scores[i]) {
			played++
		}
	}
	b := Bar{
		Name: name, Must: "reported in every story", Wish: "with the right cause",
		Seen:       fmt.Sprintf("reported in %d, right in %d of %d stories with harm (%d played)", reported, right, of, played),
		Unmeasured: of == 0, Unproven: of < fewStories, figure: reportedFigure(keep),
	}
	if of == 0 {
		b.Seen = "no such story had harm"
	}
	b.Held, b.Wished = of > 0 && reported == of, of > 0 && right == of
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
