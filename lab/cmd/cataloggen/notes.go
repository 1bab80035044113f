package main

import (
	"bytes"
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

// note is a short mention of a defect in another page: its title and versions.
func (one *defect) note() string {
	return "[" + cell(strings.TrimSuffix(one.Title, ".")) + "](../../" + wrongPage + "#" + one.ID + ") (" + one.versions() + ")"
}

// writeNotes lists what is to be noted of metrics; texts has the notes of one. It writes
// nothing where there are none.
func writeNotes(b *bytes.Buffer, head string, names []string, texts func(name string) []string) {
	begun := false
	for _, name := range names {
		lines := texts(name)
		if len(lines) == 0 {
			continue
		}
		if !begun {
			begun = true
			fmt.Fprintf(b, "\n| Metric | %s |\n|---|---|\n", head)
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, strings.Join(lines, "<br>"))
	}
}

// defectNotes mentions the defects of a metric of vLLM. Those of all metrics are in the
// introduction.
func (l *defectList) defectNotes(metric string) []string {
	var lines []string
	for _, one := range l.sorted() {
		if slices.Contains(one.Metrics, metric) {
			lines = append(lines, one.note())
		}
	}
	return lines
}

// defectsOfAll mentions the defects of all metrics of a server.
func (l *defectList) defectsOfAll() string {
	var lines []string
	for _, one := range l.sorted() {
		if slices.Contains(one.Metrics, "*") {
			lines = append(lines, one.note())
		}
	}
	return strings.Join(lines, "; ")
}

// decisionNotes mentions the defects of what a metric is derived from, as far as they
// concern it, by what is done about them. It names them by their ids: most concern many
// metrics.
func (k *knowledge) decisionNotes(metric string, l *decisionList) []string {
	var lines []string
	for _, word := range []string{"withheld", "bounded", "corrected"} {
		var links []string
		for _, one := range k.defects.sorted() {
			for _, row := range l.Decisions {
				if row.Decision == word && slices.Contains(k.meeting(row), pair{metric, one.ID}) {
					links = append(links, "["+one.ID+"](../../"+wrongPage+"#"+one.ID+") ("+one.versions()+")")
				}
			}
		}
		if len(links) > 0 {
			lines = append(lines, word+": "+strings.Join(links, ", "))
		}
	}
	return lines
}
