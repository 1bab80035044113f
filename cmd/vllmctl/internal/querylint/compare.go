package querylint

import (
	"fmt"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// checkBool reports a comparison whose result is used as a number.
func (c *checker) checkBool(e *parser.BinaryExpr, left, right *shape) {
	for i, side := range []*shape{left, right} {
		other := right
		if i == 1 {
			other = left
		}
		if side.filter == nil {
			continue
		}
		switch e.Op {
		case parser.DIV, parser.MOD:
			// A guard, or a dividend that has to be above a limit.
			continue
		case parser.MUL:
			if other.scalar || side.equalsOne() {
				continue
			}
		}
		c.withoutBool(side.filter, e.Op.String())
	}
}

func (s *shape) equalsOne() bool {
	if s.filter == nil || s.filter.Op != parser.EQLC {
		return false
	}
	v, is := number(s.filter.RHS)
	return is && v == 1
}

// checkFilterAsNumber reports aggregations of a comparison without bool. Adding up a state
// that is compared with 1 is the same as counting.
func (c *checker) checkFilterAsNumber(s *shape, by string) {
	if s.filter == nil {
		return
	}
	if s.filter.VectorMatching != nil && number1(s.filter) == nil {
		return
	}
	if strings.HasPrefix(by, "sum") && s.class == classState && number1(s.filter) != nil && (*number1(s.filter) == 1 && s.filter.Op == parser.EQLC || s.filter.Op == parser.GTR) {
		return
	}
	c.withoutBool(s.filter, by)
	s.filter = nil
}

func number1(e *parser.BinaryExpr) *float64 {
	if v, is := number(e.RHS); is {
		return &v
	}
	if v, is := number(e.LHS); is {
		return &v
	}
	return nil
}

func (c *checker) withoutBool(filter *parser.BinaryExpr, by string) {
	c.report(CodeWithoutBool, Error, filter,
		"Without bool this comparison does not give 0 and 1: it keeps the values for which it holds and removes the others, and %q computes with those. Write \"%s bool\", or count to count them.",
		by, filter.Op)
}

// checkLifetime reports a counter whose value counts from the start of the server.
func (c *checker) checkLifetime(s *shape) {
	if s.raw == nil {
		return
	}
	series := c.text(s.raw)
	for _, modifier := range []string{" offset", " @"} {
		series, _, _ = strings.Cut(series, modifier)
	}
	if s.bucket {
		c.report(CodeCounterWithoutRate, Error, s.raw, "The buckets count from the start of the server. Write rate(%s[5m]).", series)
	} else {
		c.report(CodeCounterWithoutRate, Error, s.raw,
			"The counter counts from the start of the server, so the value says nothing about now. Write rate(%[1]s[5m]) or increase(%[1]s[1h]).", series)
	}
	s.raw = nil
}

func (c *checker) checkLifetimeRatio(e *parser.BinaryExpr, left, right *shape) {
	if right.scalar || left.scalar && right.raw == nil {
		return
	}
	if left.raw == nil && right.raw == nil {
		return
	}
	c.report(CodeLifetimeRatio, Error, e, "The counters count from the start of the servers, so the ratio covers their whole life. Put rate(...[5m]) around both.")
	left.raw, right.raw = nil, nil
}

// checkBucketUse reports arithmetic with buckets of which le was aggregated away.
func (c *checker) checkBucketUse(node parser.Node, s *shape) {
	if !s.bucket || !s.leLost {
		return
	}
	s.leLost = false
	c.report(CodeBucketUse, Error, node, "The buckets of a histogram contain the smaller ones, so their sum counts events several times. Select one le, or use the series that ends in _count.")
}

// longLatency is in seconds: a threshold above it for the latency of requests is certainly
// meant in milliseconds.
const longLatency = 1000

// checkThreshold reports comparisons with numbers that the values cannot reach or that are
// in another unit.
func (c *checker) checkThreshold(e *parser.BinaryExpr, left, right *shape) {
	value, limit, op := left, right.literal, e.Op
	if left.scalar {
		value, limit, op = right, left.literal, mirrored(e.Op)
	}
	if value.scalar || limit == nil || c.variableBetween(e.RHS) && right.scalar {
		return
	}
	if value.stamp && *limit < 1e9 {
		c.stampUse(e, "compared with "+fmt.Sprint(*limit))
		return
	}
	percent := ""
	switch {
	case value.class == classFraction && value.unit.known && value.unit.equal(one):
		if *limit > 1 && *limit <= 100 {
			percent = fmt.Sprintf(" Write %v.", *limit/100)
		}
		c.outOfRange(e, op, *limit, 1, "The value is a ratio between 0 and 1", percent)
	case value.class == classFraction && value.unit.known && value.unit.equal(unitWords["%"]):
		c.outOfRange(e, op, *limit, 100, "The value is between 0 and 100 %", "")
	case value.class == classState:
		c.outOfRange(e, op, *limit, 1, "The value is 0 or 1", "")
	case value.class == classLevel:
		c.outOfRange(e, op, *limit, 3, "The value is a level from 0 to 3", "")
	case value.unit.equal(unitWords["s"]) && value.unit.known && (value.class == classQuantile || value.class == classMean):
		c.latencyThreshold(e, value, *limit, op)
	}
}

func (c *checker) latencyThreshold(e *parser.BinaryExpr, value *shape, limit float64, op parser.ItemType) {
	above := op == parser.GTR || op == parser.GTE
	switch {
	case limit >= longLatency && (value.limit == 0 || limit < value.limit || limit/1000 < value.limit):
		c.report(CodeThreshold, Error, e, "The value is in seconds and %v is more than a quarter of an hour; it looks like milliseconds. Write %v.", limit, limit/1000)
	case value.class == classQuantile && value.lowest > 0 && limit < value.lowest && limit > 0:
		c.report(CodeThreshold, Warning, e,
			"The smallest bound of the histogram is %v: below it a quantile is only interpolated from 0, so it cannot be compared with %v. Use a larger threshold.", value.lowest, limit)
	case above && value.class == classMean && len(value.metrics) == 1 && value.metrics[wholeRequest] && limit <= 0.3:
		c.report(CodeThreshold, Warning, e,
			"A whole request lasts until the end of its answer: nearly all take more than %v s. The smallest bound is 0.3. Use a larger threshold, or the time to the first token.", limit)
	case above && value.limit > 0 && (limit > value.limit || limit == value.limit && op == parser.GTR):
		c.report(CodeThreshold, Error, e,
			"The largest bound of the histogram is %v: no quantile is ever above it. Use the share of requests above a bound instead.", value.limit)
	}
}

// wholeRequest is the metric of the time from a request's arrival to the end of its answer.
const wholeRequest = "vllm.e2e_request_latency"

// outOfRange reports a comparison that never or always holds for values from 0 to high.
func (c *checker) outOfRange(e *parser.BinaryExpr, op parser.ItemType, limit, high float64, what, suggestion string) {
	outside := limit < 0 || limit > high
	switch op {
	case parser.GTR:
		outside = outside || limit == high
	case parser.LSS:
		outside = outside || limit == 0
	}
	if !outside {
		return
	}
	effect := "the comparison with " + fmt.Sprint(limit) + " always gives the same result"
	c.report(CodeThreshold, Error, e, "%s, so %s.%s", what, effect, suggestion)
}

func mirrored(op parser.ItemType) parser.ItemType {
	switch op {
	case parser.GTR:
		return parser.LSS
	case parser.LSS:
		return parser.GTR
	case parser.GTE:
		return parser.LTE
	case parser.LTE:
		return parser.GTE
	}
	return op
}

// checkColours reports thresholds of a panel, or of an alert of Grafana, that its values never
// reach.
func (c *checker) checkColours(root parser.Expr, result shape) {
	if !result.unit.known || result.scalar {
		return
	}
	switch {
	case result.class == classFraction && result.unit.equal(one):
		for _, limit := range c.context.Thresholds {
			if limit > 1 {
				c.report(CodeThreshold, Error, root, "The threshold %v is out of reach: the value is a ratio between 0 and 1. Write %v if you mean percent.", limit, limit/100)
			}
		}
	case result.unit.equal(unitWords["s"]) && (result.class == classQuantile || result.class == classMean):
		for _, limit := range c.context.Thresholds {
			if limit >= longLatency && (result.limit == 0 || limit/1000 < result.limit) {
				c.report(CodeThreshold, Error, root, "The value is in seconds and the threshold %v is more than a quarter of an hour; it looks like milliseconds. Write %v.", limit, limit/1000)
			}
		}
	}
	c.checkFullCache(root, result)
}

// checkNoDataAsZero reports a latency that is shown as 0 where there is none.
func (c *checker) checkNoDataAsZero(e *parser.BinaryExpr, left, right *shape) {
	if e.Op != parser.LOR || !right.scalar || right.literal == nil || *right.literal != 0 {
		return
	}
	if left.class == classQuantile || left.class == classMean {
		c.report(CodeNoDataAsZero, Warning, e, "Without data the %s is shown as 0, the best possible value. Remove \"or vector(0)\".", left.class)
	}
}
