package main

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// The metrics of the diagnosis, as the Prometheus exporter writes them. The last
// two are off by default.
const (
	nameCondition   = "vllm_diagnosis_condition"
	nameCause       = "vllm_diagnosis_cause"
	nameSignal      = "vllm_diagnosis_signal"
	nameSignalRatio = "vllm_diagnosis_signal_ratio"
)

// verdict is the diagnosis of a server by the processor. The zero value means none.
type verdict struct {
	// condition and cause are the catalogue's names, detail narrows the cause down;
	// a condition need not have a cause.
	condition, cause, detail string
	// signals are by name.
	signals map[string]measure
}

// measure is the value of a signal. usual is its baseline; NaN if that is unknown.
type measure struct{ value, usual float64 }

// is reports whether two verdicts are the same.
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

// judged reads the diagnosis. Of several engines it is that of the one whose condition is
// first in the catalogue, which lists the worst first.
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
			v.signals[label(series, "signal")] = measure{number(series), math.NaN()}
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

// mostSteps and mostEvidence are how many next steps and signals are printed.
const mostSteps, mostEvidence = 2, 4

// words are the sentence and the next steps.
func (v verdict) words() (sentence string, next []string) {
	w := wording.Of(v.diagnosis(), wording.EnabledByDefault)
	if c, known := catalog.ConditionByName(v.condition); known && c.Severity == 0 && v.cause == "" {
		w.Next = nil // There is nothing to do.
	}
	for _, step := range w.Next[:min(mostSteps, len(w.Next))] {
		next = append(next, plain(step))
	}
	return plain(w.Sentence), next
}

// runbook is the address of the page about it.
func (v verdict) runbook() string {
	return wording.Of(v.diagnosis(), wording.EnabledByDefault).Runbook
}

// evidence is the deciding signals.
func (v verdict) evidence() []string {
	all := wording.Evidence(v.diagnosis(), func(signal string) (value, usual float64) {
		if s, known := v.signals[signal]; known {
			return s.value, s.usual
		}
		return math.NaN(), math.NaN()
	})
	return all[:min(mostEvidence, len(all))]
}

func (v verdict) diagnosis() *wording.Diagnosis {
	return &wording.Diagnosis{Condition: v.condition, Cause: v.cause, Detail: v.detail}
}

// plain takes away the catalogue's marks around names.
func plain(text string) string { return strings.ReplaceAll(text, "`", "") }
