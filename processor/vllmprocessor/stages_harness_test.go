package vllmprocessor

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/diagnosis"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/objectives"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/pools"
)

// stageOf returns the stage of a type; its zero value where the processor has none.
func stageOf[S stages.Stage](p *vllmProcessor) (found S) {
	for _, s := range p.stages {
		if of, is := s.(S); is {
			return of
		}
	}
	return found
}

func (p *vllmProcessor) objectives() *objectives.Stage { return stageOf[*objectives.Stage](p) }
func (p *vllmProcessor) diagnosis() *diagnosis.Stage   { return stageOf[*diagnosis.Stage](p) }
func (p *vllmProcessor) pools() *pools.Stage           { return stageOf[*pools.Stage](p) }

// snapshot returns the states that all stages would save.
func (p *vllmProcessor) snapshot() map[string][]byte {
	states := map[string][]byte{}
	p.each(func(server *stages.Server) {
		for _, state := range server.States {
			state.Snapshot(func(key string, data []byte) { states[key] = data })
		}
	})
	return states
}
