package derive

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"

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
func (s *Settings) Quantile(h *histogram.Histogram, rank float64) (float64, Reason) {
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
