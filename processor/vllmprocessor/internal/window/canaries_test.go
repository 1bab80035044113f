package window

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// canariesSince are so many canaries of 0.5 s, counted by a receiver that began at a time.
func canariesSince(began, n float64) input.Sample {
	return input.Sample{
		Input: input.CanaryDuration, Start: at(began), Bounds: bounds, Counts: []float64{n, 0, 0, 0}, Count: n, Sum: n / 2, HasSum: true,
	}
}

// generated are the tokens of a server, and its requests at the front end.
func generated(n, front float64) map[string][]input.Sample {
	return map[string][]input.Sample{
		"0": {{Input: input.GenerationTokens, Value: n}, {Input: input.Running}}, "": {{Input: input.HTTPRequests, Value: front}},
	}
}

// A server that restarts does not end what the receiver counts, and the other way round.
func TestReceiverAndServerRestartOnTheirOwn(t *testing.T) {
	r := fresh()
	restarts := 0
	see := func(seconds, tokens, front, began, canaries float64) (grown, sent float64) {
		of := generated(tokens, front)
		of[""] = append(of[""], canariesSince(began, canaries))
		restarts += scrapeEngines(r, seconds, of).Resets
		v := ofEngine(t, r, "0")
		grown, _ = v.Increase(input.GenerationTokens)
		return grown, v.Canaries()
	}
	see(0, 1000, 500, -100, 40)
	grown, sent := see(15, 1011, 503, -100, 41)
	assert.Equal(t, []float64{10, 1}, []float64{grown, sent})
	grown, sent = see(30, 7, 2, -100, 43) // The server has restarted.
	assert.Equal(t, []float64{11 + 7 - 3, 3}, []float64{grown, sent})
	assert.Equal(t, 2, restarts, "the engine and the front end")
	grown, sent = see(45, 19, 4, 40, 1) // And now the receiver.
	assert.Equal(t, []float64{11 + 19 - 4, 4}, []float64{grown, sent})
	assert.Equal(t, 2, restarts)
	requests, _ := ofEngine(t, r, "").Increase(input.HTTPRequests)
	assert.Equal(t, 3.0+4, requests)
}

// What the receiver counts is no answer of the server: its first counters are a baseline.
func TestCanariesAreNoAnswerOfTheServer(t *testing.T) {
	r := fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"": {canariesSince(-100, 40), {Input: input.CanaryUnanswered, Value: 30}}})
	scrapeEngines(r, 15, generated(1000, 500))
	_, status := ofEngine(t, r, "0").Increase(input.GenerationTokens)
	assert.Equal(t, First, status)
}

// What counted since the point before has no canaries either.
func TestAStepIsWithoutCanaries(t *testing.T) {
	settings := Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}
	settings.Steps[input.TimeToFirstToken] = true
	r := NewResource(settings)
	for i, seen := range []struct{ fast, slow, canaries float64 }{{10, 10, 8}, {14, 11, 9}, {15, 11, 10}, {15, 11, 11}} {
		of := generated(100, 10)
		of["0"] = append(of["0"], latency(0.5*seen.fast+4*seen.slow, bounds, seen.fast, 0, seen.slow, 0))
		of[""] = append(of[""], canariesSince(-100, seen.canaries))
		scrapeEngines(r, 15*float64(i), of)
		_, step, status := ofEngine(t, r, "0").Step(input.TimeToFirstToken)
		if i == 0 {
			continue
		}
		require.Equal(t, Present, status)
		want := [][3]float64{1: {3, 1, 3*0.5 + 4}, 2: {0, 0, 0}, 3: {0, 0, 0}}[i]
		assert.Equal(t, want, [3]float64{step.Counts[0], step.Counts[2], step.Sum}, i)
		assert.Equal(t, want[0]+want[1], step.Count, i)
	}
}

// Without canaries nothing is kept for them. Reading a window allocates nothing, with them or without.
func TestCanariesCostNothingWhereThereAreNone(t *testing.T) {
	read := func(front ...input.Sample) (*Resource, float64) {
		r := fresh()
		for i := range 5 {
			of := generated(float64(10*i), 10)
			of["0"] = append(of["0"], latency(float64(i), bounds, float64(2*i), 0, 0, 0))
			of[""] = append(of[""], front...)
			scrapeEngines(r, 15*float64(i), of)
		}
		v := ofEngine(t, r, "0")
		return r, testing.AllocsPerRun(100, func() {
			_, _ = v.Increase(input.GenerationTokens)
			_, _, _, _ = v.Moments(input.TimeToFirstToken)
		})
	}
	r, without := read()
	assert.Nil(t, r.canaries)
	assert.Zero(t, without)
	r, with := read(canariesSince(-100, 5))
	assert.NotNil(t, r.canaries)
	assert.Zero(t, with)
}
