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
	sentence string
	next     []string
	// runbook is a place in the project's documentation, empty where there is none.
	runbook string
}

// say puts the words of a state together: the condition, then why, then what else
// was noticed. What to do next is about the cause where one is known. A name that
// the catalogue lacks, of a newer processor, is told as it is.
func say(s *track.State) words {
	var w words
	var sentences, anchors []string
	if condition, known := catalog.ConditionByName(s.Condition); known {
		sentences = append(sentences, condition.Sentence)
		w.next = condition.Next
		anchors = append(anchors, condition.Anchor)
	} else {
		sentences = append(sentences, "The condition is "+s.Condition+".")
	}
	if s.Primary != "" {
		if cause, known := catalog.CauseByName(s.Primary); known {
			sentences = append(sentences, cause.Sentence)
			for _, detail := range cause.Details {
				if detail.Name == s.Detail {
					sentences = append(sentences, detail.Sentence)
				}
			}
			w.next = cause.Next
			anchors = []string{cause.Anchor}
		} else {
			sentences = append(sentences, "The primary cause is "+s.Primary+".")
			w.next, anchors = nil, nil
		}
	}
	for _, name := range s.Notices {
		notice, known := catalog.CauseByName(name)
		if !known {
			sentences = append(sentences, "There is a notice: "+name+".")
			continue
		}
		sentences = append(sentences, notice.Sentence)
		if s.Primary == "" {
			w.next = append(w.next[:len(w.next):len(w.next)], notice.Next...)
		}
	}
	w.sentence = strings.Join(sentences, " ")
	if len(anchors) > 0 && anchors[0] != "" {
		w.runbook = page + "#" + anchors[0]
	}
	return w
}
