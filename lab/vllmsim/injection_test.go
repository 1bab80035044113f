package vllmsim

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestInjectionsAreReportedOnceAndAtTheirTime(t *testing.T) {
	work := engine.Chat(5)
	var reported []string
	s, err := New(Config{
		Hardware: "8b-h100", Workload: &work,
		Changes: []engine.Change{
			{At: 5, Parameter: engine.ParamClock, Value: 0.5},
			{At: 15, Parameter: engine.ParamBandwidth, Value: 0.5},
			{At: 30, Parameter: engine.ParamClock, Value: 1},
		},
		Faults: []Fault{{10, 20, FaultRestart}},
		Injected: func(target int, what Injection) {
			assert.Zero(t, target)
			name := ""
			if what.Change != nil {
				name = what.Change.Parameter.String()
			} else {
				name = string(what.Fault.Kind)
			}
			reported = append(reported, fmt.Sprintf("%s at %v", name, what.At()))
		},
	})
	require.NoError(t, err)
	for _, want := range []int{0, 1, 2, 3, 3, 4, 4} {
		_, _, _ = s.Targets()[0].Body() // There is no answer during the restart.
		assert.Len(t, reported, want)
		s.Advance(6 * time.Second)
	}
	assert.Equal(t, []string{"clock at 5", "restart at 10", "bandwidth at 15", "clock at 30"}, reported,
		"the restart begins a new process, but happens to the same server")
}

func TestServersWithSharesHaveOneLineOfTime(t *testing.T) {
	work := engine.Chat(5)
	s, err := New(Config{Hardware: "8b-h100", Workload: &work, Targets: 2, Shares: []float64{0.5, 0.5}})
	require.NoError(t, err)
	first, second := s.Targets()[0], s.Targets()[1]
	assert.Equal(t, first.born, second.born, "what happens at a time happens to both at once")
	assert.NotEqual(t, first.started, second.started)
}
