package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// several is a server with engines behind one front end.
func several(seed uint64, engines int, rate float64) engine.Config {
	cfg := chatServer(seed, rate)
	cfg.Engines = engines
	return cfg
}

func TestQueuesOfEnginesAreApart(t *testing.T) {
	turns, full := queues{window: 60}, queues{window: 60}
	for at := 1.0; at <= 300; at++ {
		turns.sample(at, []int{int(at) % 2, 1 - int(at)%2})
		waiting := []int{0, int(at)}
		if at > 200 {
			waiting = nil // The process has ended.
		}
		full.sample(at, waiting)
	}
	turns.close()
	full.close()
	require.Len(t, turns.of, 2)
	for i := range 2 {
		assert.Empty(t, turns.of[i].stretches, "one request waits for the next step, of one engine or the other")
		assert.Equal(t, i == 1, full.exceeded(i, 60, 120), "engine %d", i)
		assert.False(t, full.exceeded(i, 201, 300))
	}
	assert.False(t, full.exceeded(2, 60, 120), "an engine that is added later")
}

// With many engines some request waits for the next step of its engine at any time.
func TestManyEnginesWithRoomHaveNoDemand(t *testing.T) {
	cfg := several(1, 16, 90)
	cfg.Model = engine.Models()["8b-l40s"]
	played, err := Play(t.Context(), &Story{Name: "many", Servers: []engine.Config{cfg}, Length: 4 * time.Minute})
	require.NoError(t, err)
	for i := range played.Lines {
		assert.False(t, played.Lines[i].Harmful, "%+v", played.Lines[i])
	}
}

func TestTooMuchForOneOfTheEnginesIsHarm(t *testing.T) {
	cfg := several(5, 3, 9)
	cfg.Blocks, cfg.MaxModelLen, cfg.MaxSeqs = 1025, 8192, 8
	cfg.Router, cfg.Weights = engine.RouteWeights, []float64{0.9, 0.05, 0.05}
	played, err := Play(t.Context(), &Story{Name: "one full", Servers: []engine.Config{cfg}, Length: 6 * time.Minute})
	require.NoError(t, err)
	for i := range played.Lines {
		assert.True(t, played.Lines[i].Harmful, "%+v", played.Lines[i])
		assert.Equal(t, map[string]float64{demand: 1}, played.Lines[i].TrueCauses)
	}
}

// The requests of one slow engine of four are too few to change the mean of all.
func TestOneSlowEngineHarmsTheServer(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "one slow", Servers: []engine.Config{several(1, 4, 20)}, Length: 9 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 240, Until: 420, Engines: []int{2}}},
	})
	require.NoError(t, err)
	for i := range played.Lines {
		l := &played.Lines[i]
		assert.Equal(t, i >= 4 && i < 7, l.Harmful, "minute %d: %+v", i, l)
		if l.Harmful {
			assert.Equal(t, map[string]float64{"slow_steps": 1}, l.TrueCauses)
		}
	}
	played.Alarms = []Alarm{{At: 315, Severity: 2}}
	s := played.Summary()
	assert.Equal(t, []int{1, 0}, []int{s.AlarmsWithHarm, s.AlarmsWithoutHarm})
}

// An effect that is sought for one engine is that of this engine.
func TestAnEffectOnOneEngineIsFound(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "sought", Servers: []engine.Config{several(3, 3, 12)}, Length: 6 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 2, At: 120, Until: 300, Engines: []int{1}}},
	})
	require.NoError(t, err)
	assert.Empty(t, played.Notes)
	for i := range played.Lines {
		effect := 0.0
		if i >= 2 && i < 5 {
			effect = 2
		}
		assert.InDelta(t, effect, played.Lines[i].Effect, 0.6, "minute %d", i)
	}
}

// slow is a sum of requests whose first tokens take so long.
func slow(requests, first float64) sum {
	return sum{requests: requests, firstToken: requests * first}
}

// byHand is a truth of two engines and one minute. Two causes do harm, the one to the first
// engine and the other to the second; the runs without them are 2 and 3.
func byHand(first, second [4]sum) *truth {
	add := func(a, b sum) sum {
		return sum{requests: a.requests + b.requests, firstToken: a.firstToken + b.firstToken}
	}
	m := minute{sums: newSums(4), engines: []sums{{in: first[:]}, {in: second[:]}}}
	for i := range first {
		m.in[i] = add(first[i], second[i])
	}
	return &truth{
		story:   &Story{Injections: []Injection{{Parameter: engine.ParamBandwidth}, {Parameter: engine.ParamBlocks}}},
		runs:    []*world{{cfg: engine.Config{Engines: 2}}},
		without: map[string]int{"slow_steps": 2, "kv_pressure": 3},
		nominal: nominal, join: &join{runs: 4, minutes: []minute{m}},
	}
}

func TestTheCausesAreThoseOfTheWorstEngine(t *testing.T) {
	line := Line{}
	byHand(
		[4]sum{slow(300, 0.6), slow(300, 0.2), slow(300, 0.2), slow(300, 0.6)},
		[4]sum{slow(100, 1.2), slow(100, 0.2), slow(100, 1.2), slow(100, 0.2)},
	).fill(&line, 100, &Usual{})
	assert.Equal(t, 400, line.Requests)
	assert.InDelta(t, 10, line.Effect, 1e-9)
	assert.Equal(t, map[string]float64{"kv_pressure": 1}, line.TrueCauses)
}

// An engine that stands still gets no requests, so nothing is known of it.
func TestAMinuteIsOpenWhereAnEngineHasFewRequests(t *testing.T) {
	for requests, open := range map[float64]bool{0: true, 19: true, 20: false} {
		line := Line{}
		all, few := slow(300, 0.2), slow(requests, 0.2)
		byHand([4]sum{all, all, all, all}, [4]sum{few, few, few, few}).fill(&line, 100, &Usual{})
		assert.False(t, line.Harmful)
		assert.Equal(t, open, line.open, "%v requests", requests)
	}
}

func TestClientsThatLeaveAndAddedEnginesAreNoHarm(t *testing.T) {
	moments := []Injection{{Parameter: engine.ParamScaleUp, Value: 1, At: 60}}
	for at := 120.0; at < 180; at += 15 {
		moments = append(moments, Injection{Parameter: engine.ParamClientsLeave, Value: 0.7, At: at})
	}
	// The second story has changes between them, of which none matters.
	for _, other := range [][]Injection{nil, {{Parameter: engine.ParamErrorRate, Value: 1e-9, At: 100, Until: 130}}} {
		played, err := Play(t.Context(), &Story{
			Name: "leave", Servers: []engine.Config{chatServer(2, 4)}, Length: 5 * time.Minute, Injections: append(other, moments...),
		})
		require.NoError(t, err)
		for i := range played.Lines {
			assert.Zero(t, played.Lines[i].Effect, "%+v", played.Lines[i])
		}
	}
}

// A process that starts again does not stand still as the one before did.
func TestARestartEndsAStall(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "restarted", Servers: []engine.Config{chatServer(2, 5)}, Length: 9 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamStall, Value: 1, At: 200, Until: 500}},
		Faults:     []Fault{{Kind: Restart, At: 270, Until: 300}},
	})
	require.NoError(t, err)
	for i := range played.Lines {
		assert.Equal(t, i == 3 || i == 4, played.Lines[i].Harmful, "minute %d: %+v", i, played.Lines[i])
	}
}
