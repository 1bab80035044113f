package emit_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

const wasted = "vllm.wasted_tokens_ratio"

func running(n float64) sample { return number("0", input.Running, "", n) }

func TestFiveAbortedRequestsAbandonAllTheirPromptTokens(t *testing.T) {
	s := newServer(t, wasted)
	for seconds := 0.0; seconds < 300; seconds += 15 {
		assert.Empty(t, s.at(seconds, tokens("0", 0), running(0)), "it takes five minutes")
	}
	got := s.at(300, tokens("0", 3010), running(0))
	assert.Equal(t, points{
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=lower}": 1,
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=upper}": 1,
	}, got, "3010 tokens of 3010, to the token")
	// A request of 990 tokens finishes: still exactly 3010 of 4000.
	done := distribution("0", input.RequestPromptTokens, 990, []float64{500, 1000}, 0, 1, 0)
	got = s.at(315, tokens("0", 4000), running(0), done)
	assert.Equal(t, points{
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=lower}": 3010.0 / 4000,
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=upper}": 3010.0 / 4000,
	}, got)
	// Two requests run: they may hold up to 1000 tokens each.
	got = s.at(330, tokens("0", 6000), running(2), done)
	assert.Equal(t, points{
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=lower}": 3010.0 / 6000,
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=upper}": 5010.0 / 6000,
	}, got)
}

// vLLM's bounds end below the longest prompt that it takes: the open bucket ends
// before the next number of the series 1, 2, 5.
func TestAPromptBeyondTheLastBoundIsShorterThanTheNextBound(t *testing.T) {
	for _, c := range []struct{ last, upper float64 }{{5000, 10000}, {2000, 5000}, {1000, 2000}, {7000, 0}} {
		s := newServer(t, wasted)
		done := distribution("0", input.RequestPromptTokens, 8000, []float64{10, c.last}, 0, 0, 1)
		for seconds := 0.0; seconds < 300; seconds += 15 {
			s.at(seconds, tokens("0", 8000), running(1), done)
		}
		got := s.at(300, tokens("0", 8000+20000), running(1), done)
		if c.upper == 0 {
			assert.Empty(t, got, "%g is not a bound of vLLM", c.last)
			continue
		}
		assert.Equal(t, points{
			"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=lower}": (20000 - c.upper) / 20000,
			"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=upper}": 1,
		}, got)
	}
}

// Other bounds are a restart. While it lies in the long window, what ended between the last
// scrape and the restart is not known; after that, the new bounds are used.
func TestAbandonedPrefillAfterOtherBoundsStillKnowsWhatFinished(t *testing.T) {
	s := newServer(t, wasted)
	done := func(n float64, bounds ...float64) sample {
		counts := make([]float64, len(bounds)+1)
		counts[0] = n
		return distribution("0", input.RequestPromptTokens, 100*n, bounds, counts...)
	}
	for seconds := 0.0; seconds < 300; seconds += 15 {
		s.at(seconds, tokens("0", 0), running(0), done(0, 200, 500))
	}
	s.at(300, tokens("0", 1000), running(0), done(10, 200, 500))
	s.at(315, tokens("0", 100), running(0), done(1, 300, 700))
	for seconds := 330.0; seconds < 615; seconds += 15 {
		assert.Empty(t, s.at(seconds, tokens("0", 100), running(0), done(1, 300, 700)))
	}
	s.at(615, tokens("0", 100), running(0), done(1, 300, 700))
	assert.Equal(t, points{
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=lower}": 0,
		"wasted_tokens_ratio{engine=0,reason=abandoned_prefill,bound=upper}": 0,
	}, s.at(630, tokens("0", 200), running(0), done(2, 300, 700)))
}

func TestDraftsOfAllEnginesCreditedToOneAreWrittenForTheRollUpOnly(t *testing.T) {
	s := newServer(t, "vllm.spec_decode.acceptance_ratio", wasted)
	both := func(seconds, drafts, accepted, output float64) points {
		return s.at(seconds, generated("0", output), generated("1", output),
			number("0", input.Drafts, "", drafts/4), number("1", input.Drafts, "", 0),
			number("0", input.DraftTokens, "", drafts), number("1", input.DraftTokens, "", 0),
			number("0", input.AcceptedTokens, "", accepted), number("1", input.AcceptedTokens, "", 0))
	}
	both(0, 0, 0, 0)
	assert.Equal(t, points{
		"spec_decode.acceptance_ratio{}":              0.25,
		"wasted_tokens_ratio{reason=rejected_drafts}": 60.0 / 180,
	}, both(10, 80, 20, 50))
	// The credited engine alone in a part of the batch changes nothing.
	assert.Empty(t, s.at(20, generated("0", 100), number("0", input.Drafts, "", 40),
		number("0", input.DraftTokens, "", 160), number("0", input.AcceptedTokens, "", 40)))
}

func TestTimePerOutputTokenLeavesOutRequestsOfOneTokenExactly(t *testing.T) {
	s := newServer(t, "vllm.request.time_per_output_token_mean", "vllm.request.time_per_output_token_quantile")
	perToken := []float64{0.25, 0.5, 1}
	length := []float64{1, 10}
	s.at(0, distribution("0", input.TimePerOutputToken, 0, perToken, 0, 0, 0, 0),
		distribution("0", input.RequestGenerationTokens, 0, length, 0, 0, 0))
	got := s.at(10, distribution("0", input.TimePerOutputToken, 1.5, perToken, 6, 0, 2, 0),
		distribution("0", input.RequestGenerationTokens, 26, length, 6, 2, 0))
	assert.Equal(t, points{
		"request.time_per_output_token_mean{engine=0}":                  0.75,
		"request.time_per_output_token_quantile{engine=0,quantile=0.5}": 0.75,
	}, got)
	// Without the bound 1 their number is unknown.
	s = newServer(t, "vllm.request.time_per_output_token_mean", "vllm.request.time_per_output_token_quantile")
	s.at(0, distribution("0", input.TimePerOutputToken, 0, perToken, 0, 0, 0, 0),
		distribution("0", input.RequestGenerationTokens, 0, []float64{2}, 0, 0))
	assert.Empty(t, s.at(10, distribution("0", input.TimePerOutputToken, 1.5, perToken, 6, 0, 2, 0),
		distribution("0", input.RequestGenerationTokens, 26, []float64{2}, 6, 2)))
}

func TestUtilizationIsAbsentWhereTheServerDoesNotCountWork(t *testing.T) {
	s := newServer(t, "vllm.model_flops_utilization", "vllm.memory_bandwidth_utilization")
	s.settings.Peak = derive.Peak{FLOPS: 100, Bandwidth: 10}
	work := func(seconds, flops, output float64) points {
		return s.at(seconds, number("0", input.EstimatedFLOPs, "", flops), generated("0", output),
			number("0", input.EstimatedReadBytes, "", flops/20), number("0", input.EstimatedWriteBytes, "", flops/20))
	}
	assert.Empty(t, work(0, 0, 0))
	assert.Empty(t, work(5, 0, 0), "idle, and nothing was ever counted")
	assert.Empty(t, work(10, 0, 100), "they stand at 0 without the server's flag")
	assert.Equal(t, points{"model_flops_utilization{engine=0}": 0.25, "memory_bandwidth_utilization{engine=0}": 0.25}, work(20, 500, 200))
	for seconds := 30.0; seconds < 80; seconds += 10 {
		work(seconds, 500, 300)
	}
	assert.Equal(t, points{"model_flops_utilization{engine=0}": 0, "memory_bandwidth_utilization{engine=0}": 0}, work(90, 500, 300), "idle")
	assert.Equal(t, points{"model_flops_utilization{engine=0}": ended, "memory_bandwidth_utilization{engine=0}": ended},
		work(100, 500, 400), "it generates and counts no work")
}

func TestTheCapacityOfTheCacheIsTheServersElseTheConfigured(t *testing.T) {
	used := number("0", input.KVCacheUtilization, "", 0.25)
	blocks := []sample{number("0", input.KVCacheBlocks, "", 100), number("0", input.KVCacheBlockSize, "", 16), used}
	both := []string{"vllm.kv_cache.capacity", "vllm.kv_cache.free"}

	assert.Equal(t, points{"kv_cache.free{engine=0}": 750},
		newServer(t, both...).at(0, append(blocks, number("0", input.KVCacheCapacity, "", 1000))...), "the receiver's is passed on")
	assert.Equal(t, points{"kv_cache.capacity{engine=0}": 2000, "kv_cache.free{engine=0}": 1500},
		newServer(t, both...).at(0, append(blocks, number("0", input.CacheConfigTokens, "", 2000))...))
	assert.Empty(t, newServer(t, both...).at(0, blocks...), "blocks overstate hybrid models")
	s := newServer(t, both...)
	s.settings.CapacityFromBlocks = true
	assert.Equal(t, points{"kv_cache.capacity{engine=0}": 1600, "kv_cache.free{engine=0}": 1200}, s.at(0, blocks...))
}

func TestHTTPErrorsAreAmongTheRequestsForInference(t *testing.T) {
	s := newServer(t, "vllm.http.error_ratio")
	s.version = "0.26.0" // before, some 4xx are counted as 5xx
	count := func(n float64) (all []sample) {
		for _, handler := range []string{
			"/metrics", "/health", "/ping", "/load", "/version", "/server_info", "/v1/models", "/docs", "/openapi.json",
			"/tokenize", "/detokenize",
		} {
			all = append(all, number("", input.HTTPRequests, "5xx\x00"+handler+"\x00GET", 1000*n))
		}
		return append(all, number("", input.HTTPRequests, "2xx\x00/v1/chat/completions\x00POST", 6*n),
			number("", input.HTTPRequests, "404\x00/v1/completions\x00POST", n),
			number("", input.HTTPRequests, "5xx\x00/v1/completions\x00POST", n))
	}
	s.at(0, count(0)...)
	assert.Equal(t, points{"http.error_ratio{status_class=4xx}": 0.125, "http.error_ratio{status_class=5xx}": 0.125}, s.at(10, count(1)...))
}

func TestALabelThatOneEngineDoesNotShowIsZeroThere(t *testing.T) {
	s := newServer(t, "vllm.request.finished_ratio")
	success := func(engine, why string, n float64) sample { return number(engine, input.RequestSuccess, why, n) }
	s.at(0, success("0", "stop", 0), success("1", "stop", 0), success("1", "abort", 0))
	got := s.at(10, success("0", "stop", 10), success("1", "stop", 5), success("1", "abort", 5))
	assert.InDelta(t, 0.25, got["request.finished_ratio{finished_reason=abort}"], 1e-12)
}

func TestEnginesWithOtherBoundsMeetOnTheCommonOnes(t *testing.T) {
	s := newServer(t, "vllm.time_to_first_token_quantile")
	s.at(0, distribution("0", input.TimeToFirstToken, 0, []float64{1, 2, 8}, 0, 0, 0, 0),
		distribution("1", input.TimeToFirstToken, 0, []float64{2, 4, 8}, 0, 0, 0, 0))
	got := s.at(10, distribution("0", input.TimeToFirstToken, 9, []float64{1, 2, 8}, 1, 1, 2, 0),
		distribution("1", input.TimeToFirstToken, 9, []float64{2, 4, 8}, 0, 3, 1, 0))
	// 2 up to the common bound 2, 6 up to 8: the fourth of 8 lies a third beyond 2.
	assert.Equal(t, points{"time_to_first_token_quantile{quantile=0.5}": 4}, got)
	assert.False(t, math.IsNaN(got["time_to_first_token_quantile{quantile=0.5}"]))
}

func TestASumThatIsMissingForATimeLeavesOutTheMeanForThatTime(t *testing.T) {
	s := newServer(t, "vllm.time_to_first_token_mean")
	first := func(sum, n float64) sample {
		return distribution("0", input.TimeToFirstToken, sum, []float64{1}, n, 0)
	}
	s.at(0, first(0, 0))
	s.at(10, first(5, 10))
	without := first(math.NaN(), 20)
	without.HasSum = false
	assert.Equal(t, points{"time_to_first_token_mean{engine=0}": ended}, s.at(20, without))
	for seconds := 30.0; seconds < 90; seconds += 10 {
		assert.Empty(t, s.at(seconds, first(10, 20)))
	}
	assert.Equal(t, points{"time_to_first_token_mean{engine=0}": 0.25}, s.at(90, first(15, 40)))
}
