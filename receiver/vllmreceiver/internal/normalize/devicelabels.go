package normalize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

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
