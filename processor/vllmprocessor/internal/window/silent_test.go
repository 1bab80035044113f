package window

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// ofEngine returns the view of an engine.
func ofEngine(t *testing.T, r *Resource, name string) *View {
	t.Helper()
	for _, view := range r.Views(nil, false) {
		if view.Group().Engine() == name {
			return &view
		}
	}
	require.Fail(t, "no such engine", name)
	return nil
}

// A sender of deltas leaves out zeros: what another engine of the model has counted, this
// one counts as well, and it has counted nothing.
func TestAnEngineThatSendsNoDeltaOfACounterHasZero(t *testing.T) {
	r := fresh()
	first := asDelta(latency(1, []float64{1}, 1, 0))
	busy := []input.Sample{asDelta(tokens(5)), asDelta(preempted(2)), asDelta(success("stop", 1)), first}
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {asDelta(tokens(5))}, "1": {asDelta(tokens(5))}})
	scrapeEngines(r, 15, map[string][]input.Sample{"0": busy, "1": {asDelta(tokens(5))}})
	v := ofEngine(t, r, "1")
	n, status := v.Increase(input.Preemptions)
	assert.Equal(t, Present, status)
	assert.Zero(t, n)
	n, status = v.IncreaseOf(input.RequestSuccess, "stop")
	assert.Equal(t, Present, status)
	assert.Zero(t, n)
	count, sum, hasSum, status := v.Moments(input.TimeToFirstToken)
	assert.Equal(t, Present, status)
	assert.Zero(t, count)
	assert.Zero(t, sum)
	assert.True(t, hasSum)
	n, status = v.AtMost(input.TimeToFirstToken, 1)
	assert.Equal(t, Present, status)
	assert.Zero(t, n)
	_, status = v.Increase(input.Drafts)
	assert.Equal(t, Missing, status, "no engine counts it")
}

// Without deltas a series that is missing says nothing.
func TestAnEngineWithoutDeltasLacksTheCounter(t *testing.T) {
	r := fresh()
	for s := 0.0; s <= 15; s += 15 {
		scrapeEngines(r, s, map[string][]input.Sample{"0": {tokens(s), preempted(s)}, "1": {tokens(s)}})
	}
	_, status := ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, Missing, status)

	r = fresh()
	for s := 0.0; s <= 15; s += 15 {
		scrapeEngines(r, s, map[string][]input.Sample{"0": {asDelta(preempted(s))}, "1": {tokens(s)}})
	}
	_, status = ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, Missing, status, "the engine sends no deltas")
}

// The front end sends no counters of engines, and an engine of another model proves
// nothing.
func TestOnlyEnginesOfOneModelCountTheSame(t *testing.T) {
	r := fresh()
	for s := 0.0; s <= 15; s += 15 {
		scrapeEngines(r, s, map[string][]input.Sample{"0": {asDelta(preempted(s))}, "": {asDelta(tokens(s))}})
	}
	_, status := ofEngine(t, r, "").Increase(input.Preemptions)
	assert.Equal(t, Missing, status)
}

// A new engine counts from its first delta on, and not before.
func TestTheZeroOfAnEngineBeginsWithItsDeltas(t *testing.T) {
	r := fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {asDelta(preempted(1))}, "1": {waiting(1)}})
	scrapeEngines(r, 15, map[string][]input.Sample{"0": {asDelta(preempted(1))}, "1": {waiting(1)}})
	_, status := ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, Missing, status, "it has sent no delta yet")

	r = fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {asDelta(preempted(1))}, "1": {asDelta(tokens(5))}})
	_, status = ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, First, status, "there is no window yet")
}

// The limit of series has refused the counter of the second engine, which is not 0.
func TestARefusedDeltaIsNotZero(t *testing.T) {
	r := fresh()
	for s := 0.0; s <= 30; s += 15 {
		b := &input.Batch{Time: at(s)}
		for i, name := range []string{"0", "1"} {
			b.Groups = append(b.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: name}, {Name: "model_name", Value: "m"}}))
			for _, sample := range []input.Sample{asDelta(tokens(5)), asDelta(preempted(5))} {
				sample.Group = i
				b.Samples = append(b.Samples, sample)
			}
		}
		r.Observe(b, 3-r.Units())
	}
	_, status := ofEngine(t, r, "1").Increase(input.PromptTokens)
	require.Equal(t, Present, status)
	_, status = ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, Missing, status)
}

// A removed engine that appears again may have counted what it does not send.
func TestAnEngineThatAppearsAgainHasNoZero(t *testing.T) {
	r := fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {asDelta(preempted(1))}})
	r.Expect([]input.Attribute{{Name: "engine", Value: "1"}, {Name: "model_name", Value: "m"}})
	for s := 15.0; s <= 45; s += 15 {
		scrapeEngines(r, s, map[string][]input.Sample{"0": {asDelta(preempted(1))}, "1": {asDelta(tokens(1))}})
	}
	_, status := ofEngine(t, r, "1").Increase(input.Preemptions)
	assert.Equal(t, Missing, status)
}
