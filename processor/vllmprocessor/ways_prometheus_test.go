package vllmprocessor

import (
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// prometheusReceived makes of the scrapes what contrib's Prometheus receiver
// made of such bodies at v0.158; it would be too large a dependency. The names
// keep their suffixes, an untyped family and the creation times of the text
// format are gauges, an info family is a sum that may fall, points have no start
// unless OpenMetrics gives it, and labels without a value are left out.
func prometheusReceived(t *testing.T, scrapes []answer) []pmetric.Metrics {
	t.Helper()
	out := make([]pmetric.Metrics, 0, len(scrapes))
	for _, s := range scrapes {
		out = append(out, fromPrometheus(t, s))
	}
	return out
}

func fromPrometheus(tb testing.TB, s answer) pmetric.Metrics {
	tb.Helper()
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	put := rm.Resource().Attributes().PutStr
	put("service.name", "vllm")
	put("service.instance.id", "127.0.0.1:8000")
	put("server.port", "8000")
	put("url.scheme", "http")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver")
	reading := &promScrape{
		at: pcommon.NewTimestampFromTime(s.at), types: map[string]model.MetricType{}, families: map[string]*promFamily{}, metrics: sm.Metrics(),
	}
	reading.read(tb, s)
	return metrics
}

type promScrape struct {
	at       pcommon.Timestamp
	types    map[string]model.MetricType
	families map[string]*promFamily
	order    []*promFamily
	metrics  pmetric.MetricSlice
}

// promFamily is one metric that is being put together.
type promFamily struct {
	name   string
	kind   model.MetricType
	groups map[string]*promGroup
	order  []*promGroup
}

type promGroup struct {
	labels                     labels.Labels
	value, count, sum, created float64
	hasValue                   bool
	bounds, cumulative         []float64
}

func (s *promScrape) read(tb testing.TB, body answer) {
	tb.Helper()
	parser, err := textparse.New(body.body, body.contentType, labels.NewSymbolTable(), textparse.ParserOptions{
		FallbackContentType: "text/plain", OpenMetricsSkipSTSeries: false,
	})
	require.NoError(tb, err)
	for {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(tb, err)
		switch entry {
		case textparse.EntryType:
			name, kind := parser.Type()
			s.types[string(name)] = kind
		case textparse.EntrySeries:
			_, _, value := parser.Series()
			var ls labels.Labels
			parser.Labels(&ls)
			s.add(ls, value)
		}
	}
	for _, f := range s.order {
		f.write(s.at, s.metrics)
	}
}

// family finds the family of a series by the rules of the receiver: the name
// itself where it has a type, else the name without its last suffix.
func (s *promScrape) family(series string) *promFamily {
	name, kind := series, s.types[series]
	if kind == "" {
		for _, suffix := range []string{"_bucket", "_count", "_sum", "_total", "_info", "_created"} {
			base, cut := strings.CutSuffix(series, suffix)
			if !cut {
				continue
			}
			if kind = s.types[base]; kind == "" {
				break
			}
			switch {
			case kind != model.MetricTypeCounter:
				name = base
			case suffix == "_created":
				name = base + "_total"
			}
			break
		}
	}
	f := s.families[name]
	if f == nil {
		f = &promFamily{name: name, kind: kind, groups: map[string]*promGroup{}}
		s.families[name] = f
		s.order = append(s.order, f)
	}
	return f
}

func (s *promScrape) add(ls labels.Labels, value float64) {
	series := ls.Get(model.MetricNameLabel)
	f := s.family(series)
	distinct := labels.NewBuilder(ls).Del(model.MetricNameLabel)
	distributed := f.kind == model.MetricTypeHistogram || f.kind == model.MetricTypeSummary
	if distributed {
		distinct.Del("le", "quantile")
	}
	key := distinct.Labels()
	g := f.groups[key.String()]
	if g == nil {
		g = &promGroup{labels: key}
		f.groups[key.String()] = g
		f.order = append(f.order, g)
	}
	switch {
	case strings.HasSuffix(series, "_created") && f.kind != model.MetricTypeGauge && f.kind != "":
		g.created = value
	case !distributed:
		g.value, g.hasValue = value, true
	case strings.HasSuffix(series, "_sum"):
		g.sum = value
	case strings.HasSuffix(series, "_count"):
		g.count, g.hasValue = value, true
	default:
		bound, err := strconv.ParseFloat(ls.Get("le"), 64)
		if err == nil && !math.IsInf(bound, 1) {
			g.bounds, g.cumulative = append(g.bounds, bound), append(g.cumulative, value)
		}
	}
}

func (f *promFamily) write(at pcommon.Timestamp, metrics pmetric.MetricSlice) {
	metric := metrics.AppendEmpty()
	metric.SetName(f.name)
	for _, g := range f.order {
		if !g.hasValue {
			continue
		}
		start := pcommon.Timestamp(g.created * 1e9)
		switch f.kind {
		case model.MetricTypeHistogram:
			if metric.Type() == pmetric.MetricTypeEmpty {
				metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			}
			g.histogram(metric.Histogram().DataPoints().AppendEmpty(), at, start)
		case model.MetricTypeSummary:
			if metric.Type() == pmetric.MetricTypeEmpty {
				metric.SetEmptySummary()
			}
			p := metric.Summary().DataPoints().AppendEmpty()
			p.SetTimestamp(at)
			p.SetCount(uint64(g.count))
			p.SetSum(g.sum)
			g.attributes(p.Attributes())
		case model.MetricTypeCounter, model.MetricTypeInfo, model.MetricTypeStateset:
			if metric.Type() == pmetric.MetricTypeEmpty {
				metric.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				metric.Sum().SetIsMonotonic(f.kind == model.MetricTypeCounter)
			}
			p := metric.Sum().DataPoints().AppendEmpty()
			p.SetStartTimestamp(start)
			g.number(p, at)
		default:
			if metric.Type() == pmetric.MetricTypeEmpty {
				metric.SetEmptyGauge()
			}
			g.number(metric.Gauge().DataPoints().AppendEmpty(), at)
		}
	}
}

func (g *promGroup) number(p pmetric.NumberDataPoint, at pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetDoubleValue(g.value)
	g.attributes(p.Attributes())
}

func (g *promGroup) histogram(p pmetric.HistogramDataPoint, at, start pcommon.Timestamp) {
	p.SetTimestamp(at)
	p.SetStartTimestamp(start)
	p.SetCount(uint64(g.count))
	p.SetSum(g.sum)
	p.ExplicitBounds().FromRaw(g.bounds)
	var before float64
	for _, n := range append(slices.Clone(g.cumulative), g.count) {
		p.BucketCounts().Append(uint64(n - before))
		before = n
	}
	g.attributes(p.Attributes())
}

func (g *promGroup) attributes(to pcommon.Map) {
	g.labels.Range(func(l labels.Label) {
		if l.Value != "" && l.Name != "job" && l.Name != "instance" {
			to.PutStr(l.Name, l.Value)
		}
	})
}

// trimmed takes the suffixes off, as trim_metric_suffixes of the Prometheus
// receiver does.
func trimmed(input []pmetric.Metrics) []pmetric.Metrics {
	return everyMetric(input, func(m pmetric.Metric) {
		name := m.Name()
		if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() {
			name = strings.TrimSuffix(name, "_total")
		}
		m.SetName(name)
	})
}

// translated gives the names and labels that metrics have when they have been
// through a Prometheus server, with its default translation.
func translated(t *testing.T, input []pmetric.Metrics) []pmetric.Metrics {
	t.Helper()
	return renamed(t, input, otlptranslator.UnderscoreEscapingWithSuffixes)
}

// suffixed is the same where Prometheus keeps dots.
func suffixed(t *testing.T, input []pmetric.Metrics) []pmetric.Metrics {
	t.Helper()
	return renamed(t, input, otlptranslator.NoUTF8EscapingWithSuffixes)
}

func renamed(t *testing.T, input []pmetric.Metrics, strategy otlptranslator.TranslationStrategyOption) []pmetric.Metrics {
	t.Helper()
	namer := otlptranslator.NewMetricNamer("", strategy)
	return everyMetric(input, func(m pmetric.Metric) {
		kind := otlptranslator.MetricType(otlptranslator.MetricTypeGauge)
		switch {
		case m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic():
			kind = otlptranslator.MetricTypeMonotonicCounter
		case m.Type() == pmetric.MetricTypeSum:
			kind = otlptranslator.MetricTypeNonMonotonicCounter
		case m.Type() == pmetric.MetricTypeHistogram:
			kind = otlptranslator.MetricTypeHistogram
		case m.Type() == pmetric.MetricTypeSummary:
			kind = otlptranslator.MetricTypeSummary
		}
		name, err := namer.Build(otlptranslator.Metric{Name: m.Name(), Unit: m.Unit(), Type: kind})
		require.NoError(t, err)
		m.SetName(name)
		m.SetUnit("")
	})
}
