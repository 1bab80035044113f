package normalize

import (
	"math"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// reservedAttributes are names that a managed backend reserves. It rejects series that
// have one of them (naming rule 9).
var reservedAttributes = map[string]bool{
	"namespace": true, "location": true, "cluster": true,
	"job": true, "instance": true, "project_id": true,
}

const pidLabel = "pid"

// loraStatusMetric has one series for each adapter, so limits::adapters applies to it.
const loraStatusMetric = "inference_gateway.lora.adapter.status"

func label(labels []exposition.Label, name string) string {
	for i := range labels {
		if labels[i].Name == name {
			return labels[i].Value
		}
	}
	return ""
}

// add plans one metric with the series of one family as its points.
func (b *builder) add(m Metric, family *exposition.Family) {
	series := b.unify(family)
	m.Family = family.Name
	m.Points = make([]Point, 0, len(series))
	_, isGateway := gatewayPrefix(family.Name)
	isGateway = isGateway && !b.options.Wire
	// Without the scope of an instrumentation, its series are equal to those of another.
	ns := namespaceOf(b.options.withoutUserPrefix(family.Name))
	scoped := ns != nil && ns.Conventions && !b.options.Wire && (m.Kind == catalog.KindSum || m.Kind == catalog.KindHistogram)
	at := make(map[SeriesKey]int, len(series))
	seen := map[SeriesKey]bool{}
	for i := range series {
		s := &series[i]
		if r := structuralFault(m.Kind, &s.series[0]); r != ReasonNone {
			b.plan.Dropped[r]++
			continue
		}
		key := pointKey(m.Name, m.Kind, s.labels)
		if isGateway {
			if seen[key] {
				b.plan.Dropped[ReasonDuplicate]++
				continue
			}
			seen[key] = true
			s.labels = b.aggregated(&m, s.labels)
			key = pointKey(m.Name, m.Kind, s.labels)
		}
		if first, known := at[key]; known {
			if isGateway || scoped {
				join(m.Kind, &m.Points[first], s.series[0])
			} else {
				b.plan.Dropped[ReasonDuplicate]++
			}
			continue
		}
		if m.Name == loraStatusMetric && b.options.MaxAdapters > 0 && len(m.Points) >= b.options.MaxAdapters {
			b.plan.Dropped[ReasonAdapterLimit]++
			continue
		}
		at[key] = len(m.Points)
		m.Points = append(m.Points, Point{
			Key: key, Attributes: s.labels, Parts: s.series, Process: s.process,
		})
	}
	b.emit(m)
}

// structuralFault returns why a series can never become a point of this kind, or
// ReasonNone.
func structuralFault(kind catalog.Kind, s *exposition.Series) Reason {
	switch kind {
	case catalog.KindGauge, catalog.KindSum:
		if s.Value == exposition.NoSlot {
			return ReasonUnsupported
		}
	case catalog.KindHistogram:
		n := len(s.Buckets)
		if n == 0 || !math.IsInf(s.Buckets[n-1].UpperBound, 1) {
			return ReasonNoInfBucket
		}
		if s.Count == exposition.NoSlot {
			return ReasonNoCount
		}
	case catalog.KindSummary:
		if s.Count == exposition.NoSlot {
			return ReasonNoCount
		}
	}
	return ReasonNone
}

// unified is a series with the attributes that are emitted.
type unified struct {
	// series is the one series, in the memory of the layout: points share it.
	series  []exposition.Series
	labels  []exposition.Label
	process string
}

// unify returns the series of a family with their attributes: named by the aliases of
// the catalogue, without Ray's constants, and without a pid that is not needed to
// identify the series. Under the names of the wire the attributes are the labels.
func (b *builder) unify(family *exposition.Family) []unified {
	out := make([]unified, 0, len(family.Series))
	// For each set of attributes without pid: how many series have it, and whether one
	// of them has no pid.
	equals, twins := map[SeriesKey]int{}, map[SeriesKey]bool{}
	pids := !b.options.Wire && slices.ContainsFunc(family.Series, func(s exposition.Series) bool { return label(s.Labels, pidLabel) != "" })
	for i := range family.Series {
		labels := family.Series[i].Labels
		u := unified{series: family.Series[i : i+1 : i+1], labels: labels, process: b.ray.process(labels)}
		if !b.options.Wire {
			u.labels = b.attributes(family, labels, false)
		}
		if pids {
			key := pointKey("", 0, u.labels)
			equals[key]++
			twins[key] = twins[key] || label(labels, pidLabel) == ""
		}
		out = append(out, u)
	}
	if !pids {
		return out
	}
	kept := out[:0]
	for _, u := range out {
		// Several processes report the same series. If one of them has no pid, it is the
		// total; otherwise each process keeps a series of its own.
		key := pointKey("", 0, u.labels)
		if label(u.series[0].Labels, pidLabel) != "" && equals[key] > 1 {
			if twins[key] {
				b.plan.Dropped[ReasonAlias]++
				continue
			}
			u.labels = b.attributes(family, u.series[0].Labels, true)
		}
		kept = append(kept, u)
	}
	return kept
}

// attributes returns the attributes that the labels of a series become, sorted by name
// as the input is.
func (b *builder) attributes(family *exposition.Family, labels []exposition.Label, keepPid bool) []exposition.Label {
	changes := false
	for i := range labels {
		if b.attributeName(family, labels, i, keepPid) != labels[i].Name {
			changes = true
			break
		}
	}
	if !changes {
		return labels
	}
	out := make([]exposition.Label, 0, len(labels))
	for i := range labels {
		if name := b.attributeName(family, labels, i, keepPid); name != "" {
			out = append(out, exposition.Label{Name: name, Value: labels[i].Value})
		}
	}
	slices.SortFunc(out, func(a, b exposition.Label) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// attributeName returns the name of the attribute that a label becomes; empty if the
// label is dropped.
func (b *builder) attributeName(family *exposition.Family, labels []exposition.Label, i int, keepPid bool) string {
	name := labels[i].Name
	if _, ok := gatewayPrefix(family.Name); ok {
		name = attributeIn(catalog.Gateway.Labels, labels, i)
	} else if ns := namespaceOf(b.options.withoutUserPrefix(family.Name)); ns != nil && ns.Conventions {
		name = attributeIn(catalog.Conventions, labels, i)
	}
	switch {
	case name == pidLabel && !keepPid:
		return ""
	case b.ray.drops(family, name):
		return ""
	case reservedAttributes[name]:
		// As Prometheus does: once more until the name is free.
		name = "exported_" + name
		for label(labels, name) != "" {
			name = "exported_" + name
		}
		return name
	}
	if alias, ok := catalog.AttributeAliases[name]; ok && label(labels, alias) == "" {
		return alias
	}
	return name
}
