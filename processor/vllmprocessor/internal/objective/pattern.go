package objective

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Matches reports whether the objective is for a model: one of its patterns matches the
// whole name, or it has no patterns. In a pattern "*" matches any number of characters,
// including "/", and "?" matches one. Case matters. So "llama-*" does not match "meta-llama/Llama-3.1-8B";
// "meta-llama/*" and "*Llama-*" do.
func (o *Objective) Matches(model string) bool {
	return len(o.Models) == 0 || slices.ContainsFunc(o.Models, func(wanted string) bool { return input.MatchPattern(wanted, model) })
}

// matchWithin is the time after the first model in which each pattern must match a model.
// It is enough for several scrapes and for discovery at the start.
const matchWithin = int64(2 * time.Minute)

// maxModelsNamed bounds how many models a warning lists.
const maxModelsNamed = 10

// PatternWatch finds the model patterns that match nothing.
type PatternWatch struct {
	unmatched []unmatched
	models    []string
	more      bool
	first     int64
}

type unmatched struct{ objective, pattern string }

// WatchPatterns returns a watch over the patterns of the objectives.
func WatchPatterns(objectives []Objective) *PatternWatch {
	w := &PatternWatch{}
	for _, o := range objectives {
		for _, pattern := range o.Models {
			w.unmatched = append(w.unmatched, unmatched{o.Name, pattern})
		}
	}
	return w
}

// See records a model at a time.
func (w *PatternWatch) See(model string, at int64) {
	if len(w.unmatched) == 0 || slices.Contains(w.models, model) {
		return
	}
	if w.first == 0 {
		w.first = at
	}
	w.unmatched = slices.DeleteFunc(w.unmatched, func(u unmatched) bool { return input.MatchPattern(u.pattern, model) })
	if len(w.models) < maxModelsNamed {
		w.models = append(w.models, model)
	} else {
		w.more = true
	}
}

// Warnings returns a sentence for each pattern that has matched no model within two
// minutes after the first model. It returns each sentence once.
func (w *PatternWatch) Warnings(at int64) []string {
	if len(w.unmatched) == 0 || len(w.models) == 0 || at-w.first < matchWithin {
		return nil
	}
	models := strings.Join(w.models, ", ")
	if w.more {
		models += " and others"
	}
	warnings := make([]string, len(w.unmatched))
	for i, u := range w.unmatched {
		warnings[i] = fmt.Sprintf("objective %q: the pattern %q matches none of the models seen: %s; it must match the whole name, in which * stands for / as well and case matters, for example %q",
			u.objective, u.pattern, models, w.example(u.pattern))
	}
	w.unmatched = nil
	return warnings
}

// example returns a pattern that matches a known model: the user's own after a star if
// that matches, else the name of a model.
func (w *PatternWatch) example(unmatched string) string {
	anywhere := "*" + strings.TrimLeft(unmatched, "*")
	if slices.ContainsFunc(w.models, func(model string) bool { return input.MatchPattern(anywhere, model) }) {
		return anywhere
	}
	return w.models[0]
}
