package querylint

import (
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// parts are metrics that count a part of what another one counts, so that they are 0 when
// the other one is.
var parts = map[string]string{
	"vllm.slo.good":                        "vllm.slo.valid",
	"vllm.slo.undecided":                   "vllm.slo.valid",
	"vllm.spec_decode.num_accepted_tokens": "vllm.spec_decode.num_draft_tokens",
}

// subset reports whether each metric of a counts a part of what a metric of b counts.
func subset(a, b map[string]bool) bool {
	if len(a) == 0 {
		return false
	}
	for name := range a {
		if b[name] || b[parts[name]] {
			continue
		}
		if hits, is := strings.CutSuffix(name, "hits"); is && b[hits+"queries"] {
			continue
		}
		return false
	}
	return true
}

// checkDivision reports a divisor that can be 0.
func (c *checker) checkDivision(e *parser.BinaryExpr, left, right *shape) {
	if right.scalar && right.literal != nil {
		if *right.literal == 0 {
			c.report(CodeDivision, Error, e, "The expression divides by 0.")
		}
		return
	}
	if right.positive || right.constant || right.typ == typUnknown && !right.scalar || right.absent || memory(e.RHS, right) {
		return
	}
	for _, guards := range c.guards {
		for name := range right.metrics {
			if guards[name] {
				return
			}
		}
	}
	divisor := c.text(e.RHS)
	// One bucket can be empty while the histogram is not.
	bucket := right.bucket && right.fixed["le"] && !(left.bucket && left.fixed["le"])
	if subset(left.metrics, right.metrics) && !subtracts(e.RHS) && !bucket {
		c.report(CodeDivisionNaN, Info, e,
			"Without traffic both sides are 0 and the result is NaN, which looks like a value and spoils what is computed from it. Write (%s > 0) as the divisor.", divisor)
		return
	}
	c.report(CodeDivision, Warning, e,
		"The divisor can be 0 while the dividend is not: the result is then infinite. Write (%s > 0) as the divisor, or clamp_min.", divisor)
}

// memory reports whether an expression adds up used and free memory: that is its size.
func memory(expr parser.Expr, s *shape) bool {
	e, is := inner(expr).(*parser.BinaryExpr)
	return is && e.Op == parser.ADD && s.typ == typGauge && s.unit.known && s.unit.bytes == 1 && s.unit.seconds == 0
}

// subtracts reports whether an expression is a difference: it can be 0 with any traffic.
func subtracts(expr parser.Expr) bool {
	e, is := inner(expr).(*parser.BinaryExpr)
	return is && e.Op == parser.SUB
}
