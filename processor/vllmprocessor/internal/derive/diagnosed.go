package derive

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// This file has what the diagnosis shares with the derived metrics, so that both read an
// input with a known defect in the same way.

// Mean returns how many observations a distribution got over the window, and their mean.
// Both are NaN where the server does not report them, and the mean where a defect makes
// it wrong.
func Mean(v *window.View, in input.Metric) (count, mean float64) {
	from, why := source(v, in)
	n, sum, hasSum, status := v.Moments(from)
	switch {
	case status != window.Present:
		return math.NaN(), math.NaN()
	case !hasSum, n <= 0, why == KnownDefect, unsound(v, in):
		return n, math.NaN()
	}
	return n, sum / n
}

// FoundInCache returns the share of the prompt tokens that the prefix cache found; NaN with
// a reason where it is not known.
func FoundInCache(v *window.View) (share float64, reason Reason) {
	parts := prefixHits(nil, &Member{Now: *v})
	switch {
	case parts.Reason != OK:
		return math.NaN(), parts.Reason
	case !(parts.Denominator > 0):
		return math.NaN(), Idle
	case parts.Numerator > parts.Denominator:
		return math.NaN(), Contradiction
	}
	return parts.Numerator / parts.Denominator, OK
}

// Reasons reports whether the server counts finished requests by the reason for which they
// ended. Under Ray, some count all of them under the last one.
func Reasons(v *window.View) bool { return !underLast(v, input.RequestSuccess, lastReasons) }

// Tokens reports whether the server counts generated tokens rightly. The V0 engine did not with
// several steps per scheduling, and nothing shows that setting.
func Tokens(v *window.View) bool { return !v.AffectedV0(catalog.DefectMultiStepMiscounts) }

// Observations adds the observations of a distribution over the window to a histogram.
// They are those of another distribution where a server swaps the two.
func Observations(v *window.View, dst *histogram.Histogram, in input.Metric) Reason {
	from, why := source(v, in)
	switch {
	case why != OK:
		return why
	case unsound(v, in):
		return KnownDefect
	}
	return Because(v.AddTo(dst, from))
}
