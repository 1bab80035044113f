package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

func TestInvariantsHoldOverSeedsAndSettings(t *testing.T) {
	race.SkipSequential(t) // Random servers are checked in any case.
	busy := func(c *Config) { c.Blocks, c.MaxModelLen, c.FrontEnd = 1100, 4096, DefaultFrontEnd() }
	for name, cfg := range map[string]Config{
		"chat":                {Workload: Chat(20), FrontEnd: DefaultFrontEnd()},
		"code":                {Workload: Code(10), FrontEnd: DefaultFrontEnd()},
		"a small cache":       bare(Chat(12), busy),
		"no prefix caching":   bare(Chat(12), busy, func(c *Config) { c.NoPrefixCaching = true }),
		"speculation":         bare(Chat(12), busy, func(c *Config) { c.Speculation.Acceptance = []float64{0.7, 0.6, 0.5} }),
		"adapters":            bare(Chat(12), busy, func(c *Config) { c.MaxLoRAs, c.Workload.Adapters, c.Workload.AdapterShare = 2, 6, 0.7 }),
		"transfers":           bare(Chat(12), busy, func(c *Config) { c.Transfer = Transfer{0.5, 0.01, 5e9} }),
		"three engines":       bare(Chat(30), busy, func(c *Config) { c.Engines = 3 }),
		"two sequences":       bare(Chat(1), busy, func(c *Config) { c.MaxSeqs = 2 }),
		"a small budget":      bare(Chat(4), busy, func(c *Config) { c.MaxBatchedTokens = 64 }),
		"impatient clients":   bare(Chat(25), busy, func(c *Config) { c.Workload.LeaveEarly, c.Workload.Patience, c.Workload.Timeout = 0.5, 0.5, 20 }),
		"clusters":            bare(Chat(10), busy, func(c *Config) { c.Workload.CV = 3 }),
		"a starved front end": bare(Chat(20), busy, func(c *Config) { c.FrontEnd.TokenSeconds = 1e-3 }),
		"everything changes": bare(Chat(10), busy, func(c *Config) {
			c.Engines, c.MaxLoRAs, c.Workload.Adapters, c.Workload.AdapterShare = 2, 2, 4, 0.3
			c.Transfer = Transfer{0.2, 0.01, 5e9}
			for at, ch := range []Change{
				{Parameter: ParamClock, Value: 0.5},
				{Parameter: ParamBlocks, Value: 0.3},
				{Parameter: ParamStall, Value: 1, Engines: []int{1}},
				{Parameter: ParamHostDelay, Value: 0.01},
				{Parameter: ParamStall, Value: 0},
				{Parameter: ParamSleep, Value: 1},
				{Parameter: ParamBlocks, Value: 0.8},
				{Parameter: ParamSleep, Value: 0},
				{Parameter: ParamErrorRate, Value: 0.3},
				{Parameter: ParamTransferFailure, Value: 0.5},
				{Parameter: ParamPrefixPool, Value: 1000},
				{Parameter: ParamArrivalRate, Value: 3},
				{Parameter: ParamBlocks, Value: 1},
				{Parameter: ParamCorruption, Value: 0.1},
				{Parameter: ParamArrivalRate, Value: 0},
			} {
				ch.At = float64(at) * 7
				c.Changes = append(c.Changes, ch)
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg.Model, cfg.KeepOutcomes = Llama8B(), true
			for seed := range uint64(4) {
				cfg.Seed = seed
				s := start(t, cfg)
				for at := 0.37; at < 120; at += 1.37 {
					s.AdvanceTo(at)
					check(t, s)
				}
				checkOutcomes(t, s)
			}
		})
	}
}

// checkOutcomes compares the truth with what the server observed.
func checkOutcomes(t *testing.T, s *Server) {
	t.Helper()
	seen := map[int]bool{}
	ends := map[End]int{}
	generated, observedTokens := 0, 0.0
	requests := append(s.Outcomes(), s.Unfinished()...)
	for _, o := range requests {
		require.False(t, seen[o.ID], "request %d ended twice", o.ID)
		seen[o.ID] = true
		ends[o.End]++
		generated += o.Output
		require.GreaterOrEqual(t, o.Queue, 0.0)
		require.GreaterOrEqual(t, o.Ended, o.Arrived)
		require.Less(t, o.Cached, o.Prompt, "the last token of a prompt is always computed")
		if o.End == EndStop || o.End == EndLength {
			require.Positive(t, o.FirstToken)
			require.GreaterOrEqual(t, o.Ended-o.Arrived, o.FirstToken)
			gaps := 0
			for _, n := range o.Gaps {
				gaps += int(n)
			}
			if len(s.cfg.Speculation.Acceptance) == 0 && s.cfg.Workload.SessionShare == 0 && s.members == 0 {
				require.Equal(t, o.Output-1, gaps, "one gap per token but the first: %+v", o)
			}
			require.GreaterOrEqual(t, o.MaxGap, o.MeanGap*(1-1e-9))
		}
	}
	require.Len(t, requests, s.serials-s.members, "no request is lost")
	finished := map[string]float64{}
	for _, st := range s.Stats() {
		observedTokens += st.GenerationTokens
		finished["stop"] += st.Finished[0]
		finished["length"] += st.Finished[1]
		finished["error"] += st.Finished[3]
	}
	if s.countedSince > 0 || s.members > 0 {
		return // The statistics are those of a part of the run, or of more requests than clients sent.
	}
	if s.cfg.Semantics.ErrorsUncounted {
		ends[EndError] = 0
	}
	for name, end := range map[string]End{"stop": EndStop, "length": EndLength, "error": EndError} {
		require.InDelta(t, ends[end], finished[name], 0, name)
	}
	if s.head == len(s.reports) {
		require.InDelta(t, generated, observedTokens, 0, "every token is counted once")
	}
}

func TestARunDoesNotDependOnHowOftenItIsAskedToAdvance(t *testing.T) {
	cfg := bare(Chat(12), func(c *Config) {
		c.Blocks, c.MaxModelLen, c.FrontEnd, c.Engines, c.MaxLoRAs = 1100, 4096, DefaultFrontEnd(), 2, 2
		c.Workload.Adapters, c.Workload.AdapterShare, c.Workload.CV = 4, 0.5, 2
		c.Speculation.Acceptance = []float64{0.7, 0.5}
		c.Changes = []Change{{At: 50, Parameter: ParamClock, Value: 0.5}, {At: 100.5, Parameter: ParamFrontEnd, Value: 20}}
	})
	once, often := start(t, cfg), start(t, cfg)
	once.AdvanceTo(300)
	for at := 0.0; at < 300; at += 0.173 {
		often.AdvanceTo(at)
	}
	often.AdvanceTo(300)
	assert.Equal(t, once.Stats(), often.Stats())
	assert.Equal(t, once.Outcomes(), often.Outcomes())
	cfg.Seed++
	other := start(t, cfg)
	other.AdvanceTo(300)
	assert.NotEqual(t, once.Stats(), other.Stats())
}

func TestTheLatencyOfALoneRequestIsTheFormulas(t *testing.T) {
	for _, prompt := range []int{1, 17, 1000, 8192, 16000} {
		t.Run(fmt.Sprint(prompt), func(t *testing.T) {
			s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.FrontEnd = DefaultFrontEnd() }))
			send(s, prompt, 20)
			s.AdvanceTo(100)
			o := s.Outcomes()[0]

			m, f := Llama8B(), DefaultFrontEnd()
			want := f.RequestSeconds + f.PromptTokenSeconds*float64(prompt) + f.DelaySeconds
			for done := 0; done < prompt; {
				n := min(8192, prompt-done)
				want += m.StepTime(rest(n, done), Nominal())
				done += n
			}
			busy := f.BatchSeconds + f.TokenSeconds
			assert.InDelta(t, want+busy, o.FirstToken, 1e-9)
			gaps := 0.0
			for i := 1; i < 20; i++ {
				gaps += m.StepTime(decodes(1, prompt+i), Nominal())
			}
			assert.InDelta(t, gaps/19, o.MeanGap, 1e-9)
			assert.InDelta(t, want+gaps+busy, o.Ended, 1e-9)
			st := s.Stats()[0]
			assert.InDelta(t, o.FirstToken, st.FirstToken.Sum, 1e-9)
			assert.InDelta(t, gaps, st.InterToken.Sum, 1e-9)
			assert.InDelta(t, want+gaps+busy, st.EndToEnd.Sum, 1e-9)
			assert.InDelta(t, gaps, st.Decode.Sum, 1e-9)
			assert.InDelta(t, 0, st.Queue.Sum, 1e-9)
			assert.InDelta(t, prompt, st.PromptTokens, 0)
			assert.InDelta(t, 20, st.GenerationTokens, 0)
			assert.InDelta(t, prompt+20, st.IterationTokens.Sum, 0)
			assert.EqualValues(t, 20, st.IterationTokens.Count, "chunks without output are not observed")
		})
	}
}
