package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/observed"
)

// chat is an engine under a load that it can just carry.
func chat(change ...func(*Config)) Config {
	cfg := Config{
		Seed: 7, Rate: 6, Period: 60, PromptMedian: 520, OutputMedian: 129,
		KVTokens: 40960, BlockSize: 16, MaxSeqs: 48, MaxBatchedTokens: 2048, MaxModelLen: 8192,
		PrefixCaching: true, MaxLoRAs: 2,
	}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

func start(t *testing.T, cfg Config) *Engine {
	t.Helper()
	e, err := New(cfg)
	require.NoError(t, err)
	return e
}

// hours returns n virtual hours in seconds; a tenth of that under the race
// detector.
func hours(n float64) float64 {
	if raced {
		n /= 10
	}
	return n * 3600
}

func TestStatsDoNotDependOnHowOftenTheEngineIsAskedToAdvance(t *testing.T) {
	cfg := chat(func(c *Config) { c.LoRA, c.SpecDecode = true, true })
	once, often := start(t, cfg), start(t, cfg)
	once.AdvanceTo(600)
	for at := 0.0; at <= 600; at += 0.37 {
		often.AdvanceTo(at)
	}
	often.AdvanceTo(600)
	assert.Equal(t, once.Stats(), often.Stats())
}

func TestAnotherSeedIsAnotherRun(t *testing.T) {
	one, other := start(t, chat()), start(t, chat(func(c *Config) { c.Seed = 8 }))
	one.AdvanceTo(60)
	other.AdvanceTo(60)
	assert.NotEqual(t, one.Stats().PromptTokens, other.Stats().PromptTokens)
}

func TestNumbersAgreeWithEachOtherOverTwoHours(t *testing.T) {
	for name, cfg := range map[string]Config{
		"plain":                    chat(),
		"no prefix caching":        chat(func(c *Config) { c.PrefixCaching = false }),
		"LoRA":                     chat(func(c *Config) { c.LoRA = true }),
		"speculative decoding":     chat(func(c *Config) { c.SpecDecode = true }),
		"a cache for two requests": chat(func(c *Config) { c.KVTokens, c.MaxModelLen, c.Rate = 4096, 2048, 2 }),
		"overload without end":     chat(func(c *Config) { c.Rate = 40 }),
		"hardly any load":          chat(func(c *Config) { c.Rate = 0.05 }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, cfg)
			for at := 60.0; at <= hours(2); at += 60 {
				e.AdvanceTo(at)
				checkAgreement(t, cfg, e)
			}
			assert.Positive(t, e.Stats().EndToEnd.Count)
		})
	}
}

func checkAgreement(t *testing.T, cfg Config, e *Engine) {
	t.Helper()
	s := e.Stats()
	finished := 0.0
	for _, n := range s.Finished {
		finished += n
	}
	for name, h := range map[string]*observed.Histogram{
		"end to end": s.EndToEnd, "queue": s.Queue, "inference": s.Inference, "prefill": s.Prefill, "decode": s.Decode,
		"prompt": s.PromptLength, "output": s.GenerationLength, "n": s.ParamsN, "token mean": s.TokenMean,
		"computed": s.PrefillComputed, "preemptions": s.RequestPreemptions,
	} {
		require.InDelta(t, finished, h.Count, 0, "%s: one observation per finished request", name)
	}
	require.LessOrEqual(t, s.ParamsMaxTokens.Count, s.EndToEnd.Count)
	require.GreaterOrEqual(t, s.FirstToken.Count, s.EndToEnd.Count)
	require.GreaterOrEqual(t, s.PromptTokens, s.PromptLength.Sum)
	require.GreaterOrEqual(t, s.GenerationTokens, s.GenerationLength.Sum)
	require.GreaterOrEqual(t, s.IterationTokens.Sum, s.GenerationTokens)
	require.InEpsilon(t, s.Inference.Sum+1, s.Prefill.Sum+s.Decode.Sum+1, 1e-9)
	require.GreaterOrEqual(t, s.EndToEnd.Sum, s.Queue.Sum+s.Inference.Sum)
	require.LessOrEqual(t, s.PrefixHits, s.PrefixQueries)
	require.LessOrEqual(t, s.PromptCached, s.PromptTokens)
	require.InDelta(t, s.PrefixHits, s.PrefixHitBlocks*float64(cfg.BlockSize), 0, "hits are whole blocks")
	if !cfg.SpecDecode {
		require.InDelta(t, s.GenerationTokens, float64(s.InterToken.Count+s.FirstToken.Count), 0,
			"every token but the first has a distance to the one before")
	}
	accepted := 0.0
	for _, n := range s.AcceptedPerPosition {
		accepted += n
	}
	require.InDelta(t, s.AcceptedTokens, accepted, 0)
	require.LessOrEqual(t, s.AcceptedTokens, s.DraftTokens)

	require.LessOrEqual(t, s.Running, cfg.MaxSeqs)
	require.LessOrEqual(t, s.Waiting(), maxWaiting+cfg.MaxSeqs)
	require.GreaterOrEqual(t, s.WaitingCapacity, 0)
	require.GreaterOrEqual(t, s.KVUsage, 0.0)
	require.LessOrEqual(t, s.KVUsage, 1.0)
	held := 0
	for _, r := range e.running {
		held += r.blocks
	}
	require.Equal(t, e.blocks, e.free+held, "no block is lost or held twice")

	answered := 0.0
	for _, h := range s.HTTP {
		require.InDelta(t, h.Requests(), h.Duration.Count, 0)
		answered += h.Requests()
	}
	require.InDelta(t, answered, s.HTTPFine.Count, 0)
	require.GreaterOrEqual(t, answered, finished)
	require.LessOrEqual(t, len(s.Adapters), 64, "combinations of three adapters, running and waiting")
}

func TestLoadShowsInEveryNumberThatShouldFeelIt(t *testing.T) {
	light, heavy := start(t, chat(func(c *Config) { c.Rate = 1 })), start(t, chat(func(c *Config) { c.Rate = 8 }))
	queued, full := 0, 0
	for at := 1.0; at <= 3600; at++ {
		light.AdvanceTo(at)
		heavy.AdvanceTo(at)
		if heavy.Stats().Waiting() > 0 {
			queued++
		}
		if heavy.Stats().KVUsage > 0.9 {
			full++
		}
	}
	mean := func(h *observed.Histogram) float64 { return h.Sum / float64(h.Count) }
	l, h := light.Stats(), heavy.Stats()
	assert.Greater(t, mean(h.InterToken), 1.2*mean(l.InterToken))
	assert.Greater(t, mean(h.FirstToken), 3*mean(l.FirstToken))
	assert.Greater(t, mean(h.EndToEnd), 1.5*mean(l.EndToEnd))
	assert.Positive(t, h.Preemptions)
	assert.Zero(t, l.Preemptions)
	assert.Greater(t, queued, 60)
	assert.Greater(t, full, 60)
	assert.InDelta(t, 129, mean(l.GenerationLength), 60, "lengths follow their median")
}

func TestAnIdleEngineReportsEmptyGaugesAndKeepsItsCounters(t *testing.T) {
	e := start(t, chat())
	e.AdvanceTo(300)
	e.workload.next.arrived = 1e9 // Nobody comes any more.
	e.AdvanceTo(600)
	before := *e.Stats()
	e.AdvanceTo(3600)
	after := *e.Stats()
	assert.Zero(t, after.Running)
	assert.Zero(t, after.Waiting())
	assert.Zero(t, after.KVUsage)
	assert.Zero(t, after.GenerationRate)
	assert.Positive(t, after.GenerationTokens)
	assert.InDelta(t, before.GenerationTokens, after.GenerationTokens, 0)
}

func TestThroughputOfTheLastTenSecondsAddsUpToTheCounter(t *testing.T) {
	e := start(t, chat())
	sum := 0.0
	for at := 10.0; at <= 600; at += 10 {
		e.AdvanceTo(at)
		sum += 10 * e.Stats().GenerationRate
	}
	assert.InEpsilon(t, e.Stats().GenerationTokens, sum, 0.01)
}

func TestAdaptersBeyondTheSlotsAreDeferred(t *testing.T) {
	e := start(t, chat(func(c *Config) { c.LoRA, c.MaxLoRAs = true, 1 }))
	deferred := 0
	for at := 1.0; at <= 300; at++ {
		e.AdvanceTo(at)
		require.LessOrEqual(t, bits(e.activeAdapters()), 1)
		deferred += e.Stats().WaitingDeferred
	}
	assert.Positive(t, deferred)
	last := 0.0
	for _, set := range e.Stats().Adapters {
		assert.LessOrEqual(t, set.First, set.Last)
		last = max(last, set.Last)
	}
	assert.InDelta(t, e.Stats().LastStep, last, 0, "the present combination has the newest time")
}

func TestSettingsThatCannotWorkAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"rate 0 ":                 func(c *Config) { c.Rate = 0 },
		"period -1 s":             func(c *Config) { c.Period = -1 },
		"cannot hold one request": func(c *Config) { c.KVTokens = 4096 },
		"block size 0":            func(c *Config) { c.BlockSize = 0 },
		"must exceed sequences":   func(c *Config) { c.MaxBatchedTokens = 10 },
	} {
		_, err := New(chat(change))
		assert.ErrorContains(t, err, want)
	}
}

func TestAVirtualHourTakesWellUnderASecond(t *testing.T) {
	if raced {
		t.Skip("the race detector slows this down by more than the margin")
	}
	best := time.Hour
	for range 3 {
		e := start(t, chat())
		began := time.Now()
		e.AdvanceTo(3600)
		best = min(best, time.Since(began))
	}
	assert.Less(t, best, time.Second)
}

func BenchmarkVirtualHour(b *testing.B) {
	for b.Loop() {
		e, err := New(chat())
		if err != nil {
			b.Fatal(err)
		}
		e.AdvanceTo(3600)
	}
}
