package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The usual is a first token after 1 s and a further one every 100 ms, so the bar is 0.3 s and 30 ms beyond.
func TestAMinuteIsSlowBeyondTheBarAgainstTheUsual(t *testing.T) {
	usual := &Usual{First: 1, Token: 0.1}
	for name, c := range map[string]struct {
		of   sum
		want bool
	}{
		"as usual":          {sum{requests: 10, firstToken: 12.9, tokens: 100, decoding: 12.9}, false},
		"late first tokens": {sum{requests: 10, firstToken: 13.1, tokens: 100, decoding: 10}, true},
		"slow tokens":       {sum{requests: 10, firstToken: 10, tokens: 100, decoding: 13.1}, true},
		"too few requests":  {sum{requests: 2, firstToken: 90}, false},
		"a missed promise":  {sum{requests: 10, firstToken: 10, tokens: 100, decoding: 10, over: []float64{2}, of: []float64{10}}, true},
		"a kept promise":    {sum{requests: 10, firstToken: 10, tokens: 100, decoding: 10, over: []float64{1}, of: []float64{10}}, false},
	} {
		one := &truth{}
		if c.of.of != nil {
			one.objectives = []objective{{firstToken, 2, 0.9}}
		}
		assert.Equal(t, c.want, one.slow(&c.of, usual), name)
	}
}

// A queue that only drains is harm as long as it makes an objective be missed, and none without one.
func TestAQueueThatDrainsIsHarmWhereAnObjectiveIsMissed(t *testing.T) {
	of := []objective{{firstToken, 2, 0.9}}
	waits, alone := *answered(of, 30, 9, 0.02, 0), *answered(of, 30, 0.5, 0.02, 0)
	g := sums{in: []sum{waits, waits}, alone: alone}
	for _, c := range []struct {
		objectives []objective
		queued     bool
		want       bool
	}{{of, true, true}, {of, false, false}, {nil, true, false}} {
		one := &truth{objectives: c.objectives, nominal: nominal}
		assert.Equal(t, c.want, one.judge(&g, false, c.queued).effect() > 1, c)
	}
	q := queues{of: []queue{{window: 60}}, window: 60}
	for at := 1.0; at <= 400; at++ {
		q.sample(at, []int{max(0, 300-int(at))})
	}
	assert.True(t, q.busy(0, 60, 120), "it is never empty")
	assert.False(t, q.busy(0, 240, 301), "it is empty from 300 s on")
	assert.False(t, q.busy(1, 60, 120), "there is no such engine")
}

// Longer requests that queue are more work than is served; without a queue they are not. Too much traffic has the name
// of the work that is longer than usual as well.
func TestDemandByLongerRequestsHasBothNames(t *testing.T) {
	usual := &Usual{computed: 100, tokens: 50}
	run := func(first, queued, computed, tokens float64) *sum {
		return &sum{requests: 10, firstToken: 10 * first, queued: 10 * queued, computed: 10 * computed, tokens: 10 * tokens}
	}
	longer := &truth{story: &Story{Injections: []Injection{{Parameter: engine.ParamPromptLength}}}}
	line := &Line{TrueCauses: map[string]float64{"prefill_heavy": 1}}
	assert.Equal(t, []string{demand}, longer.also(line, run(5, 3, 150, 50), run(1, 0, 100, 50), 50, usual))
	assert.Empty(t, longer.also(line, run(5, 1, 150, 50), run(1, 0, 100, 50), 50, usual), "most of it is no queue")
	much := &truth{story: &Story{}}
	line = &Line{TrueCauses: map[string]float64{demand: 1}}
	assert.Equal(t, []string{"prefill_heavy"}, much.also(line, run(5, 4, 131, 50), run(5, 4, 131, 50), 50, usual))
	assert.Equal(t, []string{"decode_load"}, much.also(line, run(5, 4, 129, 66), run(5, 4, 129, 66), 50, usual))
}
