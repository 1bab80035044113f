package runbook

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// alertPage returns the runbook of an alert.
func alertPage(a *content.Alert) []byte {
	var b strings.Builder
	b.WriteString(generated)
	link := func(text string) string { return linked(strings.TrimSpace(text), a.Name) }
	fmt.Fprintf(&b, "# %s\n\n%s> %s Fires %s.\n\n", a.Name, navigation, severities[a.Severity], fires(a))
	fmt.Fprintf(&b, "%s\n\n**Impact:** %s\n\n", link(a.Meaning), link(a.Impact))
	steps := make([]step, 0, len(a.Diagnosis))
	for _, s := range a.Diagnosis {
		one := step{text: linked(s.Text, a.Name), board: s.Board, panel: s.Panel}
		if s.Query != "" {
			one.queries = []string{s.Query}
		}
		steps = append(steps, one)
	}
	b.WriteString(actionParts(steps, a.Mitigation, a.Name))
	b.WriteString(limits(link(a.LooksTheSame), link(a.NotConclude), "No alert", link(a.CannotFire)))
	return []byte(b.String())
}

var severities = map[content.Severity]string{
	content.Page:   "Page: act at once.",
	content.Ticket: "Ticket: act within days.",
}

func fires(a *content.Alert) string {
	text := "immediately"
	if a.For > 0 {
		text = "after " + model.Duration(a.For).String()
	}
	if a.KeepFiringFor > 0 {
		text += ", stays for " + model.Duration(a.KeepFiringFor).String()
	}
	if a.Set != content.Wire { // the repository has no file of these
		text += " ([expression](../../content/rules/suffixed/vllm.yaml))"
	}
	return text
}

var named = regexp.MustCompile("(\\[)?`(--[a-z-]+|[A-Za-z_]+)`")

// linked turns each name of a condition, a cause or an alert in backticks into a link to
// its runbook, and each flag into one to the page of the flags. What is a link already stays, and so does the name of the page itself.
func linked(text, self string) string {
	return named.ReplaceAllStringFunc(text, func(match string) string {
		name := strings.Trim(match, "[`")
		if strings.HasPrefix(match, "`--") {
			return "[" + match + "](flags.md)"
		}
		_, condition := catalog.ConditionByName(name)
		_, cause := catalog.CauseByName(name)
		if strings.HasPrefix(match, "[") || name == self || !condition && !cause && !strings.HasPrefix(name, "VLLM") {
			return match
		}
		return "[" + match + "](" + name + ".md)"
	})
}
