package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestArrivalsExceedCapacityWhereTheQueueStays(t *testing.T) {
	sampled := func(lengths func(at float64) int) *queue {
		q := &queue{window: 60}
		for at := 1.0; at <= 600; at++ {
			q.sample(at, lengths(at))
		}
		q.close()
		return q
	}
	within := func(from, to float64, n int) func(float64) int {
		return func(at float64) int {
			if at >= from && at < to {
				return n
			}
			return 0
		}
	}
	assert.Empty(t, sampled(within(100, 200, 50)).stretches, "for less than two windows")
	assert.Equal(t, [][2]float64{{100, 300}}, sampled(within(100, 300, 50)).stretches)
	assert.Empty(t, sampled(func(at float64) int {
		if int(at)%100 == 0 {
			return 0
		}
		return 20
	}).stretches, "it is empty now and then")
	assert.Empty(t, sampled(func(at float64) int { return max(0, 500-int(at)) }).stretches, "it only drains")
	// More arrives for 20 s, and what waits then drains in three windows.
	burst := func(begin float64) func(at float64) int {
		return func(at float64) int {
			switch at -= begin; {
			case at < 0 || at >= 200:
				return 0
			case at < 20:
				return 9 * int(at+1)
			default:
				return 200 - int(at)
			}
		}
	}
	assert.Empty(t, sampled(burst(100)).stretches, "a burst that drains")
	// After a burst that has not quite drained, it grows slowly from 250 s on.
	again := sampled(func(at float64) int {
		if at >= 250 && at < 450 {
			return burst(100)(at) + int(at-250)/2
		}
		return burst(100)(at)
	})
	require.Len(t, again.stretches, 1)
	assert.InDelta(t, 260, again.stretches[0][0], 30, "from when on it grows")
	assert.InDelta(t, 450, again.stretches[0][1], 0)
	// It grows for 150 s, and then drains: harm lasts to the end.
	grows := sampled(func(at float64) int {
		switch {
		case at < 100:
			return 0
		case at < 250:
			return int(at) - 99
		default:
			return max(0, 400-int(at))
		}
	})
	assert.Equal(t, [][2]float64{{100, 400}}, grows.stretches)
	assert.True(t, grows.exceeded(60, 120))
	assert.True(t, grows.exceeded(360, 420))
	assert.False(t, grows.exceeded(420, 480))
	assert.False(t, grows.exceeded(0, 60))
}

// overloaded is a server with a small cache, whose capacity is a few requests per second.
func overloaded(rate float64) engine.Config {
	cfg := chatServer(5, rate)
	cfg.Blocks, cfg.MaxModelLen, cfg.MaxSeqs = 1025, 8192, 8
	return cfg
}

func TestTooMuchWithoutAFaultIsHarm(t *testing.T) {
	story := &Story{Name: "much", Servers: []engine.Config{overloaded(20)}, Length: 12 * time.Minute}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	for _, line := range played.Lines {
		assert.True(t, line.Harmful, "%+v", line)
		assert.Equal(t, map[string]float64{demand: 1}, line.TrueCauses)
	}
	assert.Zero(t, played.Summary().HealthyHours)

	story.Servers = []engine.Config{overloaded(1)}
	played, err = Play(t.Context(), story)
	require.NoError(t, err)
	for _, line := range played.Lines {
		assert.False(t, line.Harmful, "%+v", line)
		assert.Empty(t, line.TrueCauses)
		assert.NotNil(t, line.TrueCauses)
	}
}

// Where a fault comes on top, demand has the share that the nominal run has already.
func TestTooMuchAndAFaultShareTheHarm(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "both", Servers: []engine.Config{overloaded(6)}, Length: 20 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.5, At: 600}},
	})
	require.NoError(t, err)
	for _, line := range played.Lines[:5] {
		assert.Equal(t, map[string]float64{demand: 1}, line.TrueCauses)
	}
	for _, line := range played.Lines[10:20] {
		assert.Zero(t, line.Unended)
		assert.Greater(t, line.TrueCauses["slow_steps"], 0.3, "%+v", line)
		assert.Greater(t, line.TrueCauses[demand], 0.25)
		assert.InDelta(t, 1, line.TrueCauses["slow_steps"]+line.TrueCauses[demand], 0.02, "one cause: the rest is demand")
	}
}

// What has not ended ten minutes after the end counts with its age, with and without the
// fault: it is late, and not lost, and the line has how many these are.
func TestALateAnswerIsNotLostAtTheEnd(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "end", Servers: []engine.Config{overloaded(12)}, Length: 20 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.8, At: 300, Until: 600}},
	})
	require.NoError(t, err)
	assert.Zero(t, played.Lines[6].Unended)
	assert.Greater(t, played.Lines[19].Unended, 0.9)
	for i := 7; i < 20; i++ {
		assert.LessOrEqual(t, played.Lines[i].TrueCauses["slow_steps"], played.Lines[i-1].TrueCauses["slow_steps"]+0.05,
			"after the fault its part of the queue only becomes smaller: %+v", played.Lines[i])
	}
}

// An objective is missed or not, whatever is harm.
func TestAMissedObjectiveIsKnown(t *testing.T) {
	for threshold, missed := range map[string]bool{"1ms": true, "40m": false} {
		story := &Story{Name: "objective", Servers: []engine.Config{overloaded(1)}, Length: 5 * time.Minute, Processor: map[string]any{
			"objectives": []any{map[string]any{"name": "o", "metric": "vllm.time_to_first_token", "threshold": threshold, "target": 0.9}},
		}}
		played, err := Play(t.Context(), story)
		require.NoError(t, err)
		for _, line := range played.Lines {
			assert.False(t, line.Harmful, "the nominal run is the same")
			assert.Equal(t, missed && line.Requests >= leastInAMean, line.Missed, "%s: %+v", threshold, line)
		}
	}
}

// While an engine stands still, that is why its requests wait, also where the nominal run
// misses the objectives.
func TestAStallOfAnOverloadedServerIsTheStall(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "stall", Servers: []engine.Config{overloaded(6)}, Length: 12 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamStall, Value: 1, At: 240, Until: 720}},
		Processor: map[string]any{"objectives": []any{
			map[string]any{"name": "first", "metric": "vllm.time_to_first_token", "threshold": "500ms", "target": 0.95},
			map[string]any{"name": "gap", "metric": "vllm.inter_token_latency", "threshold": "50ms", "target": 0.9},
		}},
	})
	require.NoError(t, err)
	for _, line := range played.Lines[:3] {
		assert.Equal(t, map[string]float64{demand: 1}, line.TrueCauses)
	}
	for _, line := range played.Lines[4:12] {
		assert.True(t, line.Harmful)
		assert.Greater(t, line.TrueCauses["stalled"], 0.7, "%+v", line)
		assert.Less(t, line.TrueCauses[demand], 0.3)
	}
}
