package emit

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// page is the documentation that the anchors of the catalogue are of.
const page = "docs/diagnosis.md"

// words are what the catalogue says about a state.
type words struct {
	sentences []string
	// next are the steps, and runbook is the place in the project's documentation.
	// Both are empty where the catalogue has none.
	next    []string
	runbook string
}

func (w *words) sentence() string { return strings.Join(w.sentences, " ") }

// advise makes the next steps those of a heading of the page, without those that name
// a metric which is off by default: the connector does not know what is switched on.
func (w *words) advise(next []string, anchor string) {
	w.next, w.runbook = catalog.StepsWith(next, enabled), page+"#"+anchor
}

func enabled(name string) bool {
	metric, known := catalog.ByName(name)
	return known && metric.Enabled
}

// say puts the words of a state together: the condition, then why, then what else
// was noticed. What to do next is about the cause where there is one, else about
// a notice where the condition asks for nothing. A name that the catalogue lacks,
// of a newer processor, is told as it is.
func say(s *track.State) words {
	var w words
	harmless := false
	if condition, known := catalog.ConditionByName(s.Condition); known {
		w.sentences = append(w.sentences, condition.Sentence)
		w.advise(condition.Next, condition.Anchor)
		harmless = condition.Severity == 0
	} else {
		w.sentences = append(w.sentences, "The condition is "+s.Condition+".")
	}
	if s.Primary != "" {
		w.explain(s)
	}
	for _, name := range s.Notices {
		notice, known := catalog.CauseByName(name)
		if !known {
			w.sentences = append(w.sentences, "There is a notice: "+name+".")
			continue
		}
		w.sentences = append(w.sentences, notice.Sentence)
		if harmless && s.Primary == "" {
			harmless = false // the first notice only
			w.advise(notice.Next, notice.Anchor)
		}
	}
	return w
}

// explain adds the primary cause.
func (w *words) explain(s *track.State) {
	cause, known := catalog.CauseByName(s.Primary)
	if !known {
		w.sentences = append(w.sentences, "The primary cause is "+s.Primary+".")
		return
	}
	w.sentences = append(w.sentences, cause.Sentence)
	for _, detail := range cause.Details {
		if detail.Name == s.Detail {
			w.sentences = append(w.sentences, detail.Sentence)
		}
	}
	w.advise(cause.Next, cause.Anchor)
}
