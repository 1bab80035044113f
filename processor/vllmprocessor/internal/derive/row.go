// Package derive computes ratios, rates, means and quantiles from the increases over a
// window, for each engine and over the engines of a model. It is pure. The formulas are
// in a table; the catalogue describes each in words.
package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
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
	// Extra are the names of its own attributes, in addition to those of the engine.
	Extra []string

	// Exactly one of these is set in Rows. Rows of objectives, pools and the diagnosis
	// are computed elsewhere and have none.

	// Quotient returns the parts of a ratio or mean. Over several engines the parts are
	// summed, then divided.
	Quotient func(*Settings, *Member) Parts
	// Additive returns a value that may be summed over engines. It is emitted for each
	// engine only, so that a sum over all series counts nothing twice.
	Additive func(*Settings, *Member) (float64, Reason)
	// Several appends the parts of a ratio for each value of its own attributes. rest is
	// the parts for all other values, where an engine without a series has 0. It appends
	// nothing unless it returns OK.
	Several func(m *Member, to []entry) (all []entry, rest Parts, reason Reason)
	// Quantiles reads the distribution of the quantiles into an empty histogram.
	Quantiles func(*Member, *window.Histogram) Reason

	// share is true where the numerator is a part of the denominator. A greater
	// numerator means a restart that no counter shows.
	share bool
	// speculative is true for a value of drafts, which can all be counted for one engine.
	speculative bool
	// shared is a defect because of which the value of one of several engines means
	// nothing; only the one over all of them is right.
	shared catalog.DefectID
	// speculativeExtra is the own attributes for which that holds.
	speculativeExtra Extra
	// bounds is true for the bounds of the bucket with the quantile.
	bounds bool
	// detailed is true where the setting percentiles::detailed switches the metric on.
	detailed bool
	// gateway is true for a metric of an inference gateway.
	gateway bool
}

// Parts are the numerator and the denominator of a quotient.
type Parts struct {
	Numerator, Denominator float64
	Reason                 Reason
	// Whole is true where the value over several engines needs each of them: without
	// one the bounds of an interval would not hold.
	Whole bool
}

// noParts adds nothing to other parts.
var noParts = Parts{Reason: Missing}

// Reason is why a value is absent.
type Reason uint8

const (
	// OK means: there is a value.
	OK Reason = iota
	// Missing means: the server does not send what is needed.
	Missing
	// First means: no earlier value to compare with.
	First
	// Pending means: an input of the previous batch is missing in this one.
	Pending
	// Gone means: an input has ended.
	Gone
	// Idle means: the denominator is 0.
	Idle
	// Contradiction means: the inputs contradict each other.
	Contradiction
	// KnownDefect means: a known defect of vLLM's metrics makes an input wrong or
	// ambiguous, and the data do not allow an exact correction.
	KnownDefect

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{
		"ok", "missing", "first", "pending", "gone", "idle", "contradiction", "known_defect",
	}[r]
}

// Because returns the reason of a status.
func Because(status window.Status) Reason {
	return [...]Reason{
		window.Present: OK, window.Missing: Missing, window.First: First, window.Pending: Pending, window.Gone: Gone, window.Defective: KnownDefect,
	}[status]
}

// Together combines the reasons of several engines, with one more: Pending where any is
// pending, else KnownDefect where any has one, because the others alone would be
// reported as the whole; else OK where any is OK, else the first reason.
func (r Reason) Together(next Reason, first bool) Reason {
	switch {
	case first:
		return next
	case r == Pending || next == Pending:
		return Pending
	case r == KnownDefect || next == KnownDefect:
		return KnownDefect
	case next == OK:
		return OK
	}
	return r
}

// worst returns Pending where any status is pending, else the first reason that is not
// OK.
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

func increases(numerator, denominator input.Metric) func(*Settings, *Member) Parts {
	return ratio(increase(numerator), increase(denominator))
}

// number reads a number of the window of an engine.
type number = func(*window.View) (float64, window.Status)

func increase(in input.Metric) number {
	return func(v *window.View) (float64, window.Status) { return v.Increase(in) }
}

func ratio(numerator, denominator number) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		n, has := numerator(&m.Now)
		d, hasToo := denominator(&m.Now)
		return Parts{Numerator: n, Denominator: d, Reason: worst(has, hasToo)}
	}
}

func rate(of number) func(*Settings, *Member) (float64, Reason) {
	return func(_ *Settings, m *Member) (float64, Reason) {
		n, status := of(&m.Now)
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

func mean(in input.Metric) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		return meanOf(m.Now.Moments(in))
	}
}

func meanOf(count, sum float64, hasSum bool, status window.Status) Parts {
	if status == window.Present && !hasSum {
		return Parts{Reason: Missing}
	}
	return Parts{Numerator: sum, Denominator: count, Reason: Because(status)}
}

func sums(numerator, denominator input.Metric) func(*Settings, *Member) Parts {
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

// Of returns the parts of an engine for the quotient of a row.
func (r *Row) Of(settings *Settings, m *Member) Parts {
	parts := r.Quotient(settings, m)
	if r.share {
		parts.share()
	}
	return parts
}

// share rejects a numerator that is greater than the denominator.
func (p *Parts) share() {
	if p.Reason == OK && p.Numerator > p.Denominator {
		p.Reason = Contradiction
	}
}

// Divide returns the quotient of the parts, which may be sums over several engines and servers.
func (p *Parts) Divide() (float64, Reason) {
	switch {
	case p.Reason != OK:
		return 0, p.Reason
	case p.Denominator <= 0:
		return 0, Idle
	}
	return p.Numerator / p.Denominator, OK
}

// Quantile returns a quantile of a distribution, which may be merged from several
// engines and servers.
func (s *Settings) Quantile(h *window.Histogram, rank float64) (float64, Reason) {
	if h.Count <= 0 {
		return 0, Idle
	}
	quantile := h.Quantile
	if s.MeanConstrained {
		quantile = h.MeanConstrained
	}
	value, ok := quantile(rank)
	if !ok {
		return 0, Missing
	}
	return value, OK
}
