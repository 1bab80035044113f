package window

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Received returns the value of a counter or gauge as the server sent it, summed over its labels:
// without what was counted before a restart that was seen. It is the same for every reader of the
// server. It is not a number where the newest batch lacks a part of it, or it sends deltas.
func (v *View) Received(in input.Metric) float64 {
	value, status := v.sum(in, func(s *series) (float64, Status) {
		switch status := v.status(s); {
		case s.delta:
			return 0, Missing
		case status == Present:
			var b buffer
			return s.received(b[:])[0], Present
		default:
			return 0, status
		}
	})
	if status != Present {
		return math.NaN()
	}
	return value
}

// Began returns the latest known start of a counter, in Unix nanoseconds; 0 where none is known. A
// start equal to the time of its point is not known.
func (v *View) Began(in input.Metric) (start int64) {
	for _, s := range v.group.inputs.of(in) {
		if v.status(s) == Present && !s.delta && s.start < s.time {
			start = max(start, s.start)
		}
	}
	return start
}

// ProcessStart is when the process of the server began, in Unix seconds of its own clock; 0 where
// it does not say.
func (r *Resource) ProcessStart() float64 { return r.evidence.ProcessStart }
