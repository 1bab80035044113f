package objective

import "math"

// JointPart is one of several objectives that a request can meet together.
type JointPart struct {
	// Metric is the objective's metric.
	Metric string
	// Counts are the observations in the window.
	Counts Counts
}

// JointReason is why the share of requests that met all objectives is absent.
type JointReason uint8

// The reasons of JointAttainment.
const (
	JointKnown JointReason = iota
	// JointSingle: there are less than two objectives.
	JointSingle
	// JointUnfinished: a histogram does not observe each request once, at its end.
	JointUnfinished
	// JointCountsDiffer: the histograms did not observe the same requests.
	JointCountsDiffer
	// JointIdle: no request finished.
	JointIdle
)

// JointAttainment returns bounds of the share of requests that met all objectives. The
// histograms do not show which requests were slow, so any overlap is possible. The share
// is at least max(0, sum of the lower ends - (n-1)), if no request failed two objectives.
// It is at most the smallest upper end, if all failures were of the same requests. (These
// are Fréchet's bounds.)
//
// This holds only where all histograms observe the same requests, each once, at its end.
// The time to the first token is observed at that token, so even with equal counts it can
// be of other requests.
func JointAttainment(parts []JointPart) (Interval, JointReason) {
	if len(parts) < 2 {
		return Interval{}, JointSingle
	}
	for i := range parts {
		known, ok := indicatorOf(parts[i].Metric)
		if !ok || !known.finished {
			return Interval{}, JointUnfinished
		}
	}
	first := parts[0].Counts.Valid
	for i := range parts {
		if math.Abs(parts[i].Counts.Valid-first) > rounding*first {
			return Interval{}, JointCountsDiffer
		}
	}
	lower, upper := 1-float64(len(parts)), 1.0
	for i := range parts {
		attainment, ok := parts[i].Counts.Attainment()
		if !ok {
			return Interval{}, JointIdle
		}
		lower += attainment.Lower
		upper = min(upper, attainment.Upper)
	}
	return Interval{Lower: max(0, lower), Upper: upper}, JointKnown
}
