package truth

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Answer is what a derived metric may be.
type Answer struct {
	// intervals hold the allowed values, the bounds included. Without one the value must be
	// absent, because there is nothing to derive it from.
	intervals [][2]float64
	// unsure is true where a value may also be absent although there is something to derive
	// it from, because the metric says so.
	unsure bool
}

func exactly(values ...float64) (a Answer) {
	for _, v := range values {
		a.intervals = append(a.intervals, [2]float64{v, v})
	}
	return a
}

func within(least, most float64) Answer { return Answer{intervals: [][2]float64{{least, most}}} }

// ratio is a quotient; there is none without a denominator.
func ratio(numerator, denominator float64) Answer {
	if denominator <= 0 {
		return Answer{}
	}
	return exactly(numerator / denominator)
}

// around allows values that are off by a distance.
func (a Answer) around(distance float64) Answer {
	for i := range a.intervals {
		a.intervals[i] = [2]float64{a.intervals[i][0] - distance, a.intervals[i][1] + distance}
	}
	return a
}

// or allows the values of another answer as well.
func (a Answer) or(other Answer) Answer {
	return Answer{intervals: slices.Concat(a.intervals, other.intervals), unsure: a.unsure || other.unsure}
}

// precision is the error of sums of doubles, and of the numbers on the page.
const precision = 1e-7

// admits reports whether a value is allowed.
func (a Answer) admits(value float64) bool {
	return slices.ContainsFunc(a.intervals, func(i [2]float64) bool {
		slack := precision * max(1e-3, math.Abs(i[0]), math.Abs(i[1]))
		return value >= i[0]-slack && value <= i[1]+slack
	})
}

func (a Answer) String() string {
	if len(a.intervals) == 0 {
		return "nothing"
	}
	var text strings.Builder
	for i, in := range a.intervals {
		if i > 0 {
			text.WriteString(" or ")
		}
		if in[0] == in[1] {
			fmt.Fprintf(&text, "%.9g", in[0])
		} else {
			fmt.Fprintf(&text, "%.9g to %.9g", in[0], in[1])
		}
	}
	return text.String()
}

// quantile is the least value that at least the share rank of all values, which
// are sorted, does not exceed.
func quantile(sorted []float64, rank float64) float64 {
	n := int(math.Ceil(rank*float64(len(sorted)) - 1e-9))
	return sorted[min(max(n, 1), len(sorted))-1]
}
