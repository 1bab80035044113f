package objective

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// alertFactors are the burn rates above which the usual alerts fire, the highest first.
// The lowest usual one, 1, can be exceeded with any target.
var alertFactors = [...]float64{14.4, 6, 3}

// HighestBurn returns the burn rate while every observation misses the objective. No burn
// rate can exceed it.
func (o *Objective) HighestBurn() float64 { return 1 / (1 - o.Target) }

// Unreachable returns a sentence for the log where a usual alert on the burn rate could
// never fire; empty where all of them can.
func (o *Objective) Unreachable() string {
	var never []string
	for _, factor := range alertFactors {
		if o.HighestBurn() <= factor {
			never = append(never, number(factor))
		}
	}
	if len(never) == 0 {
		return ""
	}
	// Rounded up, because the burn rate must exceed the factor.
	enough := math.Ceil((1-1/alertFactors[0])*1e4) / 1e4
	return fmt.Sprintf("objective %q: with the target %s the burn rate is at most %s, even if every request is too slow, "+
		"so an alert on a burn rate above %s can never fire; write a target of at least %s, let your alerts compare with a lower burn rate, "+
		"or use the rules in content/rules, which fire with any target",
		o.Name, number(o.Target), strconv.FormatFloat(o.HighestBurn(), 'g', 3, 64), strings.Join(never, " or "), number(enough))
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
