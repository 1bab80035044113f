package querylint

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// call returns the shape of a function's result.
func (c *checker) call(e *parser.Call) shape {
	name := e.Func.Name
	switch name {
	case "rate", "irate", "increase":
		return c.rate(e)
	case "delta", "idelta", "deriv", "predict_linear", "double_exponential_smoothing", "holt_winters":
		return c.difference(e)
	case "resets", "changes":
		s := c.infer(e.Args[0])
		s.raw, s.typ, s.class, s.unit = nil, typGauge, classPlain, one
		return s
	case "histogram_quantile":
		return c.quantile(e)
	case "absent", "absent_over_time":
		return c.absent(e)
	case "vector", "scalar":
		s := c.infer(e.Args[0])
		s.scalar, s.labels, s.ident, s.filter = true, closedSet(), map[string]bool{}, nil
		return s
	case "time":
		return shape{scalar: true, unit: unitWords["s"], metrics: map[string]bool{}}
	case "timestamp":
		s := c.infer(e.Args[0])
		s.raw, s.unit, s.class, s.typ = nil, unitWords["s"], classPlain, typGauge
		return s
	case "label_replace", "label_join":
		s := c.infer(e.Args[0])
		if target, is := e.Args[1].(*parser.StringLiteral); is && s.labels.closed {
			s.labels = s.labels.with(target.Val)
		}
		return s
	case "abs", "clamp", "clamp_min", "clamp_max", "sort", "sort_desc", "sort_by_label", "sort_by_label_desc", "ceil", "floor", "round":
		return c.infer(e.Args[0])
	}
	if strings.HasSuffix(name, "_over_time") {
		return c.overTime(e)
	}
	if strings.HasPrefix(name, "histogram_") {
		return c.histogramCall(e)
	}
	return c.otherCall(e)
}

// otherCall returns what every function of vectors keeps.
func (c *checker) otherCall(e *parser.Call) shape {
	result := unknownShape()
	for i, arg := range e.Args {
		s := c.infer(arg)
		if i == 0 && !s.scalar {
			result = shape{labels: s.labels, ident: s.ident, fixed: s.fixed, metrics: s.metrics, raw: s.raw}
		}
	}
	return result
}

// rate returns the shape of rate, irate and increase.
func (c *checker) rate(e *parser.Call) shape {
	arg := inner(e.Args[0])
	s := c.infer(arg)
	if _, sub := arg.(*parser.SubqueryExpr); !sub && (s.typ == typGauge || s.typ == typRate) {
		name := arg.String()
		if m, is := arg.(*parser.MatrixSelector); is {
			if v, is := m.VectorSelector.(*parser.VectorSelector); is {
				name = selectorName(v)
			}
		}
		c.report(CodeRateOfGauge, Error, e, "%s needs a counter, and %s is another type. Use the value itself, or deriv or delta for its change.", e.Func.Name, name)
	}
	if s.each {
		s.sum = e
	}
	s.raw, s.typ = nil, typRate
	if s.class.judged() {
		s.class = classPlain
	}
	c.checkInterval(e)
	if e.Func.Name != "increase" {
		s.unit = s.unit.over(unitWords["s"])
	}
	return s
}

// difference returns the shape of functions for gauges.
func (c *checker) difference(e *parser.Call) shape {
	s := c.infer(e.Args[0])
	for _, arg := range e.Args[1:] {
		c.infer(arg)
	}
	if s.typ == typCounter {
		c.report(CodeDeltaOfCounter, Error, e, "%s is for gauges: when a server restarts, its counters fall to 0 and the result is negative. Use increase or rate.",
			e.Func.Name)
	}
	s.raw, s.typ, s.filter, s.class = nil, typGauge, nil, classPlain
	if e.Func.Name == "deriv" {
		s.unit = s.unit.over(unitWords["s"])
	}
	return s
}

// overTime returns the shape of the aggregations over time.
func (c *checker) overTime(e *parser.Call) shape {
	name := e.Func.Name
	at := slices.IndexFunc(e.Args, func(arg parser.Expr) bool { return arg.Type() == parser.ValueTypeMatrix })
	if at < 0 {
		return c.otherCall(e)
	}
	for i, arg := range e.Args {
		if i != at {
			c.infer(arg)
		}
	}
	s := c.infer(e.Args[at])
	switch name {
	case "count_over_time", "present_over_time":
		s.raw, s.filter, s.typ, s.unit, s.class = nil, nil, typGauge, one, classPlain
		return s
	case "avg_over_time", "sum_over_time", "stddev_over_time", "stdvar_over_time", "quantile_over_time":
		c.checkFilterAsNumber(&s, name)
	}
	if s.typ == typCounter && s.raw == nil {
		s.raw = e
	}
	if name == "sum_over_time" && s.class == classState || name == "stdvar_over_time" {
		s.class, s.unit = classPlain, unit{}
	}
	if name == "avg_over_time" && s.class == classState {
		s.class = classFraction
	}
	s.filter = nil
	return s
}

// absent returns the shape of absent, which has the labels of equality matchers only.
func (c *checker) absent(e *parser.Call) shape {
	c.infer(e.Args[0])
	result := shape{
		typ: typGauge, class: classState, unit: one, labels: closedSet(), ident: map[string]bool{}, fixed: map[string]bool{},
		metrics: c.metricsIn(e.Args[0]), absent: true,
	}
	arg := inner(e.Args[0])
	if m, is := arg.(*parser.MatrixSelector); is {
		arg = m.VectorSelector
	}
	s, is := arg.(*parser.VectorSelector)
	if !is {
		return result
	}
	seen := map[string]int{}
	for _, m := range s.LabelMatchers {
		seen[m.Name]++
	}
	for _, m := range s.LabelMatchers {
		if m.Name != model.MetricNameLabel && m.Type == labels.MatchEqual && seen[m.Name] == 1 {
			result.labels.own[m.Name] = true
		}
	}
	maps.Copy(result.fixed, result.labels.own)
	return result
}

// scrapeInterval is the usual time between two scrapes.
const scrapeInterval = 15 * time.Second

// checkRange reports ranges that hold too few scrapes.
func (c *checker) checkRange(e *parser.MatrixSelector) {
	if e.RangeExpr != nil || c.variableBetween(e) || e.Range >= 4*scrapeInterval {
		return
	}
	c.report(CodeShortRange, Warning, e, "A range of %s holds less than four scrapes of %s: one lost scrape makes a gap. Use at least %s.",
		model.Duration(e.Range), model.Duration(scrapeInterval), model.Duration(4*scrapeInterval))
}

// variableBetween reports whether a node contains the stand-in of a variable.
func (c *checker) variableBetween(node parser.Node) bool {
	at := node.PositionRange()
	return c.variableBetweenBytes(int(at.Start), int(at.End))
}

func (c *checker) variableBetweenBytes(start, end int) bool {
	i, _ := slices.BinarySearch(c.variables, start)
	return i < len(c.variables) && c.variables[i] < end
}
