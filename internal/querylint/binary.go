package querylint

import (
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// binary returns the shape of a binary operation.
func (c *checker) binary(e *parser.BinaryExpr) shape {
	switch {
	case e.Op.IsSetOperator():
		return c.setOperation(e)
	case e.Op.IsComparisonOperator():
		return c.comparison(e)
	default:
		return c.arithmetic(e)
	}
}

// setOperation returns the shape of and, or and unless.
func (c *checker) setOperation(e *parser.BinaryExpr) shape {
	var left, right shape
	if e.Op == parser.LAND {
		left = c.guarded(e.LHS, c.guardsOf(e.RHS))
		right = c.guarded(e.RHS, c.guardsOf(e.LHS))
	} else {
		left, right = c.infer(e.LHS), c.infer(e.RHS)
	}
	c.checkSetMatching(e, &left, &right)
	c.checkNoDataAsZero(e, &left, &right)
	switch e.Op {
	case parser.LOR:
		return left.or(right)
	case parser.LAND:
		guards := c.guardsOf(e.RHS)
		if len(left.metrics) > 0 && covered(left.metrics, guards) && left.typ != typUnknown {
			left.positive = true
		}
		if left.raw != nil && right.raw != nil {
			right.raw = nil
		}
	case parser.LUNLESS:
		left.perEngine = nil
		if c.context.Kind == Alert || subset(left.metrics, right.metrics) {
			// Only the presence matters.
			left.raw = nil
		}
	}
	// The presence of the right side is what counts.
	left.ident = maps.Clone(left.ident)
	return left
}

// guarded infers an expression below an "and" that requires metrics to be positive.
func (c *checker) guarded(expr parser.Expr, positive map[string]bool) shape {
	c.guards = append(c.guards, positive)
	s := c.infer(expr)
	c.guards = c.guards[:len(c.guards)-1]
	return s
}

// guardsOf returns the metrics that must be positive for an expression to have a result.
func (c *checker) guardsOf(expr parser.Expr) map[string]bool {
	e, is := inner(expr).(*parser.BinaryExpr)
	if !is || e.ReturnBool {
		return nil
	}
	if known, asked := c.required[e]; asked {
		return known
	}
	all := c.requiredBy(e)
	if c.required == nil {
		c.required = map[*parser.BinaryExpr]map[string]bool{}
	}
	c.required[e] = all
	return all
}

func (c *checker) requiredBy(e *parser.BinaryExpr) map[string]bool {
	all := map[string]bool{}
	switch e.Op {
	case parser.LAND:
		maps.Copy(all, c.guardsOf(e.LHS))
		maps.Copy(all, c.guardsOf(e.RHS))
	case parser.LUNLESS:
		maps.Copy(all, c.guardsOf(e.LHS))
	case parser.GTR, parser.GTE, parser.NEQ:
		if limit, is := number(e.RHS); is && lowerLimit(e.Op, limit) && !divides(e.LHS) {
			maps.Copy(all, c.metricsIn(e.LHS))
		}
	case parser.LSS, parser.LTE:
		if limit, is := number(e.LHS); is && (e.Op == parser.LSS && limit >= 0 || limit > 0) && !divides(e.RHS) {
			maps.Copy(all, c.metricsIn(e.RHS))
		}
	}
	return all
}

// lowerLimit reports whether a comparison with a number excludes 0.
func lowerLimit(op parser.ItemType, limit float64) bool {
	switch op {
	case parser.GTR:
		return limit >= 0
	case parser.GTE:
		return limit > 0
	case parser.NEQ:
		return limit == 0
	}
	return false
}

// divides reports whether an expression contains a division: it can exceed a limit because
// its divisor is 0, so it is no guard.
func divides(expr parser.Expr) bool {
	found := false
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if b, is := node.(*parser.BinaryExpr); is && b.Op == parser.DIV {
			if n, literal := number(b.RHS); !literal || n == 0 {
				found = true
			}
		}
		return nil
	})
	return found
}

func covered(metrics, guards map[string]bool) bool {
	for name := range metrics {
		if !guards[name] {
			return false
		}
	}
	return true
}

// number returns the value of a literal.
func number(expr parser.Expr) (float64, bool) {
	switch e := inner(expr).(type) {
	case *parser.NumberLiteral:
		return e.Val, true
	case *parser.UnaryExpr:
		v, is := number(e.Expr)
		if e.Op == parser.SUB {
			v = -v
		}
		return v, is
	}
	return 0, false
}

// comparison returns the shape of a comparison.
func (c *checker) comparison(e *parser.BinaryExpr) shape {
	left, right := c.infer(e.LHS), c.infer(e.RHS)
	c.checkSameUnit(e, &left, &right)
	if left.raw != nil && right.raw == nil || left.raw == nil && right.raw != nil {
		raw := &left
		if left.raw == nil {
			raw = &right
		}
		c.checkLifetime(raw)
	}
	c.checkThreshold(e, &left, &right)
	s := c.combined(e, &left, &right)
	if left.scalar && !right.scalar {
		// 0 < x keeps the values of x.
		s.typ, s.class, s.unit, s.metric = right.typ, right.class, right.unit, right.metric
		s.bucket, s.bounds, s.leLost, s.limit, s.perEngine = right.bucket, right.bounds, right.leLost, right.limit, right.perEngine
	} else {
		s.typ, s.class, s.unit, s.metric = left.typ, left.class, left.unit, left.metric
		s.bucket, s.bounds, s.leLost, s.limit, s.perEngine = left.bucket, left.bounds, left.leLost, left.limit, left.perEngine
	}
	if e.ReturnBool {
		s.typ, s.class, s.unit, s.bucket = typGauge, classState, one, false
		return s
	}
	if s.scalar {
		return s
	}
	s.filter = e
	switch e.Op {
	case parser.GTR, parser.GTE, parser.NEQ:
		if limit, is := number(e.RHS); is {
			s.positive = lowerLimit(e.Op, limit) || left.positive
		}
		if e.Op != parser.NEQ && (right.positive || right.constant && right.literal == nil) {
			s.positive = true
		}
	case parser.LSS, parser.LTE:
		if limit, is := number(e.LHS); is {
			s.positive = e.Op == parser.LSS && limit >= 0 || limit > 0
		}
	case parser.EQLC:
		if limit, is := number(e.RHS); is && limit != 0 {
			s.positive = true
		}
	}
	return s
}

// arithmetic returns the shape of an arithmetic operation.
func (c *checker) arithmetic(e *parser.BinaryExpr) shape {
	if e.Op == parser.DIV {
		if c.divisors == nil {
			c.divisors = map[parser.Node]bool{}
		}
		c.divisors[inner(e.RHS)] = true
	}
	left, right := c.infer(e.LHS), c.infer(e.RHS)
	c.checkBool(e, &left, &right)
	if e.Op == parser.DIV {
		c.checkLifetimeRatio(e, &left, &right)
		c.checkDivision(e, &left, &right)
		c.checkQuotient(e, &left, &right)
	}
	if e.Op == parser.ADD {
		c.checkDoubleCount(e)
	}
	if e.Op == parser.ADD || e.Op == parser.SUB {
		c.checkSameUnit(e, &left, &right)
	}
	if e.Op == parser.MUL {
		c.checkRateFactor(e)
	}
	c.checkBucketUse(e, &left)
	c.checkBucketUse(e, &right)
	s := c.combined(e, &left, &right)
	s.typ, s.filter = typGauge, nil
	if left.typ == typUnknown && !left.scalar || right.typ == typUnknown && !right.scalar {
		s.typ = typUnknown
	}
	s.raw = left.raw
	if s.raw == nil {
		s.raw = right.raw
	}
	switch e.Op {
	case parser.ADD, parser.SUB:
		c.added(e, &s, &left, &right)
	case parser.MUL:
		c.multiplied(&s, &left, &right)
	case parser.DIV:
		c.divided(&s, &left, &right)
	case parser.MOD:
		s.unit = left.unit
	default:
		s.unit = unit{}
	}
	return s
}

func (c *checker) added(e *parser.BinaryExpr, s, left, right *shape) {
	switch {
	case left.scalar && !right.scalar:
		s.unit, s.class = right.unit, right.class
	case right.scalar:
		s.unit, s.class = left.unit, left.class
	default:
		s.unit, s.class = left.unit, left.class
		if !right.unit.known {
			s.unit = unit{}
		}
		if left.class != right.class {
			s.class = classUnknown
		}
		if left.typ == typRate && right.typ == typRate {
			s.typ = typRate
		}
	}
	nonNegative := func(x *shape) bool { return x.positive || x.typ == typRate || x.typ == typCounter }
	s.positive = e.Op == parser.ADD && (left.positive && nonNegative(right) || right.positive && nonNegative(left))
	// The processor accepts targets between 0 and 1 only, so 1 - target is never 0.
	s.constant = left.constant && right.constant && (e.Op == parser.ADD || left.literal != nil && *left.literal == 1 && isTarget(right))
	if e.Op == parser.SUB && left.scalar && right.class == classFraction && left.literal != nil && *left.literal == 1 {
		s.class = classFraction
	}
}

func isTarget(s *shape) bool {
	for name := range s.metrics {
		if !strings.Contains(name, "slo") || !strings.Contains(name, "target") {
			return false
		}
	}
	return true
}

func (c *checker) multiplied(s, left, right *shape) {
	s.positive, s.constant = left.positive && right.positive, left.constant && right.constant
	switch {
	case right.literal != nil && right.scalar:
		s.unit, s.class, s.typ = left.unit.multiplied(*right.literal), left.class, left.typ
	case left.literal != nil && left.scalar:
		s.unit, s.class, s.typ = right.unit.multiplied(*left.literal), right.class, right.typ
	case left.scalar:
		s.unit, s.class = unit{}, right.class
	case right.scalar:
		s.unit, s.class = unit{}, left.class
	default:
		s.unit, s.class = left.unit.times(right.unit), classPlain
		if left.class.judged() && right.class.judged() {
			s.class = left.class
		}
		if right.class == classState {
			s.class = left.class
		}
	}
	if s.class == classFraction && s.unit.known && !s.unit.equal(one) && s.unit.scale != 0.01 {
		s.class = classRatio
	}
}

func (c *checker) divided(s, left, right *shape) {
	s.positive, s.constant = left.positive && right.positive, left.constant && right.constant
	switch {
	case right.literal != nil && right.scalar && *right.literal != 0:
		s.unit, s.class, s.typ = left.unit.multiplied(1 / *right.literal), left.class, left.typ
		if s.class == classFraction && *right.literal < 1 {
			s.class = classRatio
		}
		return
	case right.scalar, left.scalar:
		s.unit = unit{}
		s.class = left.class
		if s.class == classFraction || left.scalar {
			s.class = classRatio
		}
		return
	}
	s.unit = left.unit.over(right.unit)
	switch {
	case left.class == classUnknown || right.class == classUnknown:
		s.class = classUnknown
		if left.typ == typRate && right.typ == typRate {
			s.class = classRatio
		}
	case left.class.judged():
		s.class = classRatio
	case subset(left.metrics, right.metrics) && left.unit.equal(right.unit):
		s.class = classFraction
	case left.unit.equal(right.unit):
		s.class = classRatio
	default:
		s.class = classMean
	}
}

// combined returns the labels, the identity and the metrics of a binary operation, and
// checks its matching.
func (c *checker) combined(e *parser.BinaryExpr, left, right *shape) shape {
	s := shape{metrics: unite(left.metrics, right.metrics), scalar: left.scalar && right.scalar}
	switch {
	case s.scalar && left.literal == nil && right.literal == nil, e.VectorMatching == nil && right.scalar:
		s.labels, s.ident, s.fixed = left.labels, maps.Clone(left.ident), left.fixed
	case e.VectorMatching == nil:
		s.labels, s.ident, s.fixed = right.labels, maps.Clone(right.ident), right.fixed
	default:
		s.labels, s.ident, s.fixed = c.matched(e, left, right)
	}
	if s.scalar && left.literal != nil && right.literal != nil {
		s.literal = fold(e.Op, *left.literal, *right.literal)
		s.positive = s.literal != nil && *s.literal > 0
		s.constant = s.literal != nil && *s.literal != 0
	}
	return s
}

// fold computes with literals.
func fold(op parser.ItemType, a, b float64) *float64 {
	switch op {
	case parser.ADD:
		a += b
	case parser.SUB:
		a -= b
	case parser.MUL:
		a *= b
	case parser.DIV:
		if b == 0 {
			return nil
		}
		a /= b
	default:
		return nil
	}
	return &a
}
