package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// randomServer draws settings that can all meet: a small cache, speculation,
// adapters, transfers, impatient clients, and changes at random times.
func randomServer(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 1))
	maybe := func() bool { return rng.IntN(2) == 0 }
	cfg := Config{
		Seed: seed, Model: Llama8B(), Engines: 1 + rng.IntN(3), Router: Router(rng.IntN(2)), KeepOutcomes: true,
		Blocks: 140 + rng.IntN(1500), MaxModelLen: 2048, MaxSeqs: 1 + rng.IntN(64), MaxBatchedTokens: 32 << rng.IntN(9),
		NoPrefixCaching: rng.IntN(4) == 0, Workload: Chat(rng.Float64() * 30), FlopsCounters: maybe(),
	}
	for _, semantics := range []*bool{
		&cfg.Semantics.RecountBlocked, &cfg.Semantics.RecountPreempted, &cfg.Semantics.IterationWithCached,
		&cfg.Semantics.ArrivalAfterTokenizing, &cfg.Semantics.ErrorsUncounted, &cfg.Semantics.UnguardedDurations,
		&cfg.Semantics.FirstWithoutToken, &cfg.Semantics.AbortsCounted, &cfg.Semantics.FrozenAfterAborts,
		&cfg.Semantics.NullBlockUsed, &cfg.Semantics.ClientErrorsAs5xx, &cfg.Semantics.StepPerProcess, &cfg.Semantics.LocalInExternal,
		&cfg.Semantics.EngineAbortsCounted, &cfg.Semantics.AsyncHitsUncounted, &cfg.Semantics.ParamsPerChoice,
		&cfg.Semantics.SessionPerChunk, &cfg.Semantics.PromptPerChunk,
	} {
		*semantics = maybe()
	}
	// Of an arrival that moves without the queuing, the parts would exceed the whole.
	cfg.Semantics.RequeuedSessions = cfg.Semantics.SessionPerChunk
	cfg.Workload.CV = 0.5 + 3*rng.Float64()
	if maybe() {
		cfg.FrontEnd = DefaultFrontEnd()
		cfg.FrontEnd.Processes = 1 + rng.IntN(3)
	}
	if maybe() {
		for range 1 + rng.IntN(5) {
			cfg.Speculation.Acceptance = append(cfg.Speculation.Acceptance, rng.Float64())
		}
	}
	if maybe() {
		cfg.MaxLoRAs, cfg.Workload.Adapters, cfg.Workload.AdapterShare = 1+rng.IntN(3), 5, rng.Float64()
	}
	if maybe() {
		cfg.Transfer = Transfer{rng.Float64(), 0.1 * rng.Float64(), 1e9 * (1 + 20*rng.Float64())}
	}
	if maybe() {
		cfg.Workload.LeaveEarly, cfg.Workload.LeaveLate = rng.Float64()/2, rng.Float64()/2
		cfg.Workload.Patience, cfg.Workload.Timeout = 0.1+3*rng.Float64(), 30*rng.Float64()
	}
	if rng.IntN(3) == 0 {
		w := &cfg.Workload
		w.ChoicesShare, w.Choices, w.BeamShare, w.Beams = 0.1*rng.Float64(), 2+rng.IntN(3), 0.02*rng.Float64(), 1+rng.IntN(3)
		w.SessionShare, w.Chunks, w.ChunkPause, w.MediaShare, w.Media = rng.Float64()/2, 2+rng.IntN(3), rng.Float64(), rng.Float64(), 7
	}
	switch w := &cfg.Workload; rng.IntN(5) {
	case 0:
		w.Clients, w.Think, w.ThinkMost = 1+rng.IntN(40), rng.Float64(), rng.Float64()
	case 1:
		w.Traffic, w.Clients, w.ThinkMost = talks(9), 1+rng.IntN(40), 2*rng.Float64()
	case 2:
		w.Traffic, w.Speed, w.From = someTraffic(500, 50), 2*rng.Float64(), 100*rng.Float64()
	}
	if maybe() {
		cfg.Workload.Retries, cfg.Workload.RetryAfter = 1+rng.IntN(3), 2*rng.Float64()
	}
	cfg.Lockstep = cfg.Engines > 1 && maybe()
	h100 := H100()
	cfg.Device = &h100
	for at := 5 * rng.Float64(); at < 60; at += 10 * rng.Float64() {
		p := Parameter(rng.IntN(int(ParamClientsCancel))) // Clients leave in half of the servers anyhow.
		least, most := p.Limits()
		value := least + (min(most, 3)-least)*rng.Float64()
		if p == ParamSleep || p == ParamStall || p == ParamScaleUp {
			value = float64(rng.IntN(2))
		}
		ch := Change{At: at, Parameter: p, Value: value}
		if p.PerEngine() && maybe() {
			ch.Engines = []int{rng.IntN(cfg.Engines)}
		}
		cfg.Changes = append(cfg.Changes, ch)
	}
	nominal := nominalValues()
	nominal[ParamArrivalRate] = 0
	for p, value := range nominal {
		cfg.Changes = append(cfg.Changes, Change{At: 61, Parameter: Parameter(p), Value: value})
	}
	return cfg
}

func TestInvariantsHoldForRandomServersUntilTheLastRequest(t *testing.T) {
	seeds := 40
	if race.Enabled {
		seeds = 4
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			s := start(t, randomServer(seed))
			for at := 0.3; at < 65; at += 0.73 {
				s.AdvanceTo(at)
				check(t, s)
			}
			for range 5000 {
				if len(s.live) == 0 {
					break
				}
				s.AdvanceTo(s.now + 10)
			}
			if len(s.live) > 0 {
				t.Fatalf("%d requests never end", len(s.live))
			}
			s.AdvanceTo(s.now + 10)
			checkOutcomes(t, s)
			for _, c := range s.engines {
				checkBlocks(t, c)
				if c.pool.free != c.pool.usable() {
					t.Fatalf("%d of %d blocks are free at the end", c.pool.free, c.pool.usable())
				}
			}
		})
	}
}

// Whatever a server has, it does the same whether it is asked once or at random moments.
func TestItDoesNotMatterHowOftenARandomServerIsLookedAt(t *testing.T) {
	seeds := 24
	if race.Enabled {
		seeds = 3
	}
	for seed := range uint64(seeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			const end = 70.0
			run := func(look func() float64) *Server {
				s := start(t, randomServer(seed+1000))
				for at := look(); at < end; at += look() {
					s.AdvanceTo(at)
				}
				s.AdvanceTo(end)
				return s
			}
			rng := rand.New(rand.NewPCG(seed, 7))
			once := run(func() float64 { return end })
			often := run(func() float64 { return rng.ExpFloat64() })
			ended, same := once.Outcomes(), often.Outcomes()
			require.NotEmpty(t, ended)
			require.Len(t, same, len(ended))
			for i := range ended {
				require.Equal(t, ended[i], same[i])
			}
			require.Equal(t, once.Unfinished(), often.Unfinished())
			for i, c := range once.engines {
				require.Equal(t, c.step, often.engines[i].step, "engine %d", i)
				require.Equal(t, c.totals, often.engines[i].totals, "engine %d", i)
				require.Equal(t, once.Stats()[i], often.Stats()[i], "engine %d", i)
			}
		})
	}
}
