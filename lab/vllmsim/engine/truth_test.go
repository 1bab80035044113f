package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// byID runs a server for ten minutes and returns its complete answers.
func byID(t *testing.T, cfg Config) map[int]Outcome {
	t.Helper()
	s := start(t, cfg)
	s.AdvanceTo(600)
	out := map[int]Outcome{}
	for _, o := range s.Outcomes() {
		if o.End == EndStop || o.End == EndLength {
			out[o.ID] = o
		}
	}
	return out
}

// The harm of a cause is the difference between two runs, request by request.
func TestHarmIsMeasuredRequestByRequest(t *testing.T) {
	base := bare(Chat(6), func(c *Config) { c.FrontEnd = DefaultFrontEnd() })
	slow := base
	slow.Changes = []Change{{At: 300, Parameter: ParamBandwidth, Value: 0.4}}
	healthy, actual := byID(t, base), byID(t, slow)
	require.Greater(t, len(healthy), 3000)
	before, slower, after := 0, 0, 0
	for id, o := range actual {
		other, both := healthy[id]
		if !both || o.Output < 2 {
			continue
		}
		assert.InDelta(t, other.Arrived, o.Arrived, 0)
		assert.Equal(t, other.Prompt, o.Prompt)
		assert.Equal(t, other.Output, o.Output)
		switch {
		case o.Ended < 300:
			before++
			require.Equal(t, other, o, "nothing differs before the cause")
		case o.Arrived > 310:
			after++
			if o.MeanGap > 1.3*other.MeanGap {
				slower++
			}
		}
	}
	assert.Greater(t, before, 1000)
	assert.Greater(t, float64(slower)/float64(after), 0.9)
}

// A server with more requests than it may have stops, however long it was to work.
func TestAnOverfullServerStops(t *testing.T) {
	cfg := Config{
		Seed: 1, Model: Llama8B(), FrontEnd: DefaultFrontEnd(), Workload: Chat(1000), KeepOutcomes: true, MostUnderway: 500,
	}
	s, err := New(cfg)
	require.NoError(t, err)
	s.AdvanceTo(3600)
	assert.True(t, s.Overfull())
	assert.Len(t, s.Unfinished(), 501)
	assert.Less(t, s.Now(), 2.0, "the moment at which it stopped")
}
