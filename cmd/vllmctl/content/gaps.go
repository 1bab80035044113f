package content

import (
	"errors"
	"fmt"
)

// Gaps returns an error that names everything that an alert lacks, or nil: nothing is written while
// the page that somebody opens at night would have an empty part.
func Gaps(groups []Group) error {
	var found []error
	for _, group := range groups {
		for i := range group.Alerts {
			found = append(found, group.Alerts[i].gaps()...)
		}
	}
	return errors.Join(found...)
}

func (a *Alert) gaps() (found []error) {
	need := func(has bool, what, write string) {
		if !has {
			found = append(found, fmt.Errorf("alert %s has no %s: write %s, next to its Expr in cmd/vllmctl/content", a.Name, what, write))
		}
	}
	need(a.Expr != "", "Expr", "the PromQL that holds while it fires")
	need(a.Severity != "", "Severity", "Page or Ticket")
	need(a.Summary != "", "Summary", "one line that names what is affected")
	need(a.Description != "", "Description", "what happens to users and what to do first")
	need(a.Meaning != "", "Meaning", "when it fires")
	need(a.Impact != "", "Impact", "what users notice")
	need(len(a.Diagnosis) > 0, "Diagnosis", "the steps that find the reason")
	for _, step := range a.Diagnosis {
		need(step.Text != "", "Text of a step of its Diagnosis", "what to look for")
	}
	need(len(a.Mitigation) > 0, "Mitigation", "the actions, each with its cost")
	need(a.LooksTheSame != "", "LooksTheSame", "what has the same symptoms")
	need(a.NotConclude != "", "NotConclude", "what does not follow from it")
	need(a.CannotFire != "", "CannotFire", "when it stays silent although it should fire")
	// vLLM's own names are not sent to Datadog.
	need(a.Set == Wire || a.Monitor != nil || a.NoMonitor != "", "Monitor", "it, or NoMonitor with the reason why Datadog has none")
	if m := a.Monitor; m != nil {
		need(m.Query != "", "Query of its Monitor", "it as Datadog takes it")
		need(m.Text != "", "Text of its Monitor", "what happens, with Datadog's template variables")
	}
	need(len(a.FiresIn) > 0 || a.ShownBy != "", "FiresIn", "the stories in which it must fire, or ShownBy with the test that shows it")
	return found
}
