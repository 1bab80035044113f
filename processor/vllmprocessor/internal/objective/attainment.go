package objective

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// Counts are numbers of observations. Those that are neither good nor undecided are
// certainly bad.
type Counts struct {
	// Valid is the number of all observations.
	Valid float64
	// Good is the number of those that are certainly within the threshold.
	Good float64
	// Undecided is the number of those in the bucket that the threshold splits.
	Undecided float64
}

// Interval has the bounds of a number that is not known exactly.
type Interval struct{ Lower, Upper float64 }

// Attainment returns the share of good observations: from good/valid, if all undecided
// ones were bad, to (good+undecided)/valid. It returns false without valid observations:
// no traffic is neither success nor failure.
func (c Counts) Attainment() (Interval, bool) {
	if c.Valid <= 0 {
		return Interval{}, false
	}
	return Interval{Lower: min(c.Good/c.Valid, 1), Upper: min((c.Good+c.Undecided)/c.Valid, 1)}, true
}

// BurnRate returns how many times faster than allowed the error budget was used:
// (1 - attainment) / (1 - target). A burn rate of 1 uses up the budget exactly at the end
// of the window. The lower burn rate follows from the upper attainment, so an alert on the
// lower burn rate fires only where the burn is certain.
func BurnRate(attainment Interval, target float64) Interval {
	allowed := 1 - target
	return Interval{Lower: (1 - attainment.Upper) / allowed, Upper: (1 - attainment.Lower) / allowed}
}

// BudgetRemaining returns the share of the error budget that is left: 1 - burn rate over
// the budget window. It is negative where the budget is exceeded.
func BudgetRemaining(burn Interval) Interval {
	return Interval{Lower: 1 - burn.Upper, Upper: 1 - burn.Lower}
}

// rounding is the relative error of sums of counts through floating point.
const rounding = 1e-9

// sound reports whether the numbers can be counts.
func (c Counts) sound() bool {
	return c.Good >= 0 && c.Undecided >= 0 && c.Good+c.Undecided <= c.Valid*(1+rounding) && !math.IsInf(c.Valid, 0)
}

func (c *Counts) add(more Counts) {
	c.Valid += more.Valid
	c.Good += more.Good
	c.Undecided += more.Undecided
}

// JointAttainment returns bounds of the share of requests that met several objectives, of which it
// gets the counts in the window. The histograms do not show which requests were slow, so any overlap
// is possible. The share is at least max(0, sum of the lower ends - (n-1)), if no request failed two
// objectives. It is at most the smallest upper end, if all failures were of the same requests. (These
// are Fréchet's bounds.)
//
// This holds only where all histograms observe the same requests, each once, at its end, see
// Objective.Finished. It is a contradiction where their numbers differ.
func JointAttainment(parts []Counts) (Interval, derive.Reason) {
	first := parts[0].Valid
	lower, upper := 1-float64(len(parts)), 1.0
	for _, part := range parts {
		if math.Abs(part.Valid-first) > rounding*first {
			return Interval{}, derive.Contradiction
		}
		attainment, _ := part.Attainment()
		lower += attainment.Lower
		upper = min(upper, attainment.Upper)
	}
	if first <= 0 {
		return Interval{}, derive.Idle
	}
	return Interval{Lower: max(0, lower), Upper: upper}, derive.OK
}
