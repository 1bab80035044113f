package vllmprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// heard sends the batches of a story and returns what was derived from each.
func (r *rig) heard(text string) (all []map[string]float64) {
	r.t.Helper()
	for _, call := range readStory(r.t, text).calls {
		r.processor.now = func() time.Time { return call.at }
		_, err := r.processor.process(r.t.Context(), call.input)
		require.NoError(r.t, err)
		all = append(all, points(r.t, takeAdded(call.input)))
	}
	return all
}

// Server a leaves, and there is room for a counter of server b that has counted
// for long.
func TestACounterThatTheLimitKeptOutIsNotTakenForNew(t *testing.T) {
	r := newRig(t, "max_series: 2")
	b := "server b\ncounter vllm.num_preemptions{0} 0\ncounter vllm.generation_tokens{0} "
	const rate = "vllm.generation_throughput{engine=0,model_name=m}"
	r.heard("at 0\nserver a\ncounter vllm.num_preemptions{0} 0\n" + b + "999940\n" +
		"at 240\n" + b + "999940\nat 300\n" + b + "999940\n")
	heard := r.heard("at 360\n" + b + "1000000\nat 420\n" + b + "1000060\n")
	assert.NotContains(t, heard[0], "b 360s "+rate)
	assert.InDelta(t, 1, heard[1]["b 420s "+rate], 1e-9)
}

// The first body is read while it changes: the last bucket is less than none.
func TestAHistogramWhoseFirstPointIsBadIsNotTakenForNew(t *testing.T) {
	r := newRig(t, "")
	torn := readStory(t, "at 0\ngauge vllm.num_requests.running{0} 1\n"+
		"histogram vllm.time_to_first_token{0} 0.1:1000 inf:0 sum:100\n").calls[0].input
	counts := torn.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(1).Histogram().DataPoints().At(0).BucketCounts()
	counts.SetAt(1, math.MaxUint64)
	r.processor.now = func() time.Time { return storyBegin }
	_, err := r.processor.process(t.Context(), torn)
	require.NoError(t, err)
	heard := r.heard(`
		at 15
		gauge vllm.num_requests.running{0} 1
		histogram vllm.time_to_first_token{0} 0.1:1003 inf:0 sum:100
		at 75
		gauge vllm.num_requests.running{0} 1
		histogram vllm.time_to_first_token{0} 0.1:1006 inf:0 sum:101`)
	const rate = "vllm.first_token_rate{engine=0,model_name=m}"
	assert.NotContains(t, heard[0], "vllm-0:8000 15s "+rate)
	assert.InDelta(t, 3.0/60, heard[1]["vllm-0:8000 75s "+rate], 1e-9)
}

func TestACounterWhoseFirstPointIsNoNumberIsNotTakenForNew(t *testing.T) {
	r := newRig(t, "")
	first := readStory(t, "at 0\ngauge vllm.num_requests.running{0} 1\ncounter vllm.generation_tokens{0} 0\n").calls[0].input
	first.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(1).Sum().DataPoints().At(0).SetDoubleValue(math.NaN())
	r.processor.now = func() time.Time { return storyBegin }
	_, err := r.processor.process(t.Context(), first)
	require.NoError(t, err)
	heard := r.heard("at 15\ncounter vllm.generation_tokens{0} 1000\nat 75\ncounter vllm.generation_tokens{0} 1120\n")
	const rate = "vllm.generation_throughput{engine=0,model_name=m}"
	assert.NotContains(t, heard[0], "vllm-0:8000 15s "+rate)
	assert.InDelta(t, 2, heard[1]["vllm-0:8000 75s "+rate], 1e-9)
}
