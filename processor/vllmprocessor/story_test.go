package vllmprocessor

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// storyBegin is the second 0 of every story.
var storyBegin = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// story is the content of testdata/NAME/story.txt: batches, and with each what
// must be derived from it, worked out by hand. testdata/README.md explains the
// form.
type story struct {
	calls []call
}

// call is one call of ConsumeMetrics.
type call struct {
	at    time.Time
	input pmetric.Metrics
	// truth has the derived points by what point returns for them; NaN is an end.
	truth map[string]float64
}

type storyReader struct {
	t     *testing.T
	line  int
	story story

	call     *call
	at       time.Time
	start    time.Time
	instance string
	resource pmetric.ResourceMetrics
}

func readStory(t *testing.T, text string) story {
	t.Helper()
	r := storyReader{t: t}
	for i, line := range strings.Split(text, "\n") {
		r.line = i + 1
		line, _, _ = strings.Cut(line, "#")
		if fields := strings.Fields(line); len(fields) > 0 {
			r.read(fields)
		}
	}
	return r.story
}

func (r *storyReader) read(fields []string) {
	switch fields[0] {
	case "at":
		r.at = r.time(fields[1])
		r.story.calls = append(r.story.calls, call{at: r.at, input: pmetric.NewMetrics(), truth: map[string]float64{}})
		r.call = &r.story.calls[len(r.story.calls)-1]
		r.begin("vllm-0:8000")
	case "and": // the same call has points of another time
		r.at = r.time(fields[1])
		r.begin(r.instance)
	case "server":
		r.begin(fields[1])
	case "attribute":
		name, value, _ := strings.Cut(fields[1], "=")
		r.resource.Resource().Attributes().PutStr(name, value)
	case "start":
		r.start = r.time(fields[1])
	case "=":
		value := math.NaN()
		if expression := strings.Join(fields[2:], " "); expression != "end" {
			value = r.number(expression)
		}
		name, attributes := r.name(fields[1])
		key := point(r.instance, name, attributes, r.at)
		require.NotContains(r.t, r.call.truth, key, "line %d", r.line)
		r.call.truth[key] = value
	default:
		r.metric(fields)
	}
}

// begin starts a resource.
func (r *storyReader) begin(instance string) {
	r.instance = instance
	r.resource = r.call.input.ResourceMetrics().AppendEmpty()
	r.resource.Resource().Attributes().PutStr("service.name", "vllm")
	r.resource.Resource().Attributes().PutStr("service.instance.id", instance)
	r.resource.ScopeMetrics().AppendEmpty().Scope().SetName("story")
}

func (r *storyReader) metric(fields []string) {
	name, attributes := r.name(fields[1])
	metrics := r.resource.ScopeMetrics().At(0).Metrics()
	var metric pmetric.Metric
	if n := metrics.Len(); n > 0 && metrics.At(n-1).Name() == name {
		metric = metrics.At(n - 1)
	} else {
		metric = metrics.AppendEmpty()
		metric.SetName(name)
	}
	kind, delta := strings.CutPrefix(fields[0], "delta_")
	temporality := pmetric.AggregationTemporalityCumulative
	if delta {
		temporality = pmetric.AggregationTemporalityDelta
	}
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(fields[2] == "gone")
	if kind == "histogram" {
		if metric.Type() == pmetric.MetricTypeEmpty {
			metric.SetEmptyHistogram().SetAggregationTemporality(temporality)
		}
		p := metric.Histogram().DataPoints().AppendEmpty()
		p.SetTimestamp(pcommon.NewTimestampFromTime(r.at))
		p.SetFlags(gone)
		r.started(p.SetStartTimestamp)
		attributes.CopyTo(p.Attributes())
		if !gone.NoRecordedValue() {
			r.buckets(p, fields[2:])
		}
		return
	}
	var points pmetric.NumberDataPointSlice
	switch {
	case kind == "gauge":
		if metric.Type() == pmetric.MetricTypeEmpty {
			metric.SetEmptyGauge()
		}
		points = metric.Gauge().DataPoints()
	case kind == "counter":
		if metric.Type() == pmetric.MetricTypeEmpty {
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(temporality)
		}
		points = metric.Sum().DataPoints()
	default:
		require.Fail(r.t, "no such word", "line %d: %s", r.line, fields[0])
	}
	p := points.AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(r.at))
	p.SetFlags(gone)
	attributes.CopyTo(p.Attributes())
	if kind == "counter" {
		r.started(p.SetStartTimestamp)
	}
	if !gone.NoRecordedValue() {
		p.SetDoubleValue(r.number(fields[2]))
	}
}

func (r *storyReader) started(set func(pcommon.Timestamp)) {
	if !r.start.IsZero() {
		set(pcommon.NewTimestampFromTime(r.start))
	}
}

// buckets reads "0.1:2 1:3 inf:0 sum:4.5".
func (r *storyReader) buckets(p pmetric.HistogramDataPoint, fields []string) {
	for _, field := range fields {
		bound, text, found := strings.Cut(field, ":")
		require.True(r.t, found, "line %d: %s", r.line, field)
		if bound == "sum" {
			p.SetSum(r.number(text))
			continue
		}
		n := uint64(r.number(text))
		p.BucketCounts().Append(n)
		p.SetCount(p.Count() + n)
		if bound != "inf" {
			p.ExplicitBounds().Append(r.number(bound))
		}
	}
}

// name reads "vllm.x{0,reason=y}": engine 0 of the model m. "-" leaves the model
// out.
func (r *storyReader) name(text string) (string, pcommon.Map) {
	name, inner, braces := strings.Cut(text, "{")
	require.True(r.t, braces && strings.HasSuffix(inner, "}"), "line %d: %s", r.line, text)
	attributes := pcommon.NewMap()
	attributes.PutStr("model_name", "m")
	for part := range strings.SplitSeq(strings.TrimSuffix(inner, "}"), ",") {
		key, value, named := strings.Cut(part, "=")
		switch {
		case part == "":
		case part == "-":
			attributes.Remove("model_name")
		case named:
			attributes.PutStr(key, value)
		default:
			attributes.PutStr("engine", part)
		}
	}
	return name, attributes
}

func (r *storyReader) time(seconds string) time.Time {
	return storyBegin.Add(time.Duration(r.number(seconds) * float64(time.Second)))
}

// number computes an expression exactly, with +, -, *, / and brackets.
func (r *storyReader) number(expression string) float64 {
	parsed, err := parser.ParseExpr(expression)
	require.NoError(r.t, err, "line %d", r.line)
	value, _ := constant.Float64Val(compute(r.t, parsed))
	return value
}

func compute(t *testing.T, expression ast.Expr) constant.Value {
	t.Helper()
	switch e := expression.(type) {
	case *ast.BasicLit:
		return constant.ToFloat(constant.MakeFromLiteral(e.Value, e.Kind, 0))
	case *ast.ParenExpr:
		return compute(t, e.X)
	case *ast.UnaryExpr:
		return constant.UnaryOp(e.Op, compute(t, e.X), 0)
	case *ast.BinaryExpr:
		x, y := compute(t, e.X), compute(t, e.Y)
		require.False(t, e.Op == token.QUO && constant.Sign(y) == 0, "division by zero")
		return constant.BinaryOp(x, e.Op, y)
	}
	require.Fail(t, "not an expression", "%T", expression)
	return nil
}

// point is how a story names a point.
func point(instance, name string, attributes pcommon.Map, at time.Time) string {
	var all []string
	for key, value := range attributes.All() {
		all = append(all, key+"="+value.AsString())
	}
	slices.Sort(all)
	return fmt.Sprintf("%s %ss %s{%s}", instance, strconv.FormatFloat(at.Sub(storyBegin).Seconds(), 'f', -1, 64), name, strings.Join(all, ","))
}

// points are the points of derived metrics by what point returns for them.
func points(t *testing.T, metrics pmetric.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for _, rm := range metrics.ResourceMetrics().All() {
		instance, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var numbers pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeSum {
					numbers = m.Sum().DataPoints()
				} else {
					numbers = m.Gauge().DataPoints()
				}
				for _, p := range numbers.All() {
					value := p.DoubleValue()
					if p.Flags().NoRecordedValue() {
						value = math.NaN()
						require.Equal(t, 1, numbers.Len(), "an end is a metric of its own")
					}
					key := point(instance.AsString(), m.Name(), p.Attributes(), p.Timestamp().AsTime())
					require.NotContains(t, all, key)
					all[key] = value
				}
			}
		}
	}
	return all
}
