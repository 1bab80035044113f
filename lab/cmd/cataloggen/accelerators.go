package main

import (
	"bytes"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// accelerators has what is particular about the exporters of GPUs.
type accelerators struct {
	Exporters []exporter                   `yaml:"exporters"`
	Labels    []roleLabels                 `yaml:"labels"`
	Values    map[string]map[string]string `yaml:"values"`
}

type exporter struct {
	Name     string   `yaml:"name"`
	Vendor   string   `yaml:"vendor"`
	Program  string   `yaml:"program"`
	Prefixes []string `yaml:"prefixes"`
	Families []string `yaml:"families"`
	Label    string   `yaml:"label"`
	Unknown  string   `yaml:"unknown"`
}

type roleLabels struct {
	Role    string   `yaml:"role"`
	Names   []string `yaml:"names"`
	Meaning string   `yaml:"meaning"`
}

// exporting is one family of an exporter that becomes a metric.
type exporting struct {
	Exporter string            `yaml:"exporter"`
	Family   string            `yaml:"family"`
	Scale    float64           `yaml:"scale"`
	Bit      uint64            `yaml:"bit"`
	Set      map[string]string `yaml:"set"`
	Labels   map[string]string `yaml:"labels"`
	Plus     []string          `yaml:"plus"`
	Off      bool              `yaml:"off"`
}

// roles are what a label of a GPU exporter can mean.
var roles = []string{
	"id", "serial", "index", "model", "partition", "profile", "host", "driver", "namespace", "pod", "container", "uid",
}

func (d *document) acceleratorProblems() []string {
	var problems []string
	for _, e := range d.Accelerators.Exporters {
		if e.Name == "" || e.Vendor == "" || e.Program == "" || len(e.Families) == 0 ||
			!strings.HasPrefix(e.Unknown, "vllm.accelerator.") {
			problems = append(problems, fmt.Sprintf("the exporter %q needs name, vendor, program, families, and unknown below vllm.accelerator", e.Name))
		}
	}
	for _, l := range d.Accelerators.Labels {
		if !slices.Contains(roles, l.Role) || len(l.Names) == 0 || l.Meaning == "" {
			problems = append(problems, fmt.Sprintf("the label role %q is not known, or has no names or meaning", l.Role))
		}
	}
	for _, attribute := range sortedNames(d.Accelerators.Values) {
		declared := d.Attributes[attribute].Enum
		for _, value := range d.Accelerators.Values[attribute] {
			if !slices.Contains(declared, value) {
				problems = append(problems, fmt.Sprintf("%q is not a value of the attribute %q", value, attribute))
			}
		}
	}
	return problems
}

// exportingProblems checks one family of an exporter.
func (d *document) exportingProblems(m metric, s exporting) []string {
	var problems []string
	i := slices.IndexFunc(d.Accelerators.Exporters, func(e exporter) bool { return e.Name == s.Exporter })
	begins := i >= 0 && slices.ContainsFunc(d.Accelerators.Exporters[i].Families, func(prefix string) bool {
		return strings.HasPrefix(s.Family, prefix)
	})
	if !begins {
		problems = append(problems, fmt.Sprintf("the family %q does not begin as those of the exporter %q do", s.Family, s.Exporter))
	}
	if s.Scale < 0 || s.Bit != 0 && (bits.OnesCount64(s.Bit) != 1 || m.Gauge == nil) {
		problems = append(problems, fmt.Sprintf("the family %q needs a positive scale, and one bit of a gauge", s.Family))
	}
	if m.Gauge == nil && m.Sum == nil || !slices.Contains(m.Attributes, "hw.id") {
		problems = append(problems, "a metric of an exporter is a gauge or a sum and has the attribute hw.id")
	}
	for _, name := range slices.Concat(sortedNames(s.Set), slices.Sorted(maps.Values(s.Labels))) {
		if !slices.Contains(m.Attributes, name) {
			problems = append(problems, fmt.Sprintf("the family %q sets the attribute %q, which the metric does not have", s.Family, name))
		}
	}
	for _, name := range sortedNames(s.Set) {
		if enum := d.Attributes[name].Enum; len(enum) > 0 && !slices.Contains(enum, s.Set[name]) {
			problems = append(problems, fmt.Sprintf("%q is not a value of the attribute %q", s.Set[name], name))
		}
	}
	return problems
}

func writeAccelerators(b *bytes.Buffer, d *document) {
	b.WriteString("// Accelerators holds what is particular about the exporters of GPUs.\nvar Accelerators = AcceleratorRules{\nExporters: []Exporter{\n")
	for _, e := range d.Accelerators.Exporters {
		fmt.Fprintf(b, "{Name: %q, Vendor: %q, Program: %q, Families: %s, Unknown: %q", e.Name, e.Vendor, e.Program, stringSlice(e.Families), e.Unknown)
		if len(e.Prefixes) > 0 {
			fmt.Fprintf(b, ", Prefixes: %s", stringSlice(e.Prefixes))
		}
		if e.Label != "" {
			fmt.Fprintf(b, ", Label: %q", e.Label)
		}
		b.WriteString("},\n")
	}
	b.WriteString("},\nLabels: map[Role][]string{\n")
	for _, l := range d.Accelerators.Labels {
		fmt.Fprintf(b, "%q: %s,\n", l.Role, stringSlice(l.Names))
	}
	b.WriteString("},\nValues: map[string]map[string]string{\n")
	for _, attribute := range sortedNames(d.Accelerators.Values) {
		fmt.Fprintf(b, "%q: %s,\n", attribute, stringMap(d.Accelerators.Values[attribute], false))
	}
	b.WriteString("},\n}\n\n")
}

func writeExporters(b *bytes.Buffer, m metric) {
	if m.Partitions {
		b.WriteString("Partitions: true,\n")
	}
	if len(m.Exporters) == 0 {
		return
	}
	b.WriteString("Exporters: []Exported{\n")
	for _, s := range m.Exporters {
		fmt.Fprintf(b, "{Exporter: %q, Family: %q", s.Exporter, s.Family)
		if s.Scale != 0 {
			fmt.Fprintf(b, ", Scale: %g", s.Scale)
		}
		if s.Bit != 0 {
			fmt.Fprintf(b, ", Bit: %#x", s.Bit)
		}
		if len(s.Set) > 0 {
			fmt.Fprintf(b, ", Set: %s", stringMap(s.Set, true))
		}
		if len(s.Labels) > 0 {
			fmt.Fprintf(b, ", Labels: %s", stringMap(s.Labels, true))
		}
		if len(s.Plus) > 0 {
			fmt.Fprintf(b, ", Plus: %s", stringSlice(s.Plus))
		}
		if s.Off {
			b.WriteString(", Off: true")
		}
		b.WriteString("},\n")
	}
	b.WriteString("},\n")
}

// stringMap returns a map as Go writes it, with its type or without.
func stringMap(m map[string]string, typed bool) string {
	var b strings.Builder
	if typed {
		b.WriteString("map[string]string")
	}
	b.WriteString("{")
	for i, key := range sortedNames(m) {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q: %q", key, m[key])
	}
	return b.String() + "}"
}

// wireName is the family with its constant attributes, for readers.
func (s exporting) wireName() string {
	var line strings.Builder
	fmt.Fprintf(&line, "`%s`", s.Family)
	for _, family := range s.Plus {
		fmt.Fprintf(&line, " + `%s`", family)
	}
	for _, name := range sortedNames(s.Set) {
		if s.Bit == 0 {
			fmt.Fprintf(&line, " %s=%s", name, s.Set[name])
		}
	}
	for _, label := range sortedNames(s.Labels) {
		if attribute := s.Labels[label]; attribute != label {
			fmt.Fprintf(&line, " %s from `%s`", attribute, label)
		}
	}
	if s.Off {
		line.WriteString(" (off)")
	}
	return line.String()
}

// writeExporterLabels writes what the labels of the exporters mean, with their spellings
// in different versions.
func writeExporterLabels(b *bytes.Buffer, d *document) {
	b.WriteString("\n## Labels of GPU exporters\n\nThe preferred spelling is first. Other labels are dropped, unless a metric names them.\n\n")
	for _, l := range d.Accelerators.Labels {
		fmt.Fprintf(b, "- %s: %s\n", codeList(l.Names), l.Meaning)
	}
}
