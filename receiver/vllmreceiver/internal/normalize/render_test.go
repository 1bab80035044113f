package normalize

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// A planCase is a body and the complete content of its plan.
type planCase struct {
	name    string
	options Options
	body    string
	// want has one line per point, `name kind unit {attributes} = number`, and
	// one per further fact of the plan; the order does not matter.
	want []string
}

func runPlanCases(t *testing.T, cases []planCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			snapshot := snapshotOf(c.body)
			plan := Make(snapshot.Layout, c.options)
			assert.ElementsMatch(t, c.want, describe(plan, snapshot.Values))
			checkPlan(t, snapshot.Layout, &c.options, plan)
		})
	}
}

func snapshotOf(body string) *exposition.Snapshot {
	return exposition.NewReader(exposition.NewMemory(0)).Read([]byte(body), exposition.DialectText)
}

func planOf(body string, options Options) *Plan {
	return Make(snapshotOf(body).Layout, options)
}

// describe returns a plan line by line. The number of a point identifies its series: it is the value, or the count of a histogram
// or summary.
func describe(plan *Plan, values []float64) []string {
	var lines []string
	for _, m := range plan.Metrics {
		for _, p := range m.Points {
			lines = append(lines, fmt.Sprintf("%s %s %s %s = %v",
				m.Name, m.Kind, orNone(m.Unit), labelText(p.Attributes), pointNumber(m.Kind, p, values)))
		}
	}
	for _, reason := range Reasons() {
		if n := plan.Dropped[reason]; n > 0 {
			lines = append(lines, fmt.Sprintf("dropped %s %d", reason, n))
		}
	}
	for _, family := range plan.Unknown {
		lines = append(lines, "unknown "+family)
	}
	for _, family := range plan.Conflicts {
		lines = append(lines, "conflict "+family)
	}
	for _, attribute := range plan.Resource {
		lines = append(lines, fmt.Sprintf("resource %s=%s", attribute.Name, attribute.Value))
	}
	return lines
}

func orNone(unit string) string {
	if unit == "" {
		return "no-unit"
	}
	return unit
}

func pointNumber(kind catalog.Kind, p Point, values []float64) float64 {
	total := p.Constant
	for _, part := range p.Parts {
		slot := part.Value
		if kind == catalog.KindHistogram || kind == catalog.KindSummary {
			slot = part.Count
		}
		if slot >= 0 && slot < len(values) {
			total += values[slot]
		}
	}
	return total
}

func labelText(labels []exposition.Label) string {
	pairs := make([]string, 0, len(labels))
	for _, l := range labels {
		pairs = append(pairs, l.Name+"="+l.Value)
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// The functions below write families with one sample each.

func gauge(name, labels string, value int) string {
	return fmt.Sprintf("# TYPE %s gauge\n%s{%s} %d\n", name, name, labels, value)
}

func counter(name, labels string, value int) string {
	return fmt.Sprintf("# TYPE %s counter\n%s{%s} %d\n", name, name, labels, value)
}

func summary(name, labels string, count int) string {
	return fmt.Sprintf("# TYPE %s summary\n%s_sum{%s} 1\n%s_count{%s} %d\n", name, name, labels, name, labels, count)
}

func histogram(name, labels string, count int, bounds ...string) string {
	return "# TYPE " + name + " histogram\n" + histogramSeries(name, labels, count, bounds...)
}

// histogramSeries writes one series; all observations are above the last bound.
func histogramSeries(name, labels string, count int, bounds ...string) string {
	var b strings.Builder
	comma := ""
	if labels != "" {
		comma = ","
	}
	for _, bound := range bounds {
		fmt.Fprintf(&b, "%s_bucket{%s%sle=%q} 0\n", name, labels, comma, bound)
	}
	fmt.Fprintf(&b, "%s_bucket{%s%sle=\"+Inf\"} %d\n%s_sum{%s} 1\n%s_count{%s} %d\n",
		name, labels, comma, count, name, labels, name, labels, count)
	return b.String()
}

func floats(t *testing.T, words string) []float64 {
	t.Helper()
	out := []float64{}
	for word := range strings.FieldsSeq(words) {
		f, err := strconv.ParseFloat(word, 64)
		require.NoError(t, err)
		out = append(out, f)
	}
	return out
}
