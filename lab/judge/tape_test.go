package judge

import (
	"bytes"
	"encoding/gob"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// taped is a story with all that a tape has: two servers, a pool, objectives, a fault that is
// sought, failed and missing scrapes.
func taped() *Story {
	return &Story{
		Name: "taped", Servers: []engine.Config{chatServer(9, 6), chatServer(10, 6)}, Length: 14 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 5, At: 420, Until: 700, Servers: []int{1}}},
		Faults:     []Fault{{Kind: Missed, At: 95, Until: 140}, {Kind: Unreachable, At: 740, Until: 800}},
		Processor: map[string]any{
			"pool": map[string]any{}, "window": "1m",
			"objectives": []any{map[string]any{"name": "o", "metric": "vllm.time_to_first_token", "threshold": "300ms", "target": 0.9}},
		},
	}
}

// A tape gives what the story gave, line by line.
func TestATapeGivesWhatTheStoryGave(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	var tape bytes.Buffer
	recorded, err := PlayTaped(t.Context(), taped(), &tape)
	require.NoError(t, err)
	plain, err := Play(t.Context(), taped())
	require.NoError(t, err)
	assert.Equal(t, plain.Lines, recorded.Lines, "a tape changes nothing")
	assert.Equal(t, plain.Alarms, recorded.Alarms)
	harmful, reported := 0, 0
	for i := range recorded.Lines {
		if recorded.Lines[i].Harmful {
			harmful++
		}
		if recorded.Lines[i].Severity >= warning {
			reported++
		}
	}
	require.Positive(t, harmful)
	require.Positive(t, reported)
	whole := tape.Bytes()
	got, err := Replay(t.Context(), bytes.NewReader(whole), nil)
	require.NoError(t, err)
	assert.Equal(t, recorded, got)
	for _, length := range []int{0, 3, len(whole) / 2, len(whole) - 20} {
		_, err := Replay(t.Context(), bytes.NewReader(whole[:length]), nil)
		require.ErrorContains(t, err, "the tape", length)
	}
	t.Logf("%d bytes for %d minutes of 2 servers", len(whole), len(recorded.Lines)/2)
}

// What is true of a minute is kept whole, also what stories of tests seldom have: requests
// that never ended.
func TestATapeKeepsWhatIsTrueOfAMinute(t *testing.T) {
	t.Parallel()
	was := &Played{Window: time.Minute, Lines: []Line{{
		Requests: 30, Harmful: true, Effect: 2.5, TrueCauses: map[string]float64{"stalled": 1}, Also: []string{"decode_load"},
		Unended: 0.84, open: true, Missed: true,
	}}}
	var written bytes.Buffer
	to := tape{to: gob.NewEncoder(&written)}
	require.NoError(t, to.end(was))
	var event tapeEvent
	require.NoError(t, gob.NewDecoder(&written).Decode(&event))
	is := &Played{Window: time.Minute, Lines: make([]Line, 1)}
	require.NoError(t, is.fill(event.Truth))
	assert.Equal(t, was, is)
}
