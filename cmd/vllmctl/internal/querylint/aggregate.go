package querylint

import (
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

// partitions are labels over which shares of one whole can be added up.
var partitions = map[string]bool{
	"finished_reason": true, "reason": true, "source": true, "status_class": true, "position": true, "stage": true, "status": true,
}

// aggregate returns the shape of an aggregation.
func (c *checker) aggregate(e *parser.AggregateExpr) shape {
	if e.Param != nil {
		c.infer(e.Param)
	}
	s := c.infer(e.Expr)
	c.checkGrouping(e, &s)
	c.checkStamp(e, &s)
	c.checkTwins(e)
	c.checkServers(e)
	perEngine := c.perEngine(e, &s)
	switch e.Op {
	case parser.COUNT, parser.GROUP, parser.COUNT_VALUES:
		s.raw, s.filter, s.typ, s.class, s.unit, s.bucket, s.leLost, s.metric = nil, nil, typGauge, classPlain, one, false, false, nil
		s = c.grouped(e, s)
		if name, is := e.Param.(*parser.StringLiteral); is && e.Op == parser.COUNT_VALUES {
			s.labels = s.labels.with(name.Val)
			if s.ident != nil {
				s.ident[name.Val] = true
			}
		}
		return s
	case parser.TOPK, parser.BOTTOMK:
		// The order is by the value, also where "and" drops the value afterwards.
		c.checkLifetime(&s)
		return s
	case parser.LIMITK, parser.LIMIT_RATIO:
		return s
	case parser.SUM, parser.AVG:
		if e.Op == parser.SUM && c.divisors[e] {
			// A guard, one level deeper than usual.
			s.filter = nil
		}
		c.checkFilterAsNumber(&s, e.Op.String())
		c.checkJudged(e, &s)
	case parser.STDVAR:
		s.unit = unit{}
	}
	if e.Op == parser.STDDEV || e.Op == parser.STDVAR {
		s.class = classPlain
	}
	s.filter = nil
	s = c.grouped(e, s)
	s.perEngine = perEngine
	return s
}

// removedIdent returns the identifying labels that an aggregation removes.
func (c *checker) removedIdent(e *parser.AggregateExpr, s *shape) []string {
	return s.lost(e.Grouping, !e.Without, c.linter.labels)
}

// checkJudged reports sums and averages of ratios, means and quantiles.
func (c *checker) checkJudged(e *parser.AggregateExpr, s *shape) {
	removed := c.removedIdent(e, s)
	if s.class == classState && len(removed) > 0 {
		s.class = classPlain
		if e.Op == parser.AVG {
			s.class = classFraction
		}
		return
	}
	if s.class == classLevel && len(removed) > 0 {
		s.class = classPlain
		return
	}
	removed = slices.DeleteFunc(removed, func(label string) bool { return partitions[label] && s.class == classFraction })
	if !s.class.judged() || len(removed) == 0 {
		return
	}
	advice := "Add up the parts before you divide, or use max or min"
	switch s.class {
	case classQuantile:
		advice = "Add up the buckets with their le and take histogram_quantile of the sum, or use max"
	case classBurn:
		advice = "Compute the burn rate from the summed events"
	}
	severity, what := Error, "has no meaning: a busy server and an idle one count the same"
	if of := sortedKeys(s.metrics); e.Op == parser.AVG && s.class == classFraction && len(of) == 1 && slices.Contains(fullCache, of[0]) {
		// Each server counts with its own cache: right for equal ones.
		severity, what, advice = Info, "is right only for caches of the same size, and hides a full one", "Show max beside it"
	}
	c.report(CodeAggregatedRatio, severity, e, "%s of a %s over %s %s. %s.", e.Op, s.class, strings.Join(removed, ", "), what, advice)
	s.class = classPlain
}

// checkGrouping reports labels of by and without that do not exist.
func (c *checker) checkGrouping(e *parser.AggregateExpr, s *shape) {
	for _, label := range e.Grouping {
		if strings.HasPrefix(label, "v_") && c.variableBetween(e) {
			continue
		}
		if !s.labels.has(label, c.linter.labels) {
			if e.Without && c.linter.labels[label] {
				continue
			}
			c.unknownLabel(e, inner(e.Expr), label, s, "")
		}
	}
}

// grouped returns the shape with the labels that an aggregation keeps.
func (c *checker) grouped(e *parser.AggregateExpr, s shape) shape {
	if s.bucket && !s.fixed["le"] {
		s.leLost = slices.Contains(e.Grouping, "le") == e.Without
	}
	if e.Without {
		s.labels = s.labels.without(e.Grouping...)
		s.ident = maps.Clone(s.ident)
		for _, label := range e.Grouping {
			delete(s.ident, label)
		}
		return s
	}
	ident := map[string]bool{}
	for _, label := range e.Grouping {
		if !s.labels.has(label, c.linter.labels) || s.fixed[label] {
			continue
		}
		if s.ident == nil && len(e.Grouping) > 1 {
			// One label can determine another one: a pod has one node.
			ident = nil
			break
		}
		if s.ident == nil || s.ident[label] || c.linter.labels[label] {
			ident[label] = true
		}
	}
	s.labels, s.ident = s.labels.only(e.Grouping, c.linter.labels), ident
	return s
}
