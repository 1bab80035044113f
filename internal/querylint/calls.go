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
		s.raw, s.typ, s.class, s.unit, s.positive = nil, typGauge, classPlain, one, false
		return s
	case "histogram_quantile":
		return c.quantile(e)
	case "absent", "absent_over_time":
		return c.absent(e)
	case "vector":
		s := c.infer(e.Args[0])
		s.labels, s.ident, s.scalar = closedSet(), map[string]bool{}, true
		return s
	case "scalar":
		s := c.infer(e.Args[0])
		s.scalar, s.labels, s.ident, s.filter = true, closedSet(), map[string]bool{}, nil
		return s
	case "time":
		return shape{scalar: true, unit: unitWords["s"], positive: true, metrics: map[string]bool{}}
	case "timestamp":
		s := c.infer(e.Args[0])
		s.raw, s.unit, s.class, s.typ, s.positive, s.constant = nil, unitWords["s"], classPlain, typGauge, true, false
		return s
	case "label_replace", "label_join":
		s := c.infer(e.Args[0])
		if target, is := e.Args[1].(*parser.StringLiteral); is && s.labels.closed {
			s.labels = s.labels.with(target.Val)
		}
		return s
	case "clamp_min":
		s := c.infer(e.Args[0])
		if low := c.infer(e.Args[1]); low.literal != nil && *low.literal > 0 {
			s.positive = true
		}
		return s
	case "clamp":
		s := c.infer(e.Args[0])
		if low := c.infer(e.Args[1]); low.literal != nil && *low.literal > 0 {
			s.positive = true
		}
		return s
	case "abs", "clamp_max", "sort", "sort_desc", "sort_by_label", "sort_by_label_desc", "ceil":
		return c.infer(e.Args[0])
	case "floor", "round":
		s := c.infer(e.Args[0])
		s.positive = false
		return s
	case "sgn":
		s := c.infer(e.Args[0])
		s.unit, s.class = one, classPlain
		return s
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
	var s shape
	switch arg := inner(e.Args[0]).(type) {
	case *parser.SubqueryExpr:
		s = c.rateOfSubquery(e, arg)
	default:
		s = c.infer(arg)
		if s.typ == typGauge || s.typ == typRate {
			c.report(CodeRateOfGauge, Error, e, "%s is for counters, and %s. Use the value itself, or deriv or delta for its change.",
				e.Func.Name, describeType(arg, s))
		}
	}
	s.raw, s.typ, s.positive, s.constant = nil, typRate, false, false
	if s.class.judged() {
		s.class = classPlain
	}
	c.checkInterval(e)
	if e.Func.Name != "increase" {
		s.unit = s.unit.over(unitWords["s"])
	}
	return s
}

func describeType(arg parser.Expr, s shape) string {
	name := arg.String()
	if m, is := arg.(*parser.MatrixSelector); is {
		if v, is := m.VectorSelector.(*parser.VectorSelector); is {
			name = selectorName(v)
		}
	}
	if s.typ == typRate {
		return name + " is a rate already"
	}
	return name + " is a gauge"
}

func (c *checker) rateOfSubquery(e *parser.Call, q *parser.SubqueryExpr) shape {
	s := c.infer(q.Expr)
	switch body := inner(q.Expr).(type) {
	case *parser.AggregateExpr:
		if s.raw != nil || s.typ == typCounter || s.typ == typUnknown {
			c.report(CodeRateOfAggregate, Error, e,
				"%s of an aggregation takes the restart of one server for an increase of all. Write %s(%s(...[range])).",
				e.Func.Name, body.Op, e.Func.Name)
			return s
		}
	case *parser.VectorSelector:
		c.report(CodeSubquery, Warning, e,
			"The subquery reads the counter only at its own steps and misses restarts between them. Write %s(%s[%s]).",
			e.Func.Name, c.text(body), shortDuration(q.Range))
		return s
	}
	if s.typ == typRate || s.typ == typGauge {
		c.report(CodeSubquery, Error, e, "%s of something that is not a counter has no meaning. Use avg_over_time or deriv.", e.Func.Name)
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
		c.report(CodeDeltaOfCounter, Error, e, "%s is for gauges: when a server restarts, its counters begin at 0 and the result is negative. Use increase or rate.",
			e.Func.Name)
	}
	s.raw, s.typ, s.positive, s.filter, s.class, s.constant = nil, typGauge, false, nil, classPlain, false
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
		s.raw, s.filter, s.typ, s.unit, s.class, s.positive = nil, nil, typGauge, one, classPlain, true
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
	result := shape{typ: typGauge, class: classState, unit: one, labels: closedSet(), ident: map[string]bool{}, metrics: c.metricsIn(e.Args[0]), positive: true, absent: true}
	arg := inner(e.Args[0])
	if m, is := arg.(*parser.MatrixSelector); is {
		arg = m.VectorSelector
	}
	s, is := arg.(*parser.VectorSelector)
	if !is {
		if c.context.Kind == Alert {
			if agg, is := arg.(*parser.AggregateExpr); is && !agg.Without && len(agg.Grouping) > 0 {
				c.report(CodeAbsent, Warning, e,
					"absent of an aggregation has no labels: it does not say which %s is absent, and is silent while any other one is present. Use \"unless\" with an offset, or one absent per series.",
					strings.Join(agg.Grouping, ", "))
			}
		}
		return result
	}
	seen := map[string]int{}
	for _, m := range s.LabelMatchers {
		seen[m.Name]++
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if m.Type == labels.MatchEqual && seen[m.Name] == 1 {
			result.labels.own[m.Name] = true
			continue
		}
		if c.context.Kind == Alert && m.Type == labels.MatchRegexp && m.Value != ".*" && m.Value != ".+" {
			c.report(CodeAbsent, Warning, e,
				"absent is silent while any series matches %s, and its result does not have the label %s. Write one absent with %s=\"...\" for each series.",
				m, m.Name, m.Name)
		}
	}
	maps.Copy(result.fixedSet(), result.labels.own)
	return result
}

func (s *shape) fixedSet() map[string]bool {
	if s.fixed == nil {
		s.fixed = map[string]bool{}
	}
	return s.fixed
}

// checkRange reports ranges that hold too few scrapes.
func (c *checker) checkRange(e *parser.MatrixSelector) {
	if e.RangeExpr != nil || c.variableBetween(e) {
		return
	}
	least := 4 * c.linter.options.ScrapeInterval
	if e.Range < least {
		c.report(CodeShortRange, Warning, e,
			"A range of %s holds less than four scrapes of %s: one lost scrape makes a gap. Use at least %s.",
			shortDuration(e.Range), shortDuration(c.linter.options.ScrapeInterval), shortDuration(least))
	}
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

func shortDuration(d time.Duration) string {
	text := d.String()
	text = strings.TrimSuffix(text, "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	if text == "" || strings.HasSuffix(text, "m") || strings.HasSuffix(text, "h") {
		return text
	}
	return d.String()
}
