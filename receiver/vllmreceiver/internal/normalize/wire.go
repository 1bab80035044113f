package normalize

import (
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// planWire plans every family under its own name and labels, for dashboards that
// query these. Old and new names stay separate metrics. No metric gets a unit, because
// a translation to Prometheus would append it to the name.
func (b *builder) planWire() {
	for i := range b.layout.Families {
		family := &b.layout.Families[i]
		if len(family.Series) == 0 {
			continue
		}
		if family.Kind == exposition.KindGaugeHistogram {
			b.drop(ReasonUnsupported, family)
			continue
		}
		if !b.wireEnabled(family, b.keys[i]) {
			b.drop(ReasonDisabled, family)
			continue
		}
		m := Metric{Name: family.Name, Description: family.Help, Family: family.Name, Kind: wireKind(family.Kind)}
		if match, ok := b.match(b.withTotal(b.keys[i], family.Kind)); ok {
			m.Engine = isServersOwn(match.Metric.Name) && sameKind(match.Metric.Kind, family.Kind)
		}
		for s := range family.Series {
			series := family.Series[s]
			if r := structuralFault(m.Kind, &series); r != ReasonNone {
				b.plan.Dropped[r]++
				continue
			}
			m.Points = append(m.Points, Point{
				Key:        pointKey(m.Name, m.Kind, series.Labels),
				Attributes: series.Labels,
				Parts:      []exposition.Series{series},
				Process:    b.ray.process(series.Labels),
			})
		}
		if len(m.Points) > 0 {
			b.plan.Metrics = append(b.plan.Metrics, m)
		}
	}
}

// wireEnabled reports whether a family is switched on. The switches are by canonical
// name.
func (b *builder) wireEnabled(family *exposition.Family, key string) bool {
	if match, ok := b.match(b.withTotal(key, family.Kind)); ok {
		return b.options.enabled(match.Metric.Name, match.Metric.Enabled)
	}
	return b.options.enabled(family.Name, !offByPrefix(family.Name))
}
