package main

import (
	dto "github.com/prometheus/client_model/go"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
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

// judged reads the diagnosis. Of several engines it is that of the one whose condition is
// first in the catalogue, which lists the worst first.
func judged(families map[string]*dto.MetricFamily) verdict.Verdict {
	active := map[string]string{} // By condition, its engine.
	for _, series := range families[nameCondition].GetMetric() {
		if number(series) == 1 {
			active[label(series, "condition")] = label(series, "engine")
		}
	}
	v := verdict.Verdict{Signals: map[string]verdict.Measure{}}
	for _, c := range catalog.Conditions() {
		if _, is := active[c.Name]; is {
			v.Condition = c.Name
			break
		}
	}
	if v.Condition == "" {
		return v
	}
	engine := active[v.Condition]
	for _, series := range families[nameCause].GetMetric() {
		if number(series) == 1 && label(series, "role") == "primary" && label(series, "engine") == engine {
			v.Cause, v.Detail = label(series, "cause"), label(series, "detail")
		}
	}
	for _, series := range families[nameSignal].GetMetric() {
		if label(series, "engine") == engine {
			v.Signals[label(series, "signal")] = verdict.Against(number(series), 0)
		}
	}
	for _, series := range families[nameSignalRatio].GetMetric() {
		name := label(series, "signal")
		if s, is := v.Signals[name]; is && label(series, "engine") == engine {
			v.Signals[name] = verdict.Against(s.Value, number(series))
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
