package normalize

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Conversion turns a number of an exporter into that of the metric.
type Conversion struct {
	times, per float64
	bit        uint64
}

func newConversion(source *catalog.Exported) *Conversion {
	c := &Conversion{times: 1, per: 1, bit: source.Bit}
	switch {
	case source.Scale > 1:
		c.times = source.Scale
	case source.Scale > 0:
		// A division by a whole number is exact where a multiplication by 0.01 is not.
		c.per = math.Round(1 / source.Scale)
	}
	return c
}

// Of returns the number of the metric. A number of which bits cannot be read, because it
// is negative or has a fraction, gives no bit.
func (c *Conversion) Of(value float64) float64 {
	if c.bit == 0 {
		return value * c.times / c.per
	}
	// The largest number of which every bit is exact.
	if value >= 0 && value < 1<<53 && uint64(value)&c.bit != 0 {
		return 1
	}
	return 0
}

// exported is one way in which a family becomes a metric.
type exported struct {
	metric  *catalog.Metric
	source  *catalog.Exported
	rank    int
	set     []exposition.Label
	convert *Conversion
}

// exportedFamilies has the families of each exporter.
var exportedFamilies = sync.OnceValue(func() map[string]map[string][]exported {
	index := map[string]map[string][]exported{}
	all := catalog.All()
	for i := range all {
		metric := &all[i]
		for rank := range metric.Exporters {
			source := &metric.Exporters[rank]
			families := index[source.Exporter]
			if families == nil {
				families = map[string][]exported{}
				index[source.Exporter] = families
			}
			e := exported{metric: metric, source: source, rank: rank, convert: newConversion(source)}
			for name, value := range source.Set {
				e.set = append(e.set, exposition.Label{Name: name, Value: value})
			}
			families[source.Family] = append(families[source.Family], e)
			for _, plus := range source.Plus {
				if _, known := families[plus]; !known {
					families[plus] = nil
				}
			}
		}
	}
	return index
})

// exporterOf returns the exporter of GPUs that a body is from; nil if it is from none.
func (b *builder) exporterOf() *catalog.Exporter {
	for i := range catalog.Accelerators.Exporters {
		e := &catalog.Accelerators.Exporters[i]
		for f := range b.layout.Families {
			if family := &b.layout.Families[f]; b.exports(e, family.Name) && hasExporterLabel(e, family) {
				return e
			}
		}
	}
	return nil
}

// exporterNamed returns an exporter of the catalogue.
func exporterNamed(name string) *catalog.Exporter {
	i := slices.IndexFunc(catalog.Accelerators.Exporters, func(e catalog.Exporter) bool { return e.Name == name })
	return &catalog.Accelerators.Exporters[i]
}

// exports reports whether a family's name is one of an exporter.
func (b *builder) exports(e *catalog.Exporter, name string) bool {
	key := b.exporterKey(e, name)
	return slices.ContainsFunc(e.Families, func(begin string) bool { return strings.HasPrefix(key, begin) })
}

// exporterKey is the name of a family without the prefix of the deployment.
func (b *builder) exporterKey(e *catalog.Exporter, name string) string {
	key := b.options.withoutUserPrefix(name)
	for _, prefix := range e.Prefixes {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			return rest
		}
	}
	return key
}

// hasExporterLabel reports whether a family has the label that all series of an exporter
// have.
func hasExporterLabel(e *catalog.Exporter, family *exposition.Family) bool {
	if e.Label == "" {
		return true
	}
	return slices.ContainsFunc(family.Series, func(s exposition.Series) bool {
		return slices.ContainsFunc(s.Labels, func(l exposition.Label) bool { return l.Name == e.Label })
	})
}

// attributesOf returns the attributes of a point, sorted by name.
func (v *inventory) attributesOf(i int, set, more []exposition.Label) []exposition.Label {
	d := &v.devices[i]
	parent := ""
	if d.parent >= 0 {
		parent = v.devices[d.parent].id
	}
	out := withValues(
		exposition.Label{Name: "hw.id", Value: d.id}, exposition.Label{Name: "hw.model", Value: d.model},
		exposition.Label{Name: "hw.name", Value: d.name}, exposition.Label{Name: "hw.parent", Value: parent},
		exposition.Label{Name: "hw.type", Value: "gpu"}, exposition.Label{Name: "hw.vendor", Value: v.exporter.Vendor},
		exposition.Label{Name: "vllm.accelerator.partition_profile", Value: d.profile},
	)
	out = append(append(out, set...), more...)
	slices.SortStableFunc(out, func(a, b exposition.Label) int { return strings.Compare(a.Name, b.Name) })
	// A body can have any label.
	return slices.CompactFunc(out, func(a, b exposition.Label) bool { return a.Name == b.Name })
}

// mapped returns the attributes that the labels of a series become in a metric.
func mapped(labels []exposition.Label, names map[string]string) []exposition.Label {
	if len(names) == 0 {
		return nil
	}
	var out []exposition.Label
	for i := range labels {
		attribute, ok := names[labels[i].Name]
		if !ok || labels[i].Value == "" {
			continue
		}
		value := labels[i].Value
		if values := catalog.Accelerators.Values[attribute]; values != nil {
			value = strings.ToLower(value)
			value = cmp.Or(values[value], value)
		}
		out = append(out, exposition.Label{Name: attribute, Value: value})
	}
	return out
}

// withoutRoles returns the labels of a series that do not say to what it belongs.
func withoutRoles(labels []exposition.Label) []exposition.Label {
	var out []exposition.Label
	for i := range labels {
		if name := labels[i].Name; !isRole(name) && !reservedAttributes[name] && !strings.HasPrefix(name, "exported_") {
			out = append(out, labels[i])
		}
	}
	return out
}

func isRole(name string) bool {
	for _, names := range catalog.Accelerators.Labels {
		if slices.Contains(names, name) {
			return true
		}
	}
	return name == "device" || name == "pci_bus_id"
}
