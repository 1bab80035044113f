package emit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func tokens(engine string, value float64) sample {
	return number(engine, input.PromptTokens, "", value)
}

func generated(engine string, value float64) sample {
	return number(engine, input.GenerationTokens, "", value)
}

const (
	prompts     = "vllm.prompt_throughput"
	generations = "vllm.generation_throughput"
)

func TestAValueThatFallsCountsFromZeroAgain(t *testing.T) {
	s := newServer(t, prompts)
	assert.Empty(t, s.at(0, tokens("0", 1000)), "the first batch is only what the next is compared with")
	assert.Equal(t, points{"prompt_throughput{engine=0}": 30}, s.at(10, tokens("0", 1300)))
	// 300 before, 200 since.
	assert.Equal(t, points{"prompt_throughput{engine=0}": 25}, s.at(20, tokens("0", 200)))
	assert.Equal(t, 1, s.report.Resets)
	assert.Equal(t, points{"prompt_throughput{engine=0}": 20}, s.at(30, tokens("0", 300)))
}

func TestOneSeriesThatFallsRestartsAllOfItsEngine(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 1000), generated("0", 10), tokens("1", 5), generated("1", 5))
	got := s.at(10, tokens("0", 100), generated("0", 50), tokens("1", 15), generated("1", 25))
	assert.Equal(t, points{
		"prompt_throughput{engine=0}": 10, "generation_throughput{engine=0}": 5, // not 4
		"prompt_throughput{engine=1}": 1, "generation_throughput{engine=1}": 2,
	}, got)
}

func TestAStartThatMovedIsARestart(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 100).since(-500))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 20}, s.at(10, tokens("0", 200).since(3)))
	assert.Equal(t, 1, s.report.Resets)
	assert.Equal(t, points{"prompt_throughput{engine=0}": 15}, s.at(20, tokens("0", 300).since(3)))
	assert.Zero(t, s.report.Resets)
}

func TestAStartAtThePointsOwnTimeProvesNoRestart(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 100).since(-500))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 10}, s.at(10, tokens("0", 200).since(10)))
	assert.Zero(t, s.report.Resets)
}

func TestARestartWithOtherBoundsKeepsTheCommonOnes(t *testing.T) {
	s := newServer(t, "vllm.e2e_request_latency_mean", "vllm.e2e_request_latency_quantile")
	s.at(0, distribution("0", input.E2ERequestLatency, 0, []float64{1, 2, 4}, 0, 0, 0, 0))
	s.at(10, distribution("0", input.E2ERequestLatency, 4, []float64{1, 2, 4}, 4, 0, 0, 0))
	got := s.at(20, distribution("0", input.E2ERequestLatency, 36, []float64{2, 3, 4}, 0, 6, 6, 0))
	// Common bounds are 2 and 4: 4 in the first bucket, 12 in the next.
	assert.Equal(t, points{
		"e2e_request_latency_mean{engine=0}":                  2.5,
		"e2e_request_latency_quantile{engine=0,quantile=0.5}": 2 + 2*4.0/12,
	}, got)
}

func TestWhenAllEnginesRestartTheFrontEndHasToo(t *testing.T) {
	http := func(ok, bad float64) []sample {
		return []sample{
			number("", input.HTTPRequests, "2xx\x00/v1/completions\x00POST", ok),
			number("", input.HTTPRequests, "5xx\x00/v1/completions\x00POST", bad),
		}
	}
	s := newServer(t, "vllm.http.error_ratio")
	s.at(0, append(http(10, 0), tokens("0", 100), tokens("1", 100))...)
	// Its counters have grown past what they were before they are read again.
	got := s.at(10, append(http(30, 10), tokens("0", 5), tokens("1", 5))...)
	assert.Equal(t, points{"http.error_ratio{status_class=4xx}": 0, "http.error_ratio{status_class=5xx}": 0.25}, got)
	assert.Equal(t, 3, s.report.Resets)
	got = s.at(20, append(http(40, 10), tokens("0", 1), tokens("1", 15))...)
	assert.Equal(t, 1, s.report.Resets, "one of two engines says nothing about the front end")
	assert.InDelta(t, 0.2, got["http.error_ratio{status_class=5xx}"], 1e-12)
}

func TestAnEngineThatWasAwayWhileAllRestartedDoesNotRestartTheFrontEndAgain(t *testing.T) {
	http := func(ok, bad float64) []sample {
		return []sample{
			number("", input.HTTPRequests, "2xx\x00/v1/completions\x00POST", ok),
			number("", input.HTTPRequests, "5xx\x00/v1/completions\x00POST", bad),
		}
	}
	s := newServer(t, "vllm.http.error_ratio")
	s.at(0, append(http(10, 0), tokens("0", 100))...)
	s.at(10, http(1, 1)...)
	assert.Equal(t, 1, s.report.Resets)
	got := s.at(20, append(http(2, 2), tokens("0", 50))...)
	assert.Equal(t, 1, s.report.Resets)
	assert.InDelta(t, 0.5, got["http.error_ratio{status_class=5xx}"], 1e-12)
}

func TestARestartThatShowsInTheSecondPartHoldsForTheFirst(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 100), generated("0", 1000))
	s.at(10, tokens("0", 150))
	s.at(10, generated("0", 20))
	got := s.at(20, tokens("0", 250), generated("0", 40))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 12.5, "generation_throughput{engine=0}": 2}, got)
}

func TestARestartThatNoNumberShowsMakesNoRatioAboveOne(t *testing.T) {
	s := newServer(t, cached)
	s.at(0, hits("0", 0), tokens("0", 50))
	assert.Empty(t, s.at(10, hits("0", 40), tokens("0", 60)))
	assert.Equal(t, 1, s.evaluator.Absent[derive.Contradiction])
}

func TestAServerThatRestartsWithNewBucketsEveryTimeIsBounded(t *testing.T) {
	s := newServer(t, "vllm.e2e_request_latency_mean")
	for i := range 200 {
		s.at(float64(10*i), distribution("0", input.E2ERequestLatency, 1, []float64{float64(i + 1)}, 1, 0))
	}
	assert.Equal(t, 1, s.resource.Series())
}
