package querylint

import (
	"maps"

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
	left, right := c.infer(e.LHS), c.infer(e.RHS)
	c.checkSetMatching(e, &left, &right)
	c.checkNoDataAsZero(e, &left, &right)
	switch e.Op {
	case parser.LOR:
		return left.or(right)
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
	kept := &left
	if left.scalar && !right.scalar {
		// 0 < x keeps the values of x.
		kept = &right
	}
	s.sum = kept.sum
	s.typ, s.class, s.unit, s.metric = kept.typ, kept.class, kept.unit, kept.metric
	s.bucket, s.bounds, s.leLost, s.limit, s.perEngine = kept.bucket, kept.bounds, kept.leLost, kept.limit, kept.perEngine
	if e.ReturnBool {
		s.typ, s.class, s.unit, s.bucket = typGauge, classState, one, false
	} else if !s.scalar {
		s.filter = e
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
	switch e.Op {
	case parser.DIV:
		c.checkLifetimeRatio(e, &left, &right)
		c.checkQuotient(e, &left, &right)
	case parser.ADD:
		c.checkDoubleCount(e)
		c.checkSameUnit(e, &left, &right)
	case parser.SUB:
		c.checkSameUnit(e, &left, &right)
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
		added(e, &s, &left, &right)
		if left.sum != nil && right.sum != nil {
			s.sum = left.sum
		}
	case parser.MUL:
		if right.scalar {
			s.sum = left.sum
		} else if left.scalar {
			s.sum = right.sum
		}
		multiplied(&s, &left, &right)
	case parser.DIV:
		divided(&s, &left, &right)
	case parser.MOD:
		s.unit = left.unit
	default:
		s.unit = unit{}
	}
	return s
}

func added(e *parser.BinaryExpr, s, left, right *shape) {
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
	if e.Op == parser.SUB && left.scalar && right.class == classFraction && left.literal != nil && *left.literal == 1 {
		s.class = classFraction
	}
}

func multiplied(s, left, right *shape) {
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

func divided(s, left, right *shape) {
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
