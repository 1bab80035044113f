package vllmprocessor

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// addStages makes the list of stages that the configuration asks for. This is the one
// place that a new stage is added to. Every stage observes a batch, and then every stage
// appends what it derives, both in this order.
func (p *vllmProcessor) addStages(shared *stages.Processor) error {
	config := p.config
	values, err := stages.NewDerived(&config.Derived, shared)
	if err != nil {
		return err
	}
	p.stages = []stages.Stage{values, stages.NewGPUs(shared)}
	if len(config.Objectives) > 0 {
		promises, err := stages.NewObjectives(config.Objectives, config.BudgetWindow, config.BurnWindows, shared)
		if err != nil {
			return err
		}
		p.window.Steps = promises.Steps()
		p.stages = append(p.stages, promises)
	}
	var engines *stages.Diagnosis
	if config.Diagnosis.Enabled {
		engines = stages.NewDiagnosis(&config.Diagnosis, config.Objectives, shared)
		p.stages = append(p.stages, engines)
	}
	if pool := config.Pool.Get(); pool != nil {
		p.stages = append(p.stages, stages.NewPools(pool, values, engines, shared))
	}
	return nil
}
