package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/conform"
)

// Conformance writes a table of releases: of all values, or of those that at least one release misses.
func Conformance(releases []*conform.Release, all bool) string {
	var b strings.Builder
	b.WriteString("| |")
	for _, r := range releases {
		fmt.Fprintf(&b, " %s |", r.Version)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(releases)) + "\n")
	row := func(name string, of func(*conform.Release) string) {
		fmt.Fprintf(&b, "| %s |", name)
		for _, r := range releases {
			fmt.Fprintf(&b, " %s |", of(r))
		}
		b.WriteString("\n")
	}
	row("requests in a window, at least", func(r *conform.Release) string {
		if len(r.Values) == 0 {
			return "-"
		}
		return strconv.Itoa(r.Values[0].Requests)
	})
	row("values compared, missed", func(r *conform.Release) string {
		missed := slices.DeleteFunc(slices.Clone(r.Values), func(v conform.Row) bool { return v.Held })
		return fmt.Sprintf("%d, %d", len(r.Values), len(missed))
	})
	var names []string
	known := map[string]bool{}
	for _, r := range releases {
		for _, v := range r.Values {
			if !known[v.Metric] && (all || !v.Held) {
				known[v.Metric] = true
				names = append(names, v.Metric)
			}
		}
	}
	for _, name := range names {
		row("`"+strings.Replace(name, " ", "` at ", 1)+closing(name), func(r *conform.Release) string {
			for _, v := range r.Values {
				if v.Metric == name {
					return cell(&v)
				}
			}
			return "-"
		})
	}
	return b.String()
}

// closing ends the code span of a name without a quantile.
func closing(name string) string {
	if strings.Contains(name, " ") {
		return ""
	}
	return "`"
}

// cell is the worst window: the clients' value, then ours.
func cell(v *conform.Row) string {
	out := fmt.Sprintf("%s, %s", figure(v.Truth), figure(v.Ours))
	if v.High > 0 {
		out = fmt.Sprintf("%s in %s to %s", figure(v.Truth), figure(v.Low), figure(v.High))
	}
	if !v.Held {
		out += ", **missed**"
	}
	return out
}

func figure(v float64) string { return fmt.Sprintf("%.3g", v) }
