package vllmprocessor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// The engine hangs: its gauges show what was, and its counters stand still. That is no
// demand that is too high, and nothing says on the way that the engine serves.
func TestFrozenGaugesAreNoDemand(t *testing.T) {
	for hold := range 3 {
		for _, waiting := range []float64{0, 2, 8, 40} {
			t.Run(fmt.Sprint(hold+1, waiting), func(t *testing.T) {
				config := createDefaultConfig().(*Config)
				config.Diagnosis.Hold = hold + 1
				p := newInstance(t, config, &archive.Shared{})
				p.begin(componenttest.NewNopHost())
				defer p.end()
				server := steady("one:8000", noon)
				server.rate, server.version = 5.9, "0.26.0"
				p.watch(server, 8*time.Minute)
				require.Empty(t, p.changes())
				server.stalled = true
				var reported map[string]float64
				for range 8 {
					server.waiting = waiting - 15*server.rate // and scrape adds what came
					reported = p.diagnoses(server)
					assert.NotContains(t, reported, "cause=demand_exceeds_capacity")
				}
				assert.Equal(t, 1.0, reported["condition=stalled"])
				for _, line := range p.changes() {
					assert.NotContains(t, line.Message, "as it should")
					assert.NotContains(t, line.Message, "copes")
				}
				lines := p.changes()
				last := lines[len(lines)-1].ContextMap()
				evidence := last["evidence"].([]any)
				assert.Equal(t, "standstill 60 s", evidence[0])
				assert.True(t, strings.HasPrefix(evidence[1].(string), "generation_throughput 0 tokens/s (usual 590)"), evidence[1])
			})
		}
	}
}

// Under the default configuration, and without pools, each condition that is harm and
// each cause has a step left, and none names a metric that is off.
func TestNextStepsNameOnlyMetricsThatAreOn(t *testing.T) {
	for name, configure := range map[string]func(*Config){
		"default": func(*Config) {},
		"one less": func(c *Config) {
			off := false
			c.Metrics = map[string]MetricConfig{"vllm.arrival_rate": {Enabled: &off}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			configure(config)
			on := config.emits
			assert.False(t, on("vllm.healthy"))
			assert.False(t, on("vllm.pool.waiting"), "no pool is configured")
			assert.True(t, on("vllm.up"))
			assert.Equal(t, name == "default", on("vllm.arrival_rate"))
			check := func(of string, steps []catalog.Step) {
				left := catalog.StepsWith(steps, on)
				assert.NotEmpty(t, left, of)
				for _, step := range left {
					for i, word := range strings.Split(step, "`") {
						if _, metric := catalog.ByName(word); metric && i%2 == 1 {
							assert.True(t, on(word), "%s: %s", of, step)
						}
					}
				}
			}
			for _, c := range catalog.Conditions() {
				if c.Severity > 0 {
					check(c.Name, c.Next)
				}
			}
			for _, c := range catalog.Causes() {
				check(c.Name, c.Next)
			}
		})
	}
}

// The signal that decides about the cause is first.
func TestTheDecidingEvidenceComesFirst(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	server.levels = map[string]float64{"vllm.num_dropped": 0}
	p.watch(server, 8*time.Minute)
	for range 8 {
		server.levels["vllm.num_dropped"]++
		p.diagnoses(server)
	}
	lines := p.changes()
	require.NotEmpty(t, lines)
	evidence := lines[0].ContextMap()["evidence"].([]any)
	assert.Equal(t, "dropped_ratio 0.0625 (usual 0)", evidence[0], "1 of 16")
	assert.Equal(t, "evidence", lines[0].Context[0].Key)
	assert.Contains(t, fmt.Sprint(evidence), "arrival_rate 1 requests/s (usual 1)")
}
