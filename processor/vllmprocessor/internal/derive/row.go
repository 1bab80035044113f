// Package derive computes what an operator decides by from the increases over a
// window: ratios, rates, means and quantiles, for each engine and over the
// engines of a model. It is pure. Each formula stands in a table; the catalogue
// says in words what it means.
package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Member is one engine and model over the usual window and the long one.
type Member struct {
	Now, Long window.View
}

// Row is one derived metric.
type Row struct {
	// Metric is its name in the catalogue.
	Metric string
	// Extra are the names of its own attributes, besides those of the engine.
	Extra []string

	// One of these is set in Rows. Rows that are computed elsewhere, as those of
	// objectives and pools, have none.

	// Quotient is the parts of a ratio or mean: over several engines the parts
	// are summed, then divided.
	Quotient func(*Settings, *Member) Parts
	// Additive is a value that may be summed over engines. It is told for each
	// engine only, so that a sum over all series is right.
	Additive func(*Settings, *Member) (float64, Reason)
	// Several yields the parts of a ratio for each value of its own attributes. rest
	// are those of every value that it does not yield: an engine that does not show a
	// value has 0 of it. It yields nothing unless it returns OK.
	Several func(settings *Settings, m *Member, yield func(Extra, Parts)) (rest Parts, reason Reason)
	// Quantiles reads the distribution that the quantiles are of into an empty
	// histogram.
	Quantiles func(*Member, *histogram.Histogram) Reason

	// observations is true where the denominator is a number of observations,
	// which Settings.MinCount is compared with.
	observations bool
	// share is true where the numerator is a part of the denominator. More than
	// all is a restart that no number shows.
	share bool
	// speculative is true where old servers credit all engines to one.
	speculative bool
	// speculativeExtra is the one value of its own attributes for which that holds.
	speculativeExtra Extra
	// bounds is true for the bounds of the bucket that holds the quantile.
	bounds bool
}

// Parts are the numerator and the denominator of a quotient.
type Parts struct {
	Numerator, Denominator float64
	Reason                 Reason
	// Whole is true where several engines can be told only if each of them can:
	// the bounds of an interval would not hold without one.
	Whole bool
}

// noParts adds nothing to other parts.
var noParts = Parts{Reason: Missing}

// Reason says why a value cannot be told.
type Reason uint8

const (
	// OK means: there is a value.
	OK Reason = iota
	// Missing means: the server does not say what is needed.
	Missing
	// First means: nothing to compare with yet.
	First
	// Pending means: something of the previous batch is not in this one, yet.
	Pending
	// Gone means: what is needed has ended.
	Gone
	// Idle means: nothing happened that could be divided by.
	Idle
	// FewObservations means: fewer than Settings.MinCount.
	FewObservations
	// Contradiction means: the numbers do not belong together.
	Contradiction

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{
		"ok", "missing", "first", "pending", "gone", "idle", "few_observations", "contradiction",
	}[r]
}

// Because is the reason of a status.
func Because(status window.Status) Reason {
	return [...]Reason{
		window.Present: OK, window.Missing: Missing, window.First: First, window.Pending: Pending, window.Gone: Gone,
	}[status]
}

// Together is the reason over several engines, of which one more is said: pending
// where any is, OK where any can tell, else that of the first.
func (r Reason) Together(said Reason, first bool) Reason {
	if first || said == Pending || r != Pending && said == OK {
		return said
	}
	return r
}

// worst is the first of several reasons that is not OK; a pending one first.
func worst(statuses ...window.Status) Reason {
	reason := OK
	for _, s := range statuses {
		switch {
		case s == window.Pending:
			return Pending
		case reason == OK:
			reason = Because(s)
		}
	}
	return reason
}

// increases is the quotient of the increases of two counters.
func increases(numerator, denominator collect.Input) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		n, has := m.Now.Increase(numerator)
		d, hasToo := m.Now.Increase(denominator)
		return Parts{Numerator: n, Denominator: d, Reason: worst(has, hasToo)}
	}
}

// rate is the increase of a counter per second.
func rate(in collect.Input) func(*Settings, *Member) (float64, Reason) {
	return func(_ *Settings, m *Member) (float64, Reason) {
		n, status := m.Now.Increase(in)
		return perSecond(n, m.Now.Elapsed, Because(status))
	}
}

func perSecond(n, elapsed float64, reason Reason) (float64, Reason) {
	if reason != OK {
		return 0, reason
	}
	if elapsed <= 0 {
		return 0, First
	}
	return n / elapsed, OK
}

// mean is the mean of a distribution's observations.
func mean(in collect.Input) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		count, sum, hasSum, status := m.Now.Moments(in)
		if status == window.Present && !hasSum {
			return Parts{Reason: Missing}
		}
		return Parts{Numerator: sum, Denominator: count, Reason: Because(status)}
	}
}

// sums is the quotient of the sums of two distributions.
func sums(numerator, denominator collect.Input) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		_, n, has, status := m.Now.Moments(numerator)
		_, d, hasToo, statusToo := m.Now.Moments(denominator)
		reason := worst(status, statusToo)
		if reason == OK && !(has && hasToo) {
			reason = Missing
		}
		return Parts{Numerator: n, Denominator: d, Reason: reason}
	}
}
