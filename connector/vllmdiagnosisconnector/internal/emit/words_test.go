package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func TestSay(t *testing.T) {
	condition := func(name string) *catalog.Condition {
		found, known := catalog.ConditionByName(name)
		require.True(t, known)
		return found
	}
	cause := func(name string) *catalog.Cause {
		found, known := catalog.CauseByName(name)
		require.True(t, known)
		return found
	}
	demand := cause("demand_exceeds_capacity")
	seqs := ""
	for _, detail := range demand.Details {
		if detail.Name == "seqs" {
			seqs = detail.Sentence
		}
	}
	require.NotEmpty(t, seqs)
	for name, test := range map[string]struct {
		state     track.State
		sentences []string
		next      []string
		runbook   string
	}{
		"a condition alone": {
			track.State{Condition: "stalled"},
			[]string{condition("stalled").Sentence},
			condition("stalled").Next, "docs/diagnosis.md#stalled",
		},
		"the cause knows better what to do": {
			track.State{Condition: "degraded", Primary: "slow_steps", Contributing: []string{"kv_pressure"}},
			[]string{condition("degraded").Sentence, cause("slow_steps").Sentence},
			cause("slow_steps").Next, "docs/diagnosis.md#slow_steps",
		},
		"a detail": {
			track.State{Condition: "degraded", Primary: "demand_exceeds_capacity", Detail: "seqs"},
			[]string{condition("degraded").Sentence, demand.Sentence, seqs},
			demand.Next, "docs/diagnosis.md#demand_exceeds_capacity",
		},
		"a detail that is not known": {
			track.State{Condition: "degraded", Primary: "demand_exceeds_capacity", Detail: "new"},
			[]string{condition("degraded").Sentence, demand.Sentence},
			demand.Next, "docs/diagnosis.md#demand_exceeds_capacity",
		},
		"where all is well, the first notice says what to do": {
			track.State{Condition: "idle", Notices: []string{"frozen_gauges", "workload_shift"}},
			[]string{condition("idle").Sentence, cause("frozen_gauges").Sentence, cause("workload_shift").Sentence},
			cause("frozen_gauges").Next, "docs/diagnosis.md#frozen_gauges",
		},
		"a notice beside a cause does not": {
			track.State{Condition: "degraded", Primary: "slow_steps", Notices: []string{"workload_shift"}},
			[]string{condition("degraded").Sentence, cause("slow_steps").Sentence, cause("workload_shift").Sentence},
			cause("slow_steps").Next, "docs/diagnosis.md#slow_steps",
		},
		"nor does one beside a condition that needs something": {
			track.State{Condition: "stalled", Notices: []string{"workload_shift"}},
			[]string{condition("stalled").Sentence, cause("workload_shift").Sentence},
			condition("stalled").Next, "docs/diagnosis.md#stalled",
		},
		"a cause beside a condition that needs nothing": {
			track.State{Condition: "healthy", Primary: "slow_steps", Notices: []string{"workload_shift"}},
			[]string{condition("healthy").Sentence, cause("slow_steps").Sentence, cause("workload_shift").Sentence},
			cause("slow_steps").Next, "docs/diagnosis.md#slow_steps",
		},
		"names of a newer processor": {
			track.State{Condition: "tired", Primary: "age", Notices: []string{"noise"}},
			[]string{"The condition is tired.", "The primary cause is age.", "There is a notice: noise."},
			nil, "",
		},
		"a new cause of a known condition": {
			track.State{Condition: "degraded", Primary: "age"},
			[]string{condition("degraded").Sentence, "The primary cause is age."},
			condition("degraded").Next, "docs/diagnosis.md#degraded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := say(&test.state)
			assert.Equal(t, test.sentences, got.sentences)
			assert.Equal(t, test.next, got.next)
			assert.Equal(t, test.runbook, got.runbook)
		})
	}
}
