package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

const firstTokens = "vllm.time_to_first_token"

// A deployment adds its attributes to all points of an engine. An attribute of requests is not on
// all that shows the state of the engine.
func TestAnAttributeOfRequestsDoesNotDivideAnEngine(t *testing.T) {
	for _, name := range []string{"operation", "priority", "tier"} {
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

// Without the state of an engine, as in a part of a request, an unknown attribute may be one of a deployment.
func TestWithoutTheStateOnlyKnownAttributesAreOfRequests(t *testing.T) {
	in := newInput()
	in.counter("vllm.generation_tokens", 5, "tier", "a", "operation", "chat")
	in.counter("vllm.generation_tokens", 6, "tier", "a", "operation", "embeddings")
	in.counter("vllm.generation_tokens", 7, "tier", "b", "operation", "chat")
	assert.Equal(t, []string{"100 vllm.generation_tokens{tier=a} 11", "100 vllm.generation_tokens{tier=b} 7"}, sorted(in.read(t)))
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
