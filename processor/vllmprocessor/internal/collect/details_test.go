package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

const firstTokens = "vllm.time_to_first_token"

func TestAnAttributeOfRequestsDoesNotDivideAnEngine(t *testing.T) {
	for _, name := range []string{"operation", "priority"} {
		eachOrder(t, func(in *request) {
			assert.Equal(t, []string{
				"100 vllm.kv_cache.utilization{engine=0,pod=a} 0.5", "100 vllm.num_requests.running{engine=0,pod=a} 7",
				"100 vllm.request.success{engine=0,pod=a}[stop] 11",
			}, sorted(in.read(t)), name)
		},
			func(in *request) { in.gauge("vllm.kv_cache.utilization", 0.5, "engine", "0", "pod", "a") },
			func(in *request) {
				in.gauge("vllm.num_requests.running", 3, "engine", "0", "pod", "a", name, "x")
				in.gauge("vllm.num_requests.running", 4, "engine", "0", "pod", "a", name, "y")
			},
			func(in *request) {
				in.counter("vllm.request.success", 5, "engine", "0", "pod", "a", "finished_reason", "stop", name, "x")
				in.counter("vllm.request.success", 6, "engine", "0", "pod", "a", "finished_reason", "stop", name, "y")
			},
		)
	}
}

// A pod may have a label with such a name, and relabelling adds it to all points.
func TestADeploymentWithTheNameOfAnAttributeOfRequestsHasWholeEngines(t *testing.T) {
	for _, name := range []string{"operation", "priority"} {
		in := newInput()
		in.gauge("vllm:kv_cache_usage_perc", 0.5, "engine", "0", name, "x")
		in.gauge("vllm:num_requests_running", 3, "engine", "0", name, "x")
		in.gauge("vllm:engine_sleep_state", 1, "engine", "0", "sleep_state", "awake", name, "x")
		in.counter("vllm:generation_tokens_total", 5, "engine", "0", name, "x")
		in.histogram("vllm:time_to_first_token_seconds", []float64{1}, []uint64{2, 0}, "engine", "0", name, "x")
		batches, report := Read(in.metrics)
		assert.Zero(t, report)
		assert.Len(t, batches[0].Samples, 5)
		assert.Len(t, batches[0].Groups, 1)
		assert.False(t, batches[0].Evidence.Signs.Has(input.LateFirstTokens), "it is not vLLM's label")
	}
}

// A batch processor may split a resource, and relabelling may add an attribute to some metrics only.
func TestWhatElseIsInARequestDoesNotChangeAnEngine(t *testing.T) {
	tokens := func(in *request) { in.counter("vllm:generation_tokens_total", 5, "engine", "0", "tier", "a") }
	part, whole := newInput(), newInput()
	tokens(part)
	tokens(whole)
	whole.gauge("vllm:num_requests_running", 3, "engine", "0")
	assert.Contains(t, whole.read(t), part.read(t)[0])
}

func TestAnAttributeOfADeploymentKeepsEnginesApart(t *testing.T) {
	in := newInput()
	for _, tenant := range []string{"a", "b"} {
		in.counter("vllm:generation_tokens_total", 5, "engine", "0", "tenant", tenant)
		in.gauge("vllm:num_requests_running", 3, "engine", "0", "tenant", tenant)
	}
	assert.Equal(t, []string{
		"100 vllm.generation_tokens{engine=0,tenant=a} 5", "100 vllm.generation_tokens{engine=0,tenant=b} 5",
		"100 vllm.num_requests.running{engine=0,tenant=a} 3", "100 vllm.num_requests.running{engine=0,tenant=b} 3",
	}, sorted(in.read(t)))
}

// A part that begins later must not look like a restart of the sum.
func TestTheSumOfRequestsBeganWithItsOldestPart(t *testing.T) {
	in := newInput()
	in.histogram(firstTokens, []float64{1, 2}, []uint64{1, 0, 2}, "operation", "chat").SetStartTimestamp(pcommon.Timestamp(10))
	in.histogram(firstTokens, []float64{1, 2}, []uint64{0, 3, 1}, "operation", "embeddings").SetStartTimestamp(pcommon.Timestamp(90))
	batches, report := Read(in.metrics)
	assert.Equal(t, Report{}, report)
	assert.Len(t, batches[0].Samples, 1)
	s := batches[0].Samples[0]
	assert.Equal(t, []float64{1, 3, 3}, s.Counts)
	assert.InDelta(t, 7, s.Count, 0)
	assert.Equal(t, int64(10), s.Start)
}

// A sum without one of its parts is less than before, which looks like a restart.
func TestASumThatLacksAPartIsNotUsed(t *testing.T) {
	bad := func(in *request) {
		in.histogram(firstTokens, []float64{2, 1}, []uint64{1, 0, 2}, "operation", "chat")
	}
	good := func(in *request) {
		in.histogram(firstTokens, []float64{1, 2}, []uint64{1, 0, 2}, "operation", "embeddings")
	}
	other := func(in *request) {
		in.histogram(firstTokens, []float64{1, 3}, []uint64{1, 0, 2}, "operation", "unknown")
	}
	for _, parts := range [][]func(*request){{bad, good}, {good, other}} {
		eachOrder(t, func(in *request) {
			batches, report := Read(in.metrics)
			assert.Equal(t, count(BadHistogram, 1), report)
			assert.Empty(t, batches[0].Samples)
			assert.Len(t, batches[0].Unread, 1)
		}, parts...)
	}
}
