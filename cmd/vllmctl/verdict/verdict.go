// Package verdict is what the processor has reported of an engine or a pool, with the words
// that people read about it. The demo (make run) and vllmctl top share it.
package verdict

import (
	"math"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Verdict is the diagnosis of an engine or a pool. The zero value means that there is none.
type Verdict struct {
	// Diagnosis is in names of the catalogue. A condition need not have a cause.
	wording.Diagnosis
	// Signals are what was judged by, by name.
	Signals map[string]Measure
}

// Measure is the value of a signal. Usual is what is usual for it, NaN if that is not known.
type Measure struct{ Value, Usual float64 }

// Against returns a measure from a value and its ratio to what is usual, which is not known
// where there is no ratio above 0.
func Against(value, ratio float64) Measure {
	if ratio > 0 {
		return Measure{value, value / ratio}
	}
	return Measure{value, math.NaN()}
}

// Is reports whether two verdicts have the same condition and primary cause.
func (v *Verdict) Is(other *Verdict) bool {
	return v.Condition == other.Condition && v.Cause == other.Cause
}

// String is short enough for a column.
func (v *Verdict) String() string {
	switch {
	case v.Condition == "":
		return "-"
	case v.Cause == "":
		return v.Condition
	}
	return v.Condition + ": " + v.Cause
}

// Words are the sentence, the steps to take and the address of the page about it, without
// the catalogue's marks around names. Where there is nothing to do there are no steps.
func (v *Verdict) Words() wording.Words {
	w := wording.Of(&v.Diagnosis, wording.EnabledByDefault)
	c, known := catalog.ConditionByName(v.Condition)
	if known && c.Severity == 0 && v.Cause == "" && len(v.Notices) == 0 {
		w.Next = nil
	}
	w.Sentence = plain(w.Sentence)
	next := make([]string, len(w.Next))
	for i, step := range w.Next {
		next[i] = plain(step)
	}
	w.Next = next
	return w
}

// Evidence is what was judged by, the deciding signals first, each with its unit and what is
// usual.
func (v *Verdict) Evidence() []string {
	return wording.Lines(wording.Evidence(&v.Diagnosis, func(signal string) (value, usual float64) {
		if s, known := v.Signals[signal]; known {
			return s.Value, s.Usual
		}
		return math.NaN(), math.NaN()
	}))
}

// plain takes away the catalogue's marks around names.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
