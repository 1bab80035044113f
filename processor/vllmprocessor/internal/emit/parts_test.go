package emit_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func TestARatioWhosePartsComeInTwoBatchesIsWrittenOnce(t *testing.T) {
	s := newServer(t, cached, prompts)
	s.at(0, hits("0", 0), tokens("0", 0))
	s.at(10, hits("0", 5), tokens("0", 10))
	assert.Empty(t, s.at(20, hits("0", 10)))
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=0}": 0.5, "prompt_throughput{engine=0}": 1}, s.at(20, tokens("0", 20)))
}

func TestARollUpWhoseEnginesComeInTwoBatchesIsWrittenOnce(t *testing.T) {
	s := newServer(t, cached)
	s.at(0, hits("0", 0), tokens("0", 0), hits("1", 0), tokens("1", 0))
	s.at(10, hits("0", 5), tokens("0", 10), hits("1", 10), tokens("1", 10))
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=0}": 0.5}, s.at(20, hits("0", 10), tokens("0", 20)))
	assert.Equal(t, points{"prompt_tokens_cached_ratio{engine=1}": 1, "prompt_tokens_cached_ratio{}": 0.75},
		s.at(20, hits("1", 20), tokens("1", 20)))
}

func TestAPartWithoutAnyEngineEndsNoRollUp(t *testing.T) {
	s := newServer(t, cached)
	http := number("", input.HTTPRequests, "2xx\x00/\x00GET", 1)
	s.at(0, hits("0", 0), tokens("0", 0), hits("1", 0), tokens("1", 0), http)
	s.at(10, hits("0", 5), tokens("0", 10), hits("1", 10), tokens("1", 10), http)
	assert.Empty(t, s.at(20, http))
	assert.Len(t, s.at(20, hits("0", 5), tokens("0", 10), hits("1", 10), tokens("1", 10)), 3)
}

func TestAPartWithOneEndDoesNotEndTheEngine(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 0), generated("0", 0))
	s.at(10, tokens("0", 10), generated("0", 10))
	assert.Equal(t, points{"generation_throughput{engine=0}": ended}, s.at(20, generated("0", 0).gone()))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1}, s.at(20, tokens("0", 20)))
}

func TestSeveralTimesInOnePayloadAreSeveralBatches(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 0))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1}, s.at(10, tokens("0", 10)))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 2}, s.at(20, tokens("0", 40)))
}

func TestVeryFrequentBatchesLoseNothing(t *testing.T) {
	s := newServer(t, prompts, "vllm.first_token_rate")
	first := func(n float64) sample { return distribution("0", input.TimeToFirstToken, n, []float64{1}, n, 0) }
	s.at(0, tokens("0", 0), first(0))
	var got points
	for i := 1; i <= 20000; i++ {
		n := float64(3 * i)
		if i > 10000 { // a restart amid them
			n = float64(3 * (i - 10000))
		}
		got = s.at(float64(i)/100, tokens("0", n), first(n))
		if i > 100 {
			assert.InDelta(t, 300, got["prompt_throughput{engine=0}"], 1e-6)
		}
	}
	assert.InDelta(t, 300, got["first_token_rate{engine=0}"], 1e-6)
}

func TestADeltaThatIsNotSentHasNotChanged(t *testing.T) {
	s := newServer(t, prompts, generations)
	s.at(0, tokens("0", 500).delta(), generated("0", 500).delta())
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1, "generation_throughput{engine=0}": 2},
		s.at(10, tokens("0", 10).delta(), generated("0", 20).delta()), "the first is only a baseline")
	assert.Equal(t, points{"prompt_throughput{engine=0}": 0.5, "generation_throughput{engine=0}": 2},
		s.at(20, generated("0", 20).delta()))
}

func TestADeltaSeriesCanBeSilentForLong(t *testing.T) {
	for _, silence := range []bool{false, true} {
		s := newServer(t, prompts, generations)
		s.at(0, tokens("0", 0).delta(), generated("0", 0).delta())
		s.at(10, tokens("0", 10).delta(), generated("0", 0).delta())
		begin := 20.0
		if silence { // nothing at all for longer than anything is remembered
			begin = 1000
		}
		for seconds := begin; seconds <= begin+400; seconds += 10 {
			s.at(seconds, generated("0", 10).delta())
			s.resource.Trim()
		}
		got := s.at(begin+410, tokens("0", 60).delta(), generated("0", 10).delta())
		assert.Equal(t, points{"prompt_throughput{engine=0}": 1, "generation_throughput{engine=0}": 1}, got)
	}
}

func TestADeltaAfterAGapIsOnlyABaseline(t *testing.T) {
	s := newServer(t, prompts)
	s.at(0, tokens("0", 0).delta())
	s.at(10, tokens("0", 10).delta())
	assert.Equal(t, points{"prompt_throughput{engine=0}": ended}, s.at(1000, tokens("0", 999).delta()))
	assert.Equal(t, points{"prompt_throughput{engine=0}": 1}, s.at(1010, tokens("0", 10).delta()))
}
