package objective

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pattern"
)

// Matches tells whether the objective is about a model: whether one of its
// patterns matches the whole name, or it has no patterns. In a pattern "*"
// stands for any characters, none and "/" included, and "?" for a single one.
// Case matters. So "llama-*" does not match "meta-llama/Llama-3.1-8B";
// "meta-llama/*" and "*Llama-*" do.
func (o *Objective) Matches(model string) bool {
	return len(o.Models) == 0 || slices.ContainsFunc(o.Models, func(wanted string) bool { return pattern.Match(wanted, model) })
}

// settling is how long after the first model patterns get to match something.
// By then several scrapes have come, and the targets that discovery finds at
// start as well.
const settling = int64(2 * time.Minute)

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

// See records that a server with this model sent something at a time.
func (w *PatternWatch) See(model string, at int64) {
	if len(w.unmatched) == 0 || slices.Contains(w.models, model) {
		return
	}
	if w.first == 0 {
		w.first = at
	}
	w.unmatched = slices.DeleteFunc(w.unmatched, func(u unmatched) bool { return pattern.Match(u.pattern, model) })
	if len(w.models) < maxModelsNamed {
		w.models = append(w.models, model)
	} else {
		w.more = true
	}
}

// Warnings returns, once, a sentence for each pattern that has matched nothing
// until two minutes after the first model was seen; before that, and where no
// model was seen at all, nothing.
func (w *PatternWatch) Warnings(at int64) []string {
	if len(w.unmatched) == 0 || len(w.models) == 0 || at-w.first < settling {
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

// example is a pattern that matches a model that was seen: the user's own behind
// a star if that helps, else a model's name.
func (w *PatternWatch) example(unmatched string) string {
	anywhere := "*" + strings.TrimLeft(unmatched, "*")
	if slices.ContainsFunc(w.models, func(model string) bool { return pattern.Match(anywhere, model) }) {
		return anywhere
	}
	return w.models[0]
}
