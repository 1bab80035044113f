package objective

import "math"

// Counts are observations by what is known about them. Those that are neither
// good nor undecided are certainly bad.
type Counts struct {
	// Valid is how many there were.
	Valid float64
	// Good were certainly within the threshold.
	Good float64
	// Undecided are in the bucket that the threshold splits.
	Undecided float64
}

// Interval is what is known about a number: it is at least Lower and at most
// Upper.
type Interval struct{ Lower, Upper float64 }

// Attainment is the share that was good: from good/valid, if all undecided ones
// were bad, to (good+undecided)/valid. It is false where there was nothing
// valid: no traffic is neither success nor failure.
func (c Counts) Attainment() (Interval, bool) {
	if c.Valid <= 0 {
		return Interval{}, false
	}
	return Interval{Lower: min(c.Good/c.Valid, 1), Upper: min((c.Good+c.Undecided)/c.Valid, 1)}, true
}

// BurnRate is how many times faster than allowed the error budget was used:
// (1 - attainment) / (1 - target). 1 uses it up exactly at the end of the window.
// The ends are the burn rate's own: its lower end comes from the upper end of the
// attainment, so an alert on the lower end fires only where the burn is certain.
func BurnRate(attainment Interval, target float64) Interval {
	allowed := 1 - target
	return Interval{Lower: (1 - attainment.Upper) / allowed, Upper: (1 - attainment.Lower) / allowed}
}

// BudgetRemaining is the share of the error budget that is left, from the burn
// rate over the budget window: 1 - burn. It is negative where more was used than
// there is.
func BudgetRemaining(burn Interval) Interval {
	return Interval{Lower: 1 - burn.Upper, Upper: 1 - burn.Lower}
}

// rounding is by which share sums of counts may be off through floating point.
const rounding = 1e-9

// sound tells whether the numbers can be counts.
func (c Counts) sound() bool {
	return c.Good >= 0 && c.Undecided >= 0 && c.Good+c.Undecided <= c.Valid*(1+rounding) && !math.IsInf(c.Valid, 0)
}

func (c *Counts) add(more Counts) {
	c.Valid += more.Valid
	c.Good += more.Good
	c.Undecided += more.Undecided
}
