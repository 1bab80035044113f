package content

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// conditionWords are the words for the codes of conditionCode. The colour is the severity;
// where there is nothing to do, only "healthy" is green.
func conditionWords() []Mapping {
	var words []Mapping
	for code, condition := range catalog.Conditions() {
		color := Grey
		switch {
		case condition.Severity == 3:
			color = Red
		case condition.Severity == 2:
			color = Orange
		case condition.Severity == 1:
			color = Blue
		case condition.Name == "healthy":
			color = Green
		}
		words = append(words, Mapping{Value: float64(code + 1), Text: condition.Name, Color: color})
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
