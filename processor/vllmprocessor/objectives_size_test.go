package vllmprocessor

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// TestTheMemoryOfObjectivesIsAsTheREADMESays fills all slots of two objectives.
func TestTheMemoryOfObjectivesIsAsTheREADMESays(t *testing.T) {
	config := within(promise("ttft", firstToken, 2500*time.Millisecond, 0.95), promise("whole", wholeTime, 10*time.Second, 0.9))
	config.BudgetWindow = objective.Duration(24 * time.Hour)
	p := run(t, config)
	engines := map[string]*engineLog{"0": {born: noon}}
	names := []string{firstToken, wholeTime}
	for range 24 * 60 {
		p.at = p.at.Add(time.Minute)
		engines["0"].serve(p.at, map[string]float64{firstToken: 1, wholeTime: 20})
		p.take(body("one:8000", "m", p.at, names, engines))
	}
	saved := 0
	for _, state := range p.snapshot() {
		saved += len(state)
	}
	assert.Equal(t, 2, p.objectives().Trackers.Used())
	t.Logf("two objectives of one server: %d bytes saved", saved)
	assert.LessOrEqual(t, saved, 12_000)
	assert.Greater(t, saved, 6_000, "all slots are filled")
}

func BenchmarkObjectives(b *testing.B) {
	for _, objectives := range []int{0, 2} {
		b.Run(map[int]string{0: "without", 2: "two"}[objectives], func(b *testing.B) {
			all := []objective.Objective{
				promise("ttft", firstToken, 2500*time.Millisecond, 0.95), promise("whole", wholeTime, 10*time.Second, 0.9),
			}
			p := newInstance(b, within(all[:objectives]...), &archive.Shared{})
			engines := map[string]*engineLog{"0": {born: noon}, "1": {born: noon}}
			p.at = noon
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				p.at = p.at.Add(15 * time.Second)
				for _, e := range engines {
					if len(e.requests) < 100 {
						e.serve(p.at, map[string]float64{firstToken: 1, wholeTime: 20})
					}
				}
				metrics := body("one:8000", "m", p.at, []string{firstToken, wholeTime}, engines)
				b.StartTimer()
				_, _ = p.process(context.Background(), metrics)
			}
		})
	}
}
