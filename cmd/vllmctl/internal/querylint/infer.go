package querylint

import (
	"maps"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// infer returns the shape of an expression and reports the findings in it.
func (c *checker) infer(expr parser.Expr) shape {
	switch e := expr.(type) {
	case *parser.ParenExpr:
		return c.infer(e.Expr)
	case *parser.StepInvariantExpr:
		return c.infer(e.Expr)
	case *parser.NumberLiteral:
		return c.number(e)
	case *parser.UnaryExpr:
		return c.unary(e)
	case *parser.VectorSelector:
		s := c.selector(e)
		if s.typ == typCounter {
			s.raw = e
		}
		return s
	case *parser.MatrixSelector:
		return c.ranged(e)
	case *parser.SubqueryExpr:
		return c.infer(e.Expr)
	case *parser.AggregateExpr:
		return c.aggregate(e)
	case *parser.BinaryExpr:
		return c.binary(e)
	case *parser.Call:
		return c.call(e)
	}
	return unknownShape()
}

func (c *checker) number(e *parser.NumberLiteral) shape {
	s := shape{scalar: true, metrics: map[string]bool{}, labels: closedSet(), ident: map[string]bool{}}
	if c.isVariable(e) {
		return s
	}
	s.literal = &e.Val
	return s
}

func (c *checker) unary(e *parser.UnaryExpr) shape {
	s := c.infer(e.Expr)
	if e.Op == parser.SUB && s.literal != nil {
		negated := -*s.literal
		s.literal = &negated
	}
	return s
}

// ranged returns the shape of the samples of a range.
func (c *checker) ranged(e *parser.MatrixSelector) shape {
	c.checkRange(e)
	if s, is := e.VectorSelector.(*parser.VectorSelector); is {
		return c.selector(s)
	}
	return c.infer(e.VectorSelector)
}

// selector returns the shape of a selector and checks its name and its matchers.
func (c *checker) selector(e *parser.VectorSelector) shape {
	name := c.nameWithoutVariable(e)
	if name == "" {
		c.checkNamePattern(e)
		return unknownShape()
	}
	s, known := c.shapeOfName(e, name)
	if !known {
		return unknownShape()
	}
	s.fixed = map[string]bool{}
	c.checkMatchers(e, &s)
	for _, m := range e.LabelMatchers {
		if m.Type == labels.MatchEqual && m.Value != "" && m.Name != model.MetricNameLabel {
			s.fixed[m.Name] = true
			delete(s.ident, m.Name)
		}
	}
	return s
}

func (c *checker) shapeOfName(node *parser.VectorSelector, name string) (shape, bool) {
	if s, recorded := c.linter.recorded[name]; recorded {
		s.ident, s.metrics = maps.Clone(s.ident), maps.Clone(s.metrics)
		if s.metrics == nil {
			s.metrics = map[string]bool{}
		}
		s.metrics[name] = true
		return s, true
	}
	e, known := c.linter.lookup(name)
	if m, whole := c.linter.names.bare[name]; whole && c.native {
		e, known = entry{metric: m, part: partWhole}, true
	}
	if known {
		if node != nil {
			if c.checkNamed(node, name, e) {
				return shape{}, false
			}
		}
		s := c.shapeOf(e)
		if !looksOurs(name) {
			// http_requests_total of another program has other labels.
			s.labels, s.ident, s.metric = labelSet{}, nil, nil
		}
		return s, true
	}
	if name == "up" {
		// Prometheus makes it for each target.
		s := shape{typ: typGauge, class: classState, unit: one, labels: closedSet(), ident: map[string]bool{"job": true, "instance": true}, metrics: map[string]bool{name: true}}
		s.labels.deployment = true
		return s, true
	}
	if node != nil && !exists(name) && !OfRouter(name) {
		c.checkUnknown(node, name)
	}
	return shape{}, false
}

// concerns reports whether an expression has a name that this package can know: of the
// catalogue, of a recording rule, or up.
func (c *checker) concerns(root parser.Expr) bool {
	found := false
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is {
			return nil
		}
		name := selectorName(s)
		_, recorded := c.linter.recorded[name]
		found = found || recorded || name == "up" || looksOurs(name)
		for _, m := range s.LabelMatchers {
			found = found || m.Name == model.MetricNameLabel && looksOurs(strings.TrimPrefix(m.Value, "^"))
		}
		return nil
	})
	return found
}

// checkNamePattern reports a pattern of names that matches no metric.
func (c *checker) checkNamePattern(e *parser.VectorSelector) {
	for _, m := range e.LabelMatchers {
		if m.Name != model.MetricNameLabel || m.Type != labels.MatchRegexp {
			continue
		}
		if name := strings.TrimPrefix(m.Value, "^"); !looksOurs(name) || OfRouter(name) {
			continue
		}
		found := false
		for name := range c.linter.names.byName {
			found = found || m.Matches(name)
		}
		for name := range c.linter.recorded {
			found = found || m.Matches(name)
		}
		if !found {
			c.report(CodeUnknownMetric, Error, e, "No metric and no recording rule has a name that matches %q. Correct the pattern.", m.Value)
		}
	}
}

// metricsIn returns the names of the metrics in an expression, those behind recording rules
// included.
func (c *checker) metricsIn(expr parser.Node) map[string]bool {
	all := map[string]bool{}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			if found, known := c.shapeOfName(nil, selectorName(s)); known {
				maps.Copy(all, found.metrics)
			}
		}
		return nil
	})
	return all
}

// inner returns an expression without parentheses.
func inner(expr parser.Expr) parser.Expr {
	for {
		p, is := expr.(*parser.ParenExpr)
		if !is {
			return expr
		}
		expr = p.Expr
	}
}
