package check

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// names are what the settings of a processor can name: the models of targets, and the attributes of
// their points and resources.
type names struct{ models, attributes map[string]bool }

// namesOf reads the names from what the receiver emits.
func namesOf(batch pmetric.Metrics) names {
	n := names{map[string]bool{}, map[string]bool{}}
	for _, resource := range batch.ResourceMetrics().All() {
		for name := range resource.Resource().Attributes().All() {
			n.attributes[name] = true
		}
	}
	for m := range metricsOf(batch) {
		for p := range counts(m) {
			for name := range p.attributes.All() {
				n.attributes[name] = true
			}
			if model := attribute(p.attributes, "model_name"); model != "" {
				n.models[model] = true
			}
		}
	}
	return n
}

// judgeUseless judges settings of processors that do nothing for any of their targets. A target
// without a model has had no request, or is none of vLLM, and says nothing about them.
func judgeUseless(f *findings, targets []Target, file *configfile.File) {
	for i := range file.Processors {
		p := &file.Processors[i]
		seen := names{map[string]bool{}, map[string]bool{}}
		for t := range targets {
			if file.Processor(targets[t].Receiver) == p.Config && len(targets[t].names.models) > 0 {
				maps.Copy(seen.models, targets[t].names.models)
				maps.Copy(seen.attributes, targets[t].names.attributes)
			}
		}
		if len(seen.models) == 0 {
			continue
		}
		models := slices.Sorted(maps.Keys(seen.models))
		for j := range p.Config.Objectives {
			if o := &p.Config.Objectives[j]; !slices.ContainsFunc(models, o.Matches) {
				f.add(CodeObjectiveModel, fmt.Sprintf("The objective %q of processors::%s matches no model of a target: %s.",
					o.Name, p.Name, strings.Join(o.Models, ", ")), "the targets have "+probe.Printable(strings.Join(models, ", ")))
			}
		}
		pool := p.Config.Pool.Get()
		if pool == nil || adds(file, p.Name) {
			continue
		}
		for _, name := range pool.GroupBy {
			if !seen.attributes[name] {
				f.add(CodePoolAttribute, fmt.Sprintf("No target of processors::%s has the attribute %q of pool::group_by.", p.Name, name))
			}
		}
	}
}

// adds reports whether a processor that may add attributes is before a processor.
func adds(file *configfile.File, name string) bool {
	return slices.ContainsFunc(file.Pipelines, func(p configfile.Pipeline) bool {
		at := slices.Index(p.Processors, name)
		return at > 0 && slices.ContainsFunc(p.Processors[:at], func(before string) bool {
			kind, _, _ := strings.Cut(before, "/")
			return kind != "memory_limiter" && kind != "batch"
		})
	})
}

// judgeProcessor judges the processor of a pipeline together with what is around it.
func judgeProcessor(f *findings, file *configfile.File, p *configfile.Pipeline, config *vllmprocessor.Config, name string) {
	for i := range file.Receivers {
		r := &file.Receivers[i]
		if !slices.Contains(p.Receivers, r.Name) {
			continue
		}
		if r.Config.Preset == catalog.Essential && config.Preset != catalog.Essential {
			f.add(CodePreset, fmt.Sprintf("The preset of receivers::%s is essential, and that of processors::%s is %s.", r.Name, name, config.Preset))
		}
		for _, metric := range slices.Sorted(maps.Keys(r.Config.Metrics)) {
			if on := r.Config.Metrics[metric].Enabled; on != nil && *on && config.Preset == catalog.Essential && !config.Switched(metric) {
				f.add(CodePreset, fmt.Sprintf("receivers::%s switches %s on, and the preset essential of processors::%s removes it.", r.Name, metric, name))
			}
		}
		if interval := r.Config.Controller.CollectionInterval; config.Window < 2*interval {
			f.add(CodeWindow, fmt.Sprintf("The window of processors::%s (%s) is shorter than two intervals of receivers::%s (%s).",
				name, config.Window, r.Name, 2*interval))
		}
	}
	for _, exporter := range p.Exporters {
		if kind, _, _ := strings.Cut(exporter, "/"); kind == "vllm_diagnosis" && !config.Diagnosis.Enabled {
			f.add(CodeNoDiagnosis, fmt.Sprintf("%s is in the pipeline %s, and diagnosis::enabled of processors::%s is false.", exporter, p.Name, name))
		}
	}
}
