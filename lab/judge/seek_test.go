package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The harm of what was found is that which was wanted: here it is measured by another way,
// from the lines of a story that has the value. Each line has its own effect, which is a
// maximum, so that their mean is above that of all requests together, but not by far.
func TestTheValueThatIsFoundHasTheEffect(t *testing.T) {
	race.SkipSequential(t)
	const at, until = 2 * 60, 10 * 60
	for _, c := range []struct {
		parameter engine.Parameter
		wanted    float64
	}{
		{engine.ParamBandwidth, 2},
		{engine.ParamHostDelay, 5},
		{engine.ParamFrontEnd, 1.3},
		{engine.ParamOutputLength, 3},
		{engine.ParamCorruption, 5},
	} {
		t.Run(c.parameter.String(), func(t *testing.T) {
			t.Parallel()
			story := &Story{
				Name: "sought", Servers: []engine.Config{chatServer(9, 6)}, Length: 12 * time.Minute,
				Injections: []Injection{{Parameter: c.parameter, Effect: c.wanted, At: at, Until: until}},
			}
			played, err := Play(t.Context(), story)
			require.NoError(t, err)
			require.Len(t, played.Sought, 1)
			found := played.Sought[0]
			assert.Equal(t, c.parameter.String(), found.Parameter)
			assert.InEpsilon(t, c.wanted, found.Got, 0.15)
			assert.Empty(t, played.Notes)
			story.Injections = []Injection{{Parameter: c.parameter, Value: found.Value, At: at, Until: until}}
			given, err := Play(t.Context(), story)
			require.NoError(t, err)
			assert.Equal(t, played.Lines, given.Lines, "as if the value had been given")
			mean := 0.0
			for _, line := range given.Lines[at/60 : until/60] {
				mean += line.Effect / float64((until-at)/60)
			}
			assert.InEpsilon(t, c.wanted, mean, 0.35)
		})
	}
}

// With a ramp, the value is that of its end, and what counts is after it.
func TestTheEffectOfARampIsThatOfItsEnd(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "ramp", Servers: []engine.Config{chatServer(9, 6)}, Length: 20 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 3, At: 120, Over: 480, Until: 1000}},
	})
	require.NoError(t, err)
	step, err := Play(t.Context(), &Story{
		Name: "step", Servers: []engine.Config{chatServer(9, 6)}, Length: 20 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 3, At: 600, Until: 1000}},
	})
	require.NoError(t, err)
	assert.InEpsilon(t, step.Sought[0].Value, played.Sought[0].Value, 0.1)
	assert.Less(t, played.Lines[3].Effect, 0.5*played.Lines[14].Effect)
	assert.Zero(t, played.Lines[1].Effect)
}

func TestAnEffectThatCannotBeReachedIsSaid(t *testing.T) {
	story := &Story{
		Name: "none", Servers: []engine.Config{chatServer(9, 3)}, Length: 6 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamErrorRate, Effect: 100, At: 60, Until: 240}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, played.Notes, 1)
	assert.Contains(t, played.Notes[0], "no value of error_rate was found whose harm is 100 times the bar; the nearest is 1, whose harm is 20 times the bar")
	assert.InDelta(t, 1, played.Sought[0].Value, 0)
	assert.InDelta(t, 20, played.Sought[0].Got, 1e-9, "all answers are lost, and the bar is one of twenty")

	story.Injections[0] = Injection{Parameter: engine.ParamStall, Effect: 2, At: 60, Until: 240}
	_, err = Play(t.Context(), story)
	assert.EqualError(t, err, "injection of stall at 60 s: no value of it does more or less harm; give its value")
}

// A server whose objectives allow everything is never harmed by traffic: the search ends at
// twenty times as much, and says what it found.
func TestTheSearchForMoreTrafficIsBounded(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	played, err := Play(t.Context(), &Story{
		Name: "bounded", Servers: []engine.Config{chatServer(9, 1)}, Length: 4 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamArrivalRate, Effect: 10, At: 60, Until: 120}},
		Processor: map[string]any{"objectives": []any{
			map[string]any{"name": "first", "metric": "vllm.time_to_first_token", "threshold": "40m", "target": 0.9},
			map[string]any{"name": "gap", "metric": "vllm.inter_token_latency", "threshold": "10s", "target": 0.9},
		}},
	})
	require.NoError(t, err)
	require.Len(t, played.Sought, 1)
	assert.LessOrEqual(t, played.Sought[0].Value, 20.0)
	assert.Len(t, played.Notes, 1)
}

// Two files with equal settings have different traffic, at what may be the same address.
func TestASearchIsKnownByItsTraffic(t *testing.T) {
	cfg := chatServer(1, 1)
	traffic := engine.Traffic{Arrivals: []engine.Arrival{{At: 1, Prompt: 100, Output: 10}}, Span: 60}
	cfg.Workload.Traffic = &traffic
	s := &Story{Servers: []engine.Config{cfg}, Injections: []Injection{{Parameter: engine.ParamClock, Effect: 2}}}
	name := searchName(s, 0, &s.Injections[0], nil)
	elsewhere := traffic
	s.Servers[0].Workload.Traffic = &elsewhere
	assert.Equal(t, name, searchName(s, 0, &s.Injections[0], nil))
	elsewhere.Arrivals = []engine.Arrival{{At: 1, Prompt: 100, Output: 11}}
	assert.NotEqual(t, name, searchName(s, 0, &s.Injections[0], nil))
	elsewhere = traffic
	elsewhere.Conversations = []engine.Conversation{{Turns: []engine.Turn{{Prompt: 1, Output: 1}}}}
	assert.NotEqual(t, name, searchName(s, 0, &s.Injections[0], nil))
	assert.Same(t, &elsewhere, s.Servers[0].Workload.Traffic, "the story is as it was")
}

// One digit too many in a rate is an error and does not fill the memory. In a search it only
// means that the value is too great.
func TestTooManyRequestsAreAnError(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	story := &Story{Servers: []engine.Config{chatServer(1, 1e5)}, Length: 10 * time.Minute}
	_, err := Play(t.Context(), story)
	assert.EqualError(t, err, "5 s after the beginning more than 500000 requests are under way: more arrive than the server serves; "+
		"lower the rate, the speed, the number of clients or arrival_rate, or shorten the story")

	story.Servers[0] = chatServer(1, 5)
	f := newSearch(story, 0, &Injection{Parameter: engine.ParamArrivalRate, At: 120, Until: 240}, nil)
	require.NoError(t, f.learn(t.Context()))
	assert.InDelta(t, 5*120, len(f.usual.all), 100, "only requests that can count are kept")
	got, err := f.try(t.Context(), 1e4)
	require.NoError(t, err)
	assert.True(t, math.IsInf(got, 1))
}

// The mean of a few requests is no measure of harm.
func TestTooFewRequestsAreNotSearched(t *testing.T) {
	story := &Story{
		Servers: []engine.Config{chatServer(9, 0.05)}, Length: 6 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 2, At: 60, Until: 240}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, played.Notes, 1)
	assert.Regexp(t, `^the value of bandwidth was not sought: \d+ requests arrive while it is in force, and 20 are needed; 0.802519 was taken$`, played.Notes[0])
}

// What arrives after the end of a story does not count, so that too much of it is no error.
func TestTooManyRequestsAfterTheEndAreNoError(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	ended := 0
	w, err := newWorld(chatServer(1, 1e5), nil, nil, func(*seen) { ended++ })
	require.NoError(t, err)
	require.NoError(t, w.advance(4))
	require.NoError(t, finish(t.Context(), []*world{w}, 4, w.advance))
	require.Error(t, w.advance(100))
	w.close()
	assert.Greater(t, ended, mostUnderway, "also requests that have not ended are counted")
}
