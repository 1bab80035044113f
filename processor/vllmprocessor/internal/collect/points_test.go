package collect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// input is metrics of one resource that a test puts together.
type request struct {
	metrics pmetric.Metrics
	scope   pmetric.ScopeMetrics
	// at is the time of the next points, in seconds.
	at int64
}

func newInput(resource ...string) *request {
	in := &request{metrics: pmetric.NewMetrics(), at: 100}
	in.resource(resource...)
	return in
}

// resource begins a new ResourceMetrics. The attributes are pairs.
func (in *request) resource(attributes ...string) *request {
	rm := in.metrics.ResourceMetrics().AppendEmpty()
	put(rm.Resource().Attributes(), attributes)
	in.scope = rm.ScopeMetrics().AppendEmpty()
	return in
}

// put sets pairs of names and values.
func put(to pcommon.Map, pairs []string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		to.PutStr(pairs[i], pairs[i+1])
	}
}

func (in *request) time(seconds int64) *request {
	in.at = seconds
	return in
}

func (in *request) metric(name string) pmetric.Metric {
	m := in.scope.Metrics().AppendEmpty()
	m.SetName(name)
	return m
}

func (in *request) number(p pmetric.NumberDataPoint, value float64, attributes []string) pmetric.NumberDataPoint {
	p.SetTimestamp(pcommon.Timestamp(in.at * 1e9))
	p.SetDoubleValue(value)
	put(p.Attributes(), attributes)
	return p
}

func (in *request) counter(name string, value float64, attributes ...string) pmetric.NumberDataPoint {
	sum := in.metric(name).SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	return in.number(sum.DataPoints().AppendEmpty(), value, attributes)
}

func (in *request) gauge(name string, value float64, attributes ...string) pmetric.NumberDataPoint {
	return in.number(in.metric(name).SetEmptyGauge().DataPoints().AppendEmpty(), value, attributes)
}

func (in *request) histogram(name string, bounds []float64, counts []uint64, attributes ...string) pmetric.HistogramDataPoint {
	histogram := in.metric(name).SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := histogram.DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.Timestamp(in.at * 1e9))
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(counts)
	for _, n := range counts {
		p.SetCount(p.Count() + n)
	}
	p.SetSum(1)
	put(p.Attributes(), attributes)
	return p
}

func end(p pmetric.NumberDataPoint) {
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

// read returns what was read, one line for each sample.
func (in *request) read(t *testing.T) []string {
	t.Helper()
	lines, report := in.reported(t)
	require.Equal(t, Report{}, report)
	return lines
}

func (in *request) reported(t *testing.T) ([]string, Report) {
	t.Helper()
	batches, report := Read(in.metrics)
	var lines []string
	for _, batch := range batches {
		for _, s := range batch.Samples {
			lines = append(lines, fmt.Sprintf("%d %s", batch.Time/1e9, render(&batch, &s)))
		}
	}
	return lines, report
}

func render(batch *input.Batch, s *input.Sample) string {
	var attributes []string
	for _, a := range batch.Groups[s.Group].Attributes {
		attributes = append(attributes, a.Name+"="+a.Value)
	}
	name := s.Input.String()
	if s.Input == input.CacheConfigTokens {
		name = "tokens"
	}
	line := name + "{" + strings.Join(attributes, ",") + "}"
	if s.Label != "" {
		line += "[" + strings.ReplaceAll(string(s.Label), "\x00", "|") + "]"
	}
	switch {
	case s.Gone:
		line += " end"
	case s.Input.Define().Kind == input.Distribution:
		line += fmt.Sprintf(" %v %v count %v", s.Bounds, s.Counts, s.Count)
		if s.HasSum {
			line += fmt.Sprintf(" sum %v", s.Sum)
		}
	default:
		line += fmt.Sprintf(" %v", s.Value)
	}
	if s.Delta {
		line += " delta"
	}
	return line
}

func sorted(lines []string) []string {
	slices.Sort(lines)
	return lines
}

// count is a report with one reason.
func count(reason Reason, n int) (r Report) {
	r[reason] = n
	return r
}
