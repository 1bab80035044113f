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
	line("Programs that others wrote ran under load, and the collector read them every 2 s; a \"recorded\" one is pages that the program once sent. Command: `make conform TARGETS='name=http://host:port'`.\n")
	line("## Samples\n")
	line("Each sample of the collector is compared with the page that it read, bucket by bucket, and each page with one just before and one just after it:")
	line("a counter lies between them. The receiver has its defaults. Hidden samples are 0 of what is unused, or -1 for none; turned ones are attributes, start times or aliases, as [naming](../reference/naming.md) says.\n")
	line("| program | requests | families | samples | emitted | off by default | hidden | turned | lost | wrong type or value | before and after: equal, between, gauges outside |")
	line("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range reports {
		lost := r.Samples
		for _, fate := range documented {
			lost -= r.Fates[fate]
		}
		emitted, off, hidden := r.Fates[audit.Emitted], r.Fates[audit.Disabled], r.Fates[audit.Unused]+r.Fates[audit.Sentinel]
		line("| %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d, %d, %d |", r.Program, r.Requests, r.Families, r.Samples, emitted, off, hidden,
			r.Samples-emitted-off-hidden-lost, lost, len(r.Mistyped)+len(r.Violations)+len(r.Fallen)+len(r.Absent), r.Equal, r.Between, len(r.Moved))
	}
	line("\n## Derived values\n")
	line("A real Prometheus evaluates PromQL over the same pages, at the times of the collector's scrapes. The difference is the largest one, as a share of its value. The processor has `preset: full`.")
	versions, metrics, uncompared := map[string]bool{}, map[string]bool{}, []string{}
	for _, r := range reports {
		for version, derived := range r.Derived {
			versions[version] = true
			for _, d := range derived {
				metrics[d.Metric] = true
			}
		}
		for _, name := range r.Uncompared {
			if strings.HasSuffix(name, "_quantile_bound") {
				name = "*_quantile_bound"
			}
			add(&uncompared, name)
		}
	}
	columns := slices.Sorted(maps.Keys(versions))
	line("\n| program | %s |", strings.Join(each(columns, "Prometheus %s: metrics, values, largest difference"), " | "))
	line("|---|%s", strings.Repeat("---|", len(columns)))
	for _, r := range reports {
		var cells []string
		for _, version := range columns {
			cells = append(cells, cell(r.Derived[version]))
		}
		line("| %s | %s |", r.Program, strings.Join(cells, " | "))
	}
	line("\nThese are %d metrics, by name in [the results](../../lab/test/conformance/results). Not compared: %s.", len(metrics), strings.Join(each(uncompared, "`%s`"), ", "))
	line("\n## What is left to say\n")
	for _, r := range reports {
		unknown := r.Unknown
		if len(unknown) == r.Families {
			unknown = []string{"*"}
		}
		for _, of := range []struct {
			title string
			list  []string
		}{
			{"lost", r.Lost},
			{"of another type", r.Mistyped},
			{"different", r.Violations},
			{"counters outside", r.Fallen},
			{"only in its answer to Prometheus", r.Absent},
			{"only in its answer to the collector", r.Alone},
			{"without a unit", r.Unitless},
			{"not in the catalogue", unknown},
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

func cell(derived []Derived) string {
	if len(derived) == 0 {
		return "-"
	}
	values, worst := 0, Derived{}
	for _, d := range derived {
		if values += d.Compared; d.Largest >= worst.Largest {
			worst = d
		}
	}
	if worst.Largest <= tolerance {
		return fmt.Sprintf("%d, %d, below 1e-9", len(derived), values)
	}
	return fmt.Sprintf("%d, %d, **%.2g** (`%s`)", len(derived), values, worst.Largest, worst.Metric)
}
