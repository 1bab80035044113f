package live

import (
	"maps"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// batch is what a processor sends about one server.
type batch struct {
	metrics pmetric.Metrics
	to      pmetric.MetricSlice
	at      time.Time
}

// labels are attributes.
type labels map[string]any

// scrape begins a batch of a server, so many seconds after noon.
func scrape(second int, instance string, resource labels) *batch {
	b := &batch{metrics: pmetric.NewMetrics(), at: noon.Add(time.Duration(second) * time.Second)}
	rm := b.metrics.ResourceMetrics().AppendEmpty()
	if instance != "" {
		rm.Resource().Attributes().PutStr("service.instance.id", instance)
	}
	putAll(rm.Resource().Attributes(), resource)
	b.to = rm.ScopeMetrics().AppendEmpty().Metrics()
	return b
}

func putAll(to pcommon.Map, all labels) {
	for name, value := range all {
		_ = to.PutEmpty(name).FromRaw(value)
	}
}

func (b *batch) point(metric string, attributes labels) pmetric.NumberDataPoint {
	m := b.to.AppendEmpty()
	m.SetName(metric)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(b.at))
	putAll(p.Attributes(), attributes)
	return p
}

// with adds a value.
func (b *batch) with(metric string, value float64, attributes labels) *batch {
	b.point(metric, attributes).SetDoubleValue(value)
	return b
}

// end adds the end of a series.
func (b *batch) end(metric string, attributes labels) *batch {
	b.point(metric, attributes).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	return b
}

// up adds that the scrape succeeded.
func (b *batch) up() *batch { return b.with("vllm.up", 1, nil) }

// is adds the condition of an engine.
func (b *batch) is(condition string, severity float64, engine labels) *batch {
	all := labels{"condition": condition}
	maps.Copy(all, engine)
	return b.with("vllm.diagnosis.condition", 1, all).with("vllm.diagnosis.severity", severity, engine)
}
