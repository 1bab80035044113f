package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The metrics of the diagnosis, as the Prometheus exporter writes them. The last
// two are off by default.
const (
	nameCondition   = "vllm_diagnosis_condition"
	nameCause       = "vllm_diagnosis_cause"
	nameSignal      = "vllm_diagnosis_signal"
	nameSignalRatio = "vllm_diagnosis_signal_ratio"
)

// verdict is what the processor says of a server. The zero value is nothing.
type verdict struct {
	// condition and cause are the catalogue's names, detail narrows the cause down;
	// a condition need not have a cause.
	condition, cause, detail string
	// signals are by name.
	signals map[string]measure
}

// measure is a number that the processor goes by. usual is what it compares the
// number with, NaN where that is not known.
type measure struct{ value, usual float64 }

// is tells whether two verdicts say the same.
func (v verdict) is(other verdict) bool {
	return v.condition == other.condition && v.cause == other.cause
}

// String is short enough for a column.
func (v verdict) String() string {
	switch {
	case v.condition == "":
		return "-"
	case v.cause == "":
		return v.condition
	}
	return v.condition + ": " + v.cause
}

// judged reads the diagnosis. Of several engines the one counts whose condition
// comes first in the catalogue, where the worse ones stand first.
func judged(families map[string]*dto.MetricFamily) verdict {
	active := map[string]string{} // By condition, its engine.
	for _, series := range families[nameCondition].GetMetric() {
		if number(series) == 1 {
			active[label(series, "condition")] = label(series, "engine")
		}
	}
	v := verdict{signals: map[string]measure{}}
	for _, c := range catalog.Conditions() {
		if _, is := active[c.Name]; is {
			v.condition = c.Name
			break
		}
	}
	if v.condition == "" {
		return v
	}
	engine := active[v.condition]
	for _, series := range families[nameCause].GetMetric() {
		if number(series) == 1 && label(series, "role") == "primary" && label(series, "engine") == engine {
			v.cause, v.detail = label(series, "cause"), label(series, "detail")
		}
	}
	for _, series := range families[nameSignal].GetMetric() {
		if label(series, "engine") == engine {
			usual := math.NaN()
			if isFactor(label(series, "signal")) {
				usual = 1
			}
			v.signals[label(series, "signal")] = measure{number(series), usual}
		}
	}
	for _, series := range families[nameSignalRatio].GetMetric() {
		name := label(series, "signal")
		if s, is := v.signals[name]; is && label(series, "engine") == engine && number(series) > 0 {
			v.signals[name] = measure{s.value, s.value / number(series)}
		}
	}
	return v
}

func label(series *dto.Metric, name string) string {
	for _, pair := range series.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// found says in words what the processor found: the cause, or where there is none
// the condition.
func (v verdict) found() string {
	var sentences []string
	if c, known := catalog.ConditionByName(v.condition); known {
		sentences = []string{c.Sentence}
	}
	if c, known := catalog.CauseByName(v.cause); known {
		sentences = []string{c.Sentence}
		for _, d := range c.Details {
			if d.Name == v.detail {
				sentences = append(sentences, d.Sentence)
			}
		}
	}
	return plain(strings.Join(sentences, " "))
}

// next are the first steps of the cause, or of the condition where there is none.
func (v verdict) next() []string {
	var steps []string
	if c, known := catalog.ConditionByName(v.condition); known && c.Severity > 0 {
		steps = c.Next
	}
	if c, known := catalog.CauseByName(v.cause); known {
		steps = c.Next
	}
	var out []string
	for _, step := range steps[:min(2, len(steps))] {
		out = append(out, plain(step))
	}
	return out
}

// mostEvidence is how many numbers are given for a verdict.
const mostEvidence = 4

// evidence are the numbers that the rules of the condition and the cause read:
// factors first, which are comparisons already, then those that are farthest from
// usual.
func (v verdict) evidence() []string {
	var names []string
	if c, known := catalog.CauseByName(v.cause); known {
		names = append(names, c.Signals...)
	}
	if c, known := catalog.ConditionByName(v.condition); known && c.Severity != 1 {
		names = append(names, c.Signals...)
	}
	names = slices.DeleteFunc(names, func(name string) bool { _, is := v.signals[name]; return !is })
	slices.SortStableFunc(names, func(a, b string) int {
		return cmp.Or(boolean(isFactor(b))-boolean(isFactor(a)), cmp.Compare(v.signals[b].distance(), v.signals[a].distance()))
	})
	var out []string
	for i, name := range names {
		if slices.Contains(names[:i], name) || len(out) == mostEvidence {
			continue
		}
		s, unit := v.signals[name], ""
		for _, known := range catalog.Signals() {
			if known.Name == name {
				unit = known.Unit
			}
		}
		text := name + " " + quantity(s.value, unit)
		switch {
		case isFactor(name):
			text += " (1 is as expected under this load)"
		case !math.IsNaN(s.usual):
			text += " (usual: " + quantity(s.usual, unit) + ")"
		}
		out = append(out, text)
	}
	return out
}

// isFactor tells whether a signal is one number over another already.
func isFactor(name string) bool { return strings.HasSuffix(name, "_factor") }

func boolean(is bool) int {
	if is {
		return 1
	}
	return 0
}

// distance is how far a signal is from usual, by factors; 0 where that is unknown.
func (s measure) distance() float64 {
	if d := math.Abs(math.Log(s.value / s.usual)); !math.IsNaN(d) {
		return d
	}
	return 0
}

// quantity writes a number with its unit.
func quantity(value float64, unit string) string {
	switch {
	case unit == "s" && value < 0.01:
		return fmt.Sprintf("%.1f ms", 1000*value)
	case unit == "s" && value < 1:
		return fmt.Sprintf("%.0f ms", 1000*value)
	case unit == "s":
		return fmt.Sprintf("%.1f s", value)
	case math.Abs(value) >= 10:
		return fmt.Sprintf("%.0f", value)
	case unit == "1":
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.1f", value)
}

// plain takes away the catalogue's marks around names.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
