package emit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

const cached = "vllm.prompt_tokens_cached_ratio"

func hits(engine string, value float64) sample {
	return number(engine, input.PromptTokensCached, "", value)
}

func TestTheRollUpAppearsWithTheSecondEngineAndEndsWithIt(t *testing.T) {
	s := newServer(t, cached)
	s.at(0, hits("0", 0), tokens("0", 0))
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=0}": 0.5}, s.at(10, hits("0", 5), tokens("0", 10)))
	// A new engine counts from 0.
	got := s.at(20, hits("0", 5), tokens("0", 10), hits("1", 30), tokens("1", 30))
	assert.Equal(t, points{
		"prompt_tokens_cached_ratio{engine=0}": 0.5, "prompt_tokens_cached_ratio{engine=1}": 1,
		"prompt_tokens_cached_ratio{}": 0.875,
	}, got)
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=0}": 0.5}, s.at(30, hits("0", 5), tokens("0", 10)),
		"for one scrape the other engine may still come")
	assert.Equal(t, points{
		"prompt_tokens_cached_ratio{engine=0}": 0.5, "prompt_tokens_cached_ratio{engine=1}": ended,
		"prompt_tokens_cached_ratio{}": ended,
	}, s.at(40, hits("0", 5), tokens("0", 10)))
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=0}": 0.5}, s.at(50, hits("0", 5), tokens("0", 10)), "ended once")
}

func TestAnEngineWithAnEndEndsAtOnce(t *testing.T) {
	s := newServer(t, cached)
	s.at(0, hits("0", 0), tokens("0", 0), hits("1", 0), tokens("1", 0))
	s.at(10, hits("0", 5), tokens("0", 10), hits("1", 5), tokens("1", 10))
	assert.Equal(t, points{
		"prompt_tokens_cached_ratio{engine=0}": 0.5, "prompt_tokens_cached_ratio{engine=1}": ended,
		"prompt_tokens_cached_ratio{}": ended,
	}, s.at(20, hits("0", 5), tokens("0", 10), hits("1", 0).gone(), tokens("1", 0).gone()))
}

func TestAResourceThatEndsRepeatsNoValue(t *testing.T) {
	s := newServer(t, cached, prompts)
	s.at(0, hits("0", 0), tokens("0", 0), tokens("1", 0))
	s.at(10, hits("0", 5), tokens("0", 10), tokens("1", 10))
	assert.Equal(t, points{
		"prompt_tokens_cached_ratio{engine=0}": ended, "prompt_tokens_cached_ratio{}": ended,
		"prompt_throughput{engine=0}": ended,
	}, s.at(20, hits("0", 0).gone(), tokens("0", 0).gone()))
	assert.Equal(t, points{"prompt_throughput{engine=1}": 1}, s.at(20, tokens("1", 20)), "the other part of the batch")
	assert.Equal(t, points{"prompt_throughput{engine=1}": ended}, s.at(30, tokens("1", 0).gone()))
}

func TestAnIdleServerHasRatesOfZeroAndNoRatios(t *testing.T) {
	s := newServer(t, prompts, cached, "vllm.time_to_first_token_mean", "vllm.time_to_first_token_quantile")
	idle := func(seconds, n float64) points {
		return s.at(seconds, hits("0", n), tokens("0", 2*n), distribution("0", input.TimeToFirstToken, n, []float64{1}, n, 0))
	}
	idle(0, 0)
	assert.Len(t, idle(10, 10), 4)
	for seconds := 20.0; seconds < 70; seconds += 10 {
		assert.Len(t, idle(seconds, 10), 4)
	}
	assert.Equal(t, points{
		"prompt_throughput{engine=0}": 0, "prompt_tokens_cached_ratio{engine=0}": ended,
		"time_to_first_token_mean{engine=0}": ended, "time_to_first_token_quantile{engine=0,quantile=0.5}": ended,
	}, idle(70, 10))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 0}, idle(80, 10))
}

func TestAGapShorterThanTwoWindowsIsPartOfTheWindow(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 0))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 2}, s.at(120, tokens("0", 240)))
}

func TestAGapLongerThanTwoWindowsBeginsAnew(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 0))
	s.at(10, tokens("0", 10))
	assert.Equal(t, points{"prompt_throughput{engine=0}": ended}, s.at(131, tokens("0", 1000)))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 3}, s.at(141, tokens("0", 1030)))
}

func TestAGapLongerThanAnythingIsRememberedHidesARestart(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 1000), generated("0", 10))
	s.at(10, tokens("0", 1010), generated("0", 20))
	assert.Equal(t, points{"prompt_throughput{engine=0}": ended}, s.at(400, tokens("0", 2000)), "the other may still come")
	// A part with a number that fell, later: what was forgotten cannot restart anything.
	s.at(410, tokens("0", 2010), generated("0", 5))
	assert.Zero(t, s.report.Resets)
	got := s.at(420, tokens("0", 2020), generated("0", 15))
	assert.Equal(t, 1.0, got["prompt_throughput{engine=0}"])
}

func TestASeriesMadeLateCountsFromZero(t *testing.T) {
	s := newServer(t, "vllm.request_throughput", "vllm.request.finished_ratio")
	success := func(why string, n float64) sample { return number("0", input.RequestSuccess, why, n) }
	s.at(0, success("stop", 50))
	assert.Equal(t, points{
		"request_throughput{engine=0}": 1, "request.finished_ratio{engine=0,finished_reason=stop}": 0.6,
		"request.finished_ratio{engine=0,finished_reason=abort}": 0.4,
	}, s.at(10, success("stop", 56), success("abort", 4)))
}

func TestTheFirstBatchOfManyPartsIsOnlyABaseline(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 1000))
	assert.Empty(t, s.at(0, generated("0", 500)))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1, "generation_throughput{engine=0}": 2},
		s.at(10, tokens("0", 1010), generated("0", 520)))
}

func TestASeriesThatVanishesAndComesBackContinues(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 100), generated("0", 0))
	s.at(10, tokens("0", 110), generated("0", 0))
	assert.NotContains(t, s.at(20, generated("0", 0)), "prompt_throughput{engine=0}")
	assert.Equal(t, ended, s.at(30, generated("0", 0))["prompt_throughput{engine=0}"])
	assert.Equal(t, 1.0, s.at(40, tokens("0", 140), generated("0", 0))["prompt_throughput{engine=0}"])
}

func TestASeriesThatComesBackAfterLongIsNotNew(t *testing.T) {
	for _, trimmed := range []bool{false, true} {
		s := newServer(t, prompts, generations)
		s.at(0, tokens("0", 1000), generated("0", 0))
		for seconds := 10.0; seconds <= 400; seconds += 10 {
			s.at(seconds, generated("0", 0))
		}
		if trimmed {
			s.resource.Trim()
		}
		assert.NotContains(t, s.at(410, tokens("0", 1100), generated("0", 0)), "prompt_throughput{engine=0}")
		for seconds := 420.0; seconds < 470; seconds += 10 {
			s.at(seconds, tokens("0", 1100), generated("0", 0))
		}
		assert.Equal(t, 1.0, s.at(470, tokens("0", 1160), generated("0", 0))["prompt_throughput{engine=0}"])
	}
}

func TestLateAndRepeatedPointsChangeNothing(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 0))
	s.at(10, tokens("0", 10))
	assert.Empty(t, s.at(5, tokens("0", 7777)))
	assert.Equal(t, 1, s.report.Ignored[window.OutOfOrder])
	assert.Empty(t, s.at(10, tokens("0", 7777)))
	assert.Equal(t, 1, s.report.Ignored[window.Duplicate])
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1}, s.at(20, tokens("0", 20)))
}

func TestASeriesBeyondTheLimitIsNotKept(t *testing.T) {
	s := newServer(t, prompts)
	s.room = 1
	s.at(0, tokens("0", 0), tokens("1", 0))
	s.room = 0
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1}, s.at(10, tokens("0", 10), tokens("1", 10)))
	assert.Equal(t, 1, s.report.Ignored[window.SeriesLimit])
	assert.Equal(t, 1, s.resource.Series())
}

func TestWhatAVanishedLabelCountedStaysInTheWindow(t *testing.T) {
	http := func(status string, n float64) sample {
		return number("", input.HTTPRequests, status+"\x00/v1/completions\x00POST", n)
	}
	s := newServer(t, "vllm.http.error_ratio")
	s.at(0, http("2xx", 0), http("5xx", 0))
	s.at(10, http("2xx", 6), http("5xx", 2))
	// The server restarts; the errors of before happened all the same.
	got := s.at(20, http("2xx", 2), http("5xx", 0).gone())
	assert.InDelta(t, 0.2, got["http.error_ratio{status_class=5xx}"], 1e-12)
}
