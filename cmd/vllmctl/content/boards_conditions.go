package content

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// conditionWords are the words for the codes of conditionCode. The colour is the severity, and each
// condition has its own shade of it; where there is nothing to do, only "healthy" is green.
func conditionWords() []Mapping {
	shades := map[int][]Color{
		0: {"grey-1", "grey-2", "grey-3", Grey, Green}, 1: {Blue}, 2: {Orange}, 3: {"red-1", Red, "red-2", "red-3"},
	}
	var words []Mapping
	for code, condition := range catalog.Conditions() {
		of := shades[condition.Severity]
		words = append(words, Mapping{Value: float64(code + 1), Text: condition.Name, Color: of[0]})
		shades[condition.Severity] = of[1:]
	}
	return words
}

// worstConditions are those of the engines that were worst for longest, so that the lines
// can be distinguished where there are hundreds of servers.
func worstConditions(matchers string) string {
	return conditionCode("vllm_diagnosis_condition", perEngine, matchers) +
		" and topk(20, max by (" + perEngine + ") (avg_over_time(" + selector("vllm_diagnosis_severity", matchers, nil) + "[$__range] @ end())))"
}

// conditionCode is the present condition as a number, for a timeline with one line for each
// engine or pool. Exactly one condition is 1 at a time, so the maximum is that one.
func conditionCode(metric, by, matchers string) string {
	var terms []string
	for code, condition := range catalog.Conditions() {
		selected := selector(metric, matchers, []string{`condition="` + condition.Name + `"`})
		terms = append(terms, fmt.Sprintf("%d * (%s == 1)", code+1, selected))
	}
	return "max by (" + by + ") (" + strings.Join(terms, " or ") + ")"
}

// What a table of causes says where it is empty.
const (
	noCauseOfEngine = "No cause is present, or no engine is known."
	noCauseOfPool   = "No cause is present, or no pool is known: `pool` in the processor vllm makes them."
)

// causesTable completes a table of the present causes, the primary one first. each selects
// series, one for a cause. A row shows its role, the cause with a link to its runbook, and the
// labels of more.
func causesTable(p Panel, each []string, more ...Column) Panel {
	p.Kind, p.Unit = Table, "{state}"
	p.Columns = append([]Column{
		{Label: "role", Title: "Role", Descending: true},
		{Label: "cause", Title: "Cause", Runbook: true},
	}, more...)
	var by []string
	for _, c := range p.Columns {
		by = append(by, c.Label)
	}
	var parts []string
	for _, series := range each {
		of := by
		if strings.HasPrefix(series, "vllm_pool_") { // Their server would be the collector.
			of = slices.DeleteFunc(slices.Clone(by), func(l string) bool { return l == "instance" || l == "engine" || l == "k8s_pod_name" })
		}
		parts = append(parts, "max by ("+strings.Join(of, ", ")+") ("+series+" == 1)")
	}
	p.Queries = now(strings.Join(parts, " or "), "")
	p.Links = append(p.Links, Link{Title: "Runbooks", URL: Repository + "docs/runbooks/README.md"})
	return p
}
