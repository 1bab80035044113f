package objective

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

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
