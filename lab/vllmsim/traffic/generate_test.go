package traffic

import (
	"bytes"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func generate(tb testing.TB, name string, seed uint64, rate, seconds float64) *engine.Traffic {
	tb.Helper()
	t, err := Generate(name, seed, rate, seconds)
	require.NoError(tb, err)
	return t
}

// TestGeneratedTrafficIsLikeItsTrace compares with the published numbers, so that it needs no
// trace. Traffic with heavy tails differs from seed to seed: the median of several counts.
func TestGeneratedTrafficIsLikeItsTrace(t *testing.T) {
	race.SkipSequential(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			want := published[kinds[name].trace]
			var all []Statistics
			seconds := map[string]float64{"conversation": 3501, "long-context": 3540, "batch": 43200}[name]
			if seconds == 0 {
				seconds = 86400
			}
			for seed := range uint64(5) {
				all = append(all, Measure(generate(t, name, 200+seed, 0, seconds)))
			}
			within := func(what string, want, factor float64, value func(s *Statistics) float64) {
				if math.IsNaN(want) {
					return
				}
				var values []float64
				for i := range all {
					values = append(values, value(&all[i]))
				}
				got := middle(values)
				assert.True(t, got > want/factor && got < want*factor, "%s: %v in the median, of %v", what, got, want)
			}
			within("rate", want.rate, 1.05, func(s *Statistics) float64 { return s.Rate })
			within("prompt p50", want.prompt.P50, 1.3, func(s *Statistics) float64 { return s.Prompt.P50 })
			within("prompt p90", want.prompt.P90, 1.25, func(s *Statistics) float64 { return s.Prompt.P90 })
			within("prompt p99", want.prompt.P99, 1.3, func(s *Statistics) float64 { return s.Prompt.P99 })
			within("output p50", want.output.P50, 1.2, func(s *Statistics) float64 { return s.Output.P50 })
			within("output p90", want.output.P90, 1.2, func(s *Statistics) float64 { return s.Output.P90 })
			within("output p99", want.output.P99, 1.3, func(s *Statistics) float64 { return s.Output.P99 })
			within("IDC 60 s", want.idc60, 1.8, func(s *Statistics) float64 { return s.IDC60 })
			within("peak to mean", want.peak, 1.5, func(s *Statistics) float64 { return s.PeakToMean })
			within("reuse", want.reuse, 1.08, func(s *Statistics) float64 { return s.Reuse })
			if name != "long-context" { // its trace has no seconds
				within("IDC 1 s", want.idc1, 1.8, func(s *Statistics) float64 { return s.IDC1 })
			}
		})
	}
}

func TestEqualArgumentsMakeEqualTraffic(t *testing.T) {
	for _, name := range Names() {
		one := generate(t, name, 5, 1, 3600)
		assert.Equal(t, one, generate(t, name, 5, 1, 3600), name)
		other := generate(t, name, 6, 1, 3600)
		assert.NotEqual(t, one, other, name)
		assert.Equal(t, name, one.Name)
	}
}

func TestGeneratedTrafficHasTheRateAndTheLength(t *testing.T) {
	race.SkipSequential(t)
	for _, name := range Names() {
		for _, c := range []struct{ rate, seconds, delta float64 }{
			// Of a rate, a tenth and the noise of so few requests may be missing.
			{0.05, 3600, 0.5}, {0.3, 1700, 0.4}, {2, 3600, 0.15}, {20, 900, 0.15}, {0.5, 2*86400 + 100, 0.1}, {100, 60, 0.3}, {1, 1, 3},
		} {
			got := generate(t, name, 3, c.rate, c.seconds)
			n, last := float64(len(got.Arrivals)), 0.0
			if name == "assistant" {
				for _, conversation := range got.Conversations {
					n += float64(len(conversation.Turns))
				}
				assert.Greater(t, n, c.rate*c.seconds-1)
				continue
			}
			assert.InDelta(t, c.rate*c.seconds, n, c.delta*c.rate*c.seconds+2, "%s: %+v", name, c)
			assert.Equal(t, c.seconds, got.Span)
			for i := range got.Arrivals {
				a := &got.Arrivals[i]
				if !(a.At >= last && a.At < c.seconds && min(a.Prompt, a.Output) > 0) {
					t.Fatalf("%s: request %d is %+v after %v s", name, i, a, last)
				}
				last = a.At
			}
		}
	}
}

// TestAHigherRateIsMoreTenants: a tenant sends as before, so that bursts last as long as before.
func TestAHigherRateIsMoreTenants(t *testing.T) {
	race.SkipSequential(t)
	for name, most := range map[string]float64{"tenants": 0.25, "reasoning": 0.25} {
		clients := func(rate float64) (n, busiest float64) {
			seen := map[int32]float64{}
			for _, a := range generate(t, name, 9, rate, 86400).Arrivals {
				seen[a.Client]++
				busiest = max(busiest, seen[a.Client]/86400)
			}
			return float64(len(seen)), busiest
		}
		few, _ := clients(0.5)
		some, busiest := clients(2.6)
		many, busiestOfMany := clients(10)
		assert.Greater(t, some, 2*few)
		assert.InEpsilon(t, 10/2.6, many/some, 0.25, name)
		assert.Less(t, busiest, 2.5*most)
		assert.Less(t, busiestOfMany, 3.5*most)
	}
}

// TestAWindowIsNotSqueezed: an hour is one of about the mean rate. Tenants are not sped up to
// reach it.
func TestAWindowIsNotSqueezed(t *testing.T) {
	for seed := range uint64(10) {
		hour := generate(t, "tenants", seed, 0, 3600)
		assert.InEpsilon(t, 2.57*3600, len(hour.Arrivals), 0.02)
		all := tenantsFit.choose(newRandom(seed, "tenants"), 2.57)
		for i := range all {
			all[i].rates = all[i].period(newRandom(seed, "hours"), 144)
			assert.InEpsilon(t, all[i].rate, meanOf(all[i].rates), 1e-9)
		}
		from := window(newRandom(seed, "window"), all, 3600, 2.57)
		sum := 0.0
		for i := range all {
			all[i].rates = all[i].rates[from:]
			sum += all[i].sum(0, 6, 3600)
		}
		assert.InDelta(t, 0, math.Log(sum/3600/2.57), math.Log(1.6))
	}
}

func TestTenantsOfAnotherSeedDiffer(t *testing.T) {
	one, other := tenantsFit.choose(newRandom(1, "tenants"), 2.57), tenantsFit.choose(newRandom(2, "tenants"), 2.57)
	same := 0
	for _, a := range one {
		same += len(slices.DeleteFunc(slices.Clone(other), func(b tenant) bool { return a.rate != b.rate || a.promptStretch != b.promptStretch }))
	}
	assert.Zero(t, same)
}

// TestTurnsBeginWithTheTurnBefore: in the long contexts the first whole blocks of a turn are
// those of the turn before, except in the share that changes the history.
func TestTurnsBeginWithTheTurnBefore(t *testing.T) {
	got := generate(t, "long-context", 4, 0, 3540)
	last := map[int32]engine.Arrival{}
	var turns, changed float64
	for _, a := range got.Arrivals {
		blocks := blocksOf(a.Prefix)
		require.Len(t, blocks, (int(a.Prompt)+511)/512)
		require.Zero(t, blocks[0])
		if before, known := last[a.Client]; known {
			turns++
			had := blocksOf(before.Prefix)
			whole := min(int(before.Prompt), int(a.Prompt)) / 512
			if !slices.Equal(had[:whole], blocks[:whole]) {
				changed++
			}
		} else {
			assert.NotContains(t, last, a.Client)
		}
		last[a.Client] = a
	}
	assert.Greater(t, turns, 3000.0)
	assert.InDelta(t, 0.13, changed/turns, 0.05)
}

func TestGeneratedTrafficIsReadBackAsItWas(t *testing.T) {
	for _, name := range Names() {
		got := generate(t, name, 8, 0, 7200)
		var b bytes.Buffer
		require.NoError(t, Write(&b, got))
		again, err := read(&b, "FILE", name, usual)
		require.NoError(t, err, name)
		assert.Equal(t, got.Arrivals, again.Arrivals, name)
		assert.Equal(t, got.Conversations, again.Conversations, name)
		assert.Equal(t, got.BlockTokens, again.BlockTokens, name)
	}
}

func TestWhatCannotBeGeneratedIsRefused(t *testing.T) {
	for want, c := range map[string]struct {
		name          string
		rate, seconds float64
	}{
		`unknown kind of traffic "chat": want one of assistant, batch, conversation`: {"chat", 1, 60},
		"rate -1 is not between 0 and 1000 requests per second":                      {"tenants", -1, 60},
		"rate NaN is not":                  {"tenants", math.NaN(), 60},
		"rate 1001 is not":                 {"tenants", 1001, 60},
		"0 s is not a length of traffic":   {"tenants", 1, 0},
		"NaN s is not a length of traffic": {"tenants", 1, math.NaN()},
		"+Inf s is not a length of traffic: want more than 0 and at most 100 days": {"tenants", 1, math.Inf(1)},
		"are more than 5000000 requests: want a lower rate or less time":           {"tenants", 100, 8640000},
	} {
		_, err := Generate(c.name, 1, c.rate, c.seconds)
		assert.ErrorContains(t, err, want)
	}
}

// TestTheMemoryOfGeneratedTraffic holds what lab/docs/simulator.md says.
func TestTheMemoryOfGeneratedTraffic(t *testing.T) {
	race.SkipSequential(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := generate(t, "reasoning", 1, 3, 86400)
	runtime.GC()
	runtime.ReadMemStats(&after)
	perRequest := float64(after.HeapAlloc-before.HeapAlloc) / float64(len(got.Arrivals))
	assert.InDelta(t, 52, perRequest, 8)
	runtime.KeepAlive(got)
}

func TestALawFollowsItsQuantiles(t *testing.T) {
	l := tenantsFit.types[0].prompt
	rng := newRandom(1, "law")
	all := make([]float64, 100_000)
	for i := range all {
		all[i] = l.draw(rng)
	}
	slices.Sort(all)
	for i, share := range coarseShares[1 : len(coarseShares)-1] {
		assert.InEpsilon(t, l[i+1], quantile(all, share), 0.05, share)
	}
	assert.GreaterOrEqual(t, all[0], l[0])
	assert.LessOrEqual(t, all[len(all)-1], l[10]*1.000001)
	// Values of one group are alike, over all groups the law stays.
	var groups [][]float64
	for range 2000 {
		z, group := rng.NormFloat64(), make([]float64, 20)
		for i := range group {
			group[i] = l.drawLike(rng, z, 0.4)
		}
		groups = append(groups, group)
	}
	assert.InDelta(t, 0.4, alike(groups), 0.04)
	flat := slices.Sorted(slices.Values(slices.Concat(groups...)))
	assert.InEpsilon(t, l[5], quantile(flat, 0.5), 0.05)
}

func TestGammaHasItsVariance(t *testing.T) {
	for _, cv := range []float64{0.1, 0.7, 1, 3} {
		rng := newRandom(1, "gamma")
		all := make([]float64, 300_000)
		for i := range all {
			all[i] = gamma(rng, 1/(cv*cv))
		}
		assert.InDelta(t, 1, meanOf(all), 0.02*max(1, cv))
		assert.InEpsilon(t, cv, math.Sqrt(dispersion(all)/meanOf(all))*meanOf(all), 0.04)
	}
}

func BenchmarkGenerate(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				generate(b, name, 1, 3, 86400)
			}
		})
	}
}
