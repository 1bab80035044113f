package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// changedQueryTable lists the families of vLLM whose old query finds nothing once
// "vllm:" is replaced by "vllm_".
func (d *document) changedQueryTable() string {
	var b strings.Builder
	b.WriteString("| Family on the wire | Query instead |\n|---|---|\n")
	for _, row := range d.changedQueries() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", row.family, row.instead)
	}
	return b.String()
}

// changedQuery is a family and what to query instead.
type changedQuery struct{ family, instead string }

func (d *document) changedQueries() []changedQuery {
	var rows []changedQuery
	for _, name := range sortedNames(d.Metrics) {
		m := d.Metrics[name]
		for _, s := range m.Sources {
			stored := prometheusName(name, m.Unit, m.kind())
			if s.Label != "" || !strings.HasPrefix(s.Family, d.Prefixes[0]) || strings.ReplaceAll(s.Family, ":", "_") == stored {
				continue
			}
			from := ""
			if s.Version {
				from = " (from vLLM " + s.Since + " on)"
			}
			rows = append(rows, changedQuery{s.Family, "`" + stored + "`" + from})
		}
	}
	for _, f := range d.InfoFamilies {
		if !strings.HasPrefix(f.Family, d.Prefixes[0]) {
			continue
		}
		var instead []string
		for _, n := range f.Numbers {
			instead = append(instead, prometheusName(n.Metric, d.Metrics[n.Metric].Unit, d.Metrics[n.Metric].kind()))
		}
		for _, l := range f.Lists {
			instead = append(instead, prometheusName(l.Metric, d.Metrics[l.Metric].Unit, d.Metrics[l.Metric].kind()))
		}
		slices.Sort(instead)
		rows = append(rows, changedQuery{f.Family, codeList(slices.Compact(instead))})
	}
	slices.SortStableFunc(rows, func(a, b changedQuery) int { return strings.Compare(a.family, b.family) })
	return rows
}

// unitWords are what a unit becomes in a Prometheus name.
var unitWords = map[string]string{
	"s": "seconds", "ms": "milliseconds", "min": "minutes", "By": "bytes", "MiBy": "mebibytes", "GBy": "gigabytes",
	"Cel": "celsius", "Hz": "hertz", "J": "joules", "W": "watts",
}

// prometheusName is the name under which a Prometheus backend stores a metric, by
// OpenTelemetry's rules for exporters: the words of the name, the unit, and _total for
// a counter or _ratio for a gauge with the unit 1.
func prometheusName(name, unit, kind string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != ':' })
	main, per, isRate := strings.Cut(unit, "/")
	add := func(word string) {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if word, known := unitWords[main]; known {
		add(word)
	}
	switch {
	case per == "s":
		words = append(words, "per", "second")
	case isRate && !strings.HasPrefix(per, "{"):
		words = append(words, "per", per)
	}
	last := ""
	switch {
	case kind == "sum":
		last = "total"
	case kind == "gauge" && unit == "1":
		last = "ratio"
	default:
		return strings.Join(words, "_")
	}
	words = slices.DeleteFunc(words, func(word string) bool { return word == last })
	return strings.Join(append(words, last), "_")
}
