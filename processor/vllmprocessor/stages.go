package vllmprocessor

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/derived"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/diagnosis"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/gpus"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/objectives"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/pools"
)

// addStages makes the list of stages that the configuration asks for. This is the one
// place that a new stage is added to. Every stage observes a batch, and then every stage
// appends what it derives, both in this order.
func (p *vllmProcessor) addStages(shared *stages.Processor) error {
	config := p.config
	values, err := derived.New(&config.Derived, shared)
	if err != nil {
		return err
	}
	p.stages = []stages.Stage{values, gpus.New(shared)}
	if len(config.Objectives) > 0 {
		promises, err := objectives.New(config.objectives(), shared)
		if err != nil {
			return err
		}
		p.window.Steps = promises.Steps()
		p.stages = append(p.stages, promises)
	}
	var engines *diagnosis.Stage
	if config.Diagnosis.Enabled {
		engines = diagnosis.New(&config.Diagnosis, config.Objectives, shared)
		p.stages = append(p.stages, engines)
	}
	if pool := config.Pool.Get(); pool != nil {
		p.stages = append(p.stages, pools.New(pool, values.Settings(), engines, shared))
	}
	return nil
}
