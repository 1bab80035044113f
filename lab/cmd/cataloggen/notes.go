package main

import (
	"fmt"
	"slices"
	"strings"
)

// mostNamed is how many subjects of a row the page names.
const mostNamed = 12

// decisionsAbout lists what is done about a defect: a line for each row that changes
// something. What is unaffected is most of what is derived, so it is one line.
func (k *knowledge) decisionsAbout(one *defect, l *decisionList) string {
	var b strings.Builder
	for _, word := range []string{"corrected", "bounded", "withheld"} {
		for _, row := range l.Decisions {
			if row.Decision != word {
				continue
			}
			var subjects []string
			for _, p := range k.meeting(row) {
				if p.defect == one.ID {
					subjects = append(subjects, p.subject)
				}
			}
			if len(subjects) > 0 {
				fmt.Fprintf(&b, "- **%s**: %s. %s\n", word, subjectList(subjects), row.How)
			}
		}
	}
	if b.Len() == 0 && slices.ContainsFunc(k.undecided(l), func(p pair) bool { return p.defect == one.ID }) {
		return "What is done about it is not decided yet.\n\n"
	} else if b.Len() == 0 {
		return "Nothing that is derived is wrong because of it.\n\n"
	}
	return "In what is derived:\n\n" + b.String() + "- **unaffected**: all else.\n\n"
}

// subjectList names subjects for readers, and the number of those that are left out.
func subjectList(subjects []string) string {
	var names []string
	for _, subject := range subjects {
		switch kind, name, is := strings.Cut(subject, ":"); {
		case is && kind == "signal":
			names = append(names, "signal `"+name+"`")
		case is:
			names = append(names, "the rule for "+map[string]string{
				"restart": "restarts", "idle": "idle engines", "stall": "stalled engines", "learned": "what was learned",
			}[name])
		default:
			names = append(names, "`"+subject+"`")
		}
	}
	if more := len(names) - mostNamed; more > 1 {
		return strings.Join(names[:mostNamed], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
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
