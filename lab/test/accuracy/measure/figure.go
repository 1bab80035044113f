package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// figure is a number of the page that is worked out from one row of numbers of each story, so
// that two methods can be compared on the same stories.
type figure struct {
	// of is the row of a story; nil where the story has nothing to do with the figure.
	of func(*Score) []float64
	// value is the figure of some stories, each counted so many times. A row may be nil.
	value func(rows [][]float64, times []int) float64
	// scale makes the unit in which a difference is printed, and unit is its name.
	scale float64
	unit  string
}

const points = "points"

// macroFigure has the value of Tally.macro, pooledFigure that of Tally.pooled.
func macroFigure(causes []string, keep func(*Score, *Verdict) bool, of func(Counts) float64) figure {
	return figure{of: rowOfCounts(causes, keep, of), value: meanOfShares, scale: 100, unit: points}
}

func pooledFigure(causes []string, keep func(*Score, *Verdict) bool, of func(Counts) float64) figure {
	return figure{of: rowOfCounts(causes, keep, of), value: shareOfAll, scale: 100, unit: points}
}

// rowOfCounts is rowOf of a story; nil without a minute.
func rowOfCounts(causes []string, keep func(*Score, *Verdict) bool, of func(Counts) float64) func(*Score) []float64 {
	return func(s *Score) []float64 {
		own := countsOf(s, causes, keep)
		if own == nil {
			return nil
		}
		return rowOf(own, of)
	}
}

// rowOf has for each cause the minutes of a kind, and all.
func rowOf(own []Counts, of func(Counts) float64) []float64 {
	row := make([]float64, 0, 2*len(own))
	for c := range own {
		row = append(row, of(own[c]), own[c].Of)
	}
	return row
}

// shareOfAll is the share of minutes, whatever their cause; NaN without a minute.
func shareOfAll(rows [][]float64, times []int) float64 {
	sum := weighted(rows, times)
	yes, all := 0.0, 0.0
	for c := 0; c < len(sum); c += 2 {
		yes, all = yes+sum[c], all+sum[c+1]
	}
	return yes / all
}

// meanOfShares is the mean over causes of the share of minutes. Causes without a minute do
// not count.
func meanOfShares(rows [][]float64, times []int) float64 {
	sum := weighted(rows, times)
	shares, causes := 0.0, 0.0
	for c := 0; c < len(sum); c += 2 {
		if sum[c+1] > 0 {
			shares += sum[c] / sum[c+1]
			causes++
		}
	}
	return shares / causes
}

// ratioFigure is the sum of one number over that of another.
func ratioFigure(of func(*Score) []float64, scale float64, unit string) figure {
	return figure{of: of, scale: scale, unit: unit, value: func(rows [][]float64, times []int) float64 {
		sum := weighted(rows, times)
		if sum == nil {
			return math.NaN()
		}
		return sum[0] / sum[1]
	}}
}

// alarmFigure is a rate of what is counted in 10,000 hours without a fault.
func alarmFigure(keep func(*Score) bool, column int) figure {
	return ratioFigure(func(s *Score) []float64 {
		if s.Kind == stories.Exposition || !keep(s) || s.Healthy == 0 {
			return nil
		}
		row := alarmsOf(s)
		return []float64{row[column], row[hours]}
	}, 10_000, "")
}

// outcomeFigure is the share of stories with harm that have a delay: that were ever reported, or with the right cause.
func outcomeFigure(keep func(*Score) bool, delay func(*Score) float64) figure {
	return ratioFigure(func(s *Score) []float64 {
		if !keep(s) || math.IsNaN(s.Noticed) {
			return nil
		}
		if math.IsInf(delay(s), 1) {
			return []float64{0, 1}
		}
		return []float64{1, 1}
	}, 100, points)
}

// delayFigure is a median of delays in windows. A story without a report counts as an
// infinite one.
func delayFigure(keep func(*Score) bool, delay func(*Score) float64) figure {
	return figure{scale: 1, unit: "windows", of: func(s *Score) []float64 {
		if !keep(s) || math.IsNaN(delay(s)) {
			return nil
		}
		return []float64{delay(s)}
	}, value: func(rows [][]float64, times []int) float64 {
		var all []float64
		for i, row := range rows {
			for n := 0; row != nil && n < times[i]; n++ {
				all = append(all, row[0])
			}
		}
		slices.Sort(all)
		return quantile(all, 0.5)
	}}
}

// weighted adds up rows, each so many times; nil without rows.
func weighted(rows [][]float64, times []int) []float64 {
	var sum []float64
	for i, row := range rows {
		if row == nil || times[i] == 0 {
			continue
		}
		if sum == nil {
			sum = make([]float64, len(row))
		}
		for k, v := range row {
			sum[k] += float64(times[i]) * v
		}
	}
	return sum
}

// difference is what a figure grew by, from one method to another, whose scores are of the
// same stories in the same order. The interval is by bootstrap over stories, and each sample
// has the same stories of both, so that what is hard in both does not widen it.
func (f *figure) difference(from, to []Score) Interval {
	var before, after [][]float64
	for i := range from {
		b, a := f.of(&from[i]), f.of(&to[i])
		if b != nil || a != nil {
			before, after = append(before, b), append(after, a)
		}
	}
	return bootstrap(len(before), func(times []int) float64 { return f.value(after, times) - f.value(before, times) })
}

// differenceText is a difference with its interval, in the figure's unit.
func (f *figure) differenceText(from, to []Score) string {
	d := f.difference(from, to)
	unit := ""
	if f.unit != "" {
		unit = " " + f.unit
	}
	sign := func(v float64) string {
		digits := 1
		if f.unit == "" {
			digits = 0
		}
		text := fmt.Sprintf("%+.*f", digits, f.scale*v)
		switch {
		case math.IsInf(v, 0):
			return "unbounded"
		case strings.Trim(text, "+-0.") == "": // Rounded to nothing, so it has no sign.
			return text[1:]
		}
		return text
	}
	switch {
	case math.IsNaN(d.Value):
		return "-"
	case math.IsInf(d.Value, 0):
		return map[bool]string{true: "to never", false: "from never"}[d.Value > 0]
	case d.Of < 2:
		return sign(d.Value) + unit
	}
	return fmt.Sprintf("%s%s (%s to %s)", sign(d.Value), unit, sign(d.Low), sign(d.High))
}

// valueOf is a figure of some scores without an interval; NaN without a story.
func (f *figure) valueOf(scores []Score) float64 {
	var rows [][]float64
	var once []int
	for i := range scores {
		if row := f.of(&scores[i]); row != nil {
			rows, once = append(rows, row), append(once, 1)
		}
	}
	if rows == nil {
		return math.NaN()
	}
	return f.value(rows, once)
}
