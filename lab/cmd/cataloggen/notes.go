package main

import (
	"fmt"
	"slices"
	"strings"
)

// doneProblems reports the defects whose "done" does not have the word of each decision about
// them, so that the page does not contradict decisions.yaml.
func (k *knowledge) doneProblems(l *decisionList) []error {
	var problems []error
	for _, row := range l.Decisions {
		for _, p := range k.meeting(row) {
			i := slices.IndexFunc(k.defects.Defects, func(one defect) bool { return one.ID == p.defect })
			if i >= 0 && row.Decision != "unaffected" && !strings.Contains(strings.ToLower(k.defects.Defects[i].Done), row.Decision) {
				problems = append(problems, fmt.Errorf("defect %s: %s is %s, and done does not have this word", p.defect, p.subject, row.Decision))
			}
		}
	}
	return problems
}

// note is a short mention of a defect in another page.
func (one *defect) note() string { return "[" + one.ID + "](../../" + wrongPage + "#" + one.ID + ")" }

// defectsOf mentions the defects of a metric of vLLM, or those of all metrics of a server.
func (l *defectList) defectsOf(metric string) string {
	var links []string
	for _, one := range l.sorted() {
		if slices.Contains(one.Metrics, metric) {
			links = append(links, one.note())
		}
	}
	return strings.Join(links, ", ")
}

// decisionNotes mentions the defects of what metrics are derived from, as far as they
// concern them, by what is done about them. The introduction says that those of all metrics are corrected.
func (k *knowledge) decisionNotes(metrics []string, l *decisionList) string {
	var lines []string
	for _, word := range []string{"withheld", "bounded", "corrected"} {
		var links []string
		for _, one := range k.defects.sorted() {
			if !(word == "corrected" && slices.Contains(one.Metrics, "*")) && slices.ContainsFunc(l.Decisions, func(row decision) bool {
				return row.Decision == word && slices.ContainsFunc(k.meeting(row), func(p pair) bool {
					return p.defect == one.ID && slices.Contains(metrics, p.subject)
				})
			}) {
				links = append(links, one.note())
			}
		}
		if len(links) > 0 {
			lines = append(lines, word+" "+strings.Join(links, ", "))
		}
	}
	return unlessEmpty(strings.Join(lines, "; "), "<br>**Defects:** %s.")
}
