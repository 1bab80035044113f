package vllmprocessor

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
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

func (p *vllmProcessor) objectives() *stages.Objectives { return stageOf[*stages.Objectives](p) }
func (p *vllmProcessor) diagnosis() *stages.Diagnosis   { return stageOf[*stages.Diagnosis](p) }
func (p *vllmProcessor) pools() *stages.Pools           { return stageOf[*stages.Pools](p) }

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
