package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
)

// Page writes docs/why/conformance.md.
func Page(reports []*Report) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Written by \"make conform-page\"; its prose is lab/test/conformance/page.go. -->")
	line("# The collector beside other programs\n")
	line("Programs that others wrote ran under load, and the collector read them every 2 s. Command: `make conform TARGETS='name=http://host:port'`.\n")
	line("## Samples\n")
	line("Each sample of the collector is compared with the page that it read, bucket by bucket, and each page with one just before and one just after it:")
	line("a counter lies between them. \"Documented\" samples become attributes, start times or nothing, as [naming](../reference/naming.md) says.\n")
	line("| program | scrapes | families | samples | emitted | documented | lost | wrong type or value | before and after: equal, between, gauges outside |")
	line("|---|---|---|---|---|---|---|---|---|")
	for _, r := range reports {
		stays := 0
		for _, fate := range documented[1:] {
			stays += r.Fates[fate]
		}
		line("| %s | %d | %d | %d | %d | %d | %d | %d | %d, %d, %d |", r.Program, r.Scrapes, r.Families, r.Samples, r.Fates[audit.Emitted], stays,
			r.Samples-r.Fates[audit.Emitted]-stays, len(r.Mistyped)+len(r.Violations)+len(r.Fallen)+len(r.Absent), r.Equal, r.Between, len(r.Moved))
	}
	line("\n## Derived values\n")
	line("A real Prometheus evaluates PromQL over the same pages, at the times of the collector's scrapes. The difference is the largest one, as a share of its value.")
	for _, r := range reports {
		if len(r.Derived) == 0 {
			continue
		}
		versions := slices.Sorted(maps.Keys(r.Derived))
		line("\n%s:\n", r.Program)
		line("| metric | %s |", strings.Join(each(versions, "Prometheus %s: values, difference"), " | "))
		line("|---|%s", strings.Repeat("---|", len(versions)))
		for _, name := range r.metrics() {
			var cells []string
			for _, version := range versions {
				cells = append(cells, cell(r.Derived[version], name))
			}
			line("| `%s` | %s |", name, strings.Join(cells, " | "))
		}
	}
	line("\n## What is left to say\n")
	for _, r := range reports {
		for _, of := range []struct {
			title string
			list  []string
		}{
			{"lost", r.Lost}, {"of another type", r.Mistyped}, {"different", r.Violations}, {"counters outside", r.Fallen},
			{"only in its answer to Prometheus", r.Absent}, {"only in its answer to the collector", r.Alone},
			{"without a unit", r.Unitless}, {"not in the catalogue", r.Unknown}, {"derived, not compared", r.Uncompared},
		} {
			if len(of.list) > 0 {
				line("- %s, %s: %s", r.Program, of.title, strings.Join(each(of.list, "`%s`"), ", "))
			}
		}
	}
	return b.String()
}

func each(list []string, format string) (out []string) {
	for _, text := range list {
		out = append(out, fmt.Sprintf(format, text))
	}
	return out
}

// metrics are the derived metrics that any Prometheus was asked for.
func (r *Report) metrics() []string {
	known := map[string]bool{}
	for _, derived := range r.Derived {
		for _, d := range derived {
			known[d.Metric] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}

func cell(derived []Derived, metric string) string {
	for _, d := range derived {
		switch {
		case d.Metric != metric:
		case d.Largest <= tolerance:
			return fmt.Sprintf("%d, none", d.Compared)
		default:
			return fmt.Sprintf("%d, **%.2g**", d.Compared, d.Largest)
		}
	}
	return "-"
}
