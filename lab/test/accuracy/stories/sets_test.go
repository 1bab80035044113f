package stories

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func names(plans []Plan) map[string]Meta {
	out := map[string]Meta{}
	for _, p := range plans {
		out[p.Name] = p.Meta
	}
	return out
}

// What a first look has played counts for the published run.
func TestAFirstLookIsPartOfThePublishedSet(t *testing.T) {
	whole := names(All(HeldOut, Sizes["published"], true))
	plans := All(HeldOut, Sizes["tiny"], true)
	some := names(plans)
	require.Len(t, some, len(plans), "names are unique")
	for name, m := range some {
		assert.Equal(t, whole[name], m, name)
	}
}

func TestTuningAndHeldOutStayApart(t *testing.T) {
	tuning, held := All(Tuning, Sizes["published"], false), All(HeldOut, Sizes["published"], true)
	models, traffics, seeds := map[string]bool{}, map[string]bool{}, map[uint64]bool{}
	for _, p := range tuning {
		models[p.Model] = true
		seeds[p.Seed] = true
		if p.Variant != "prefix_pool" { // No tuned traffic has prefixes.
			traffics[p.Traffic] = true
		}
		assert.True(t, p.Tuned, "%s is on a model that must not be tuned on", p.Name)
		assert.False(t, p.Recorded)
	}
	for _, m := range Models {
		assert.Equal(t, m.Tuned, models[m.Name], m.Name)
	}
	for _, k := range Traffics {
		if !k.Tuned {
			assert.False(t, traffics[k.Name], k.Name)
		}
	}
	for _, p := range held {
		for _, spent := range SpentSeeds {
			assert.False(t, p.Seed >= spent && p.Seed < spent+1_000_000, "%s has a seed that was looked at", p.Name)
		}
		assert.False(t, seeds[p.Seed], "%s has the seed of a tuning story", p.Name)
		assert.False(t, p.Seed >= 1_000 && p.Seed < 8_000_000, "%s has a seed of earlier pages", p.Name)
	}
}

func TestAtLeastTwoOfFiveModelsAreUntuned(t *testing.T) {
	untuned := 0
	for _, m := range Models {
		assert.Contains(t, engine.Models(), m.Name)
		if !m.Tuned {
			untuned++
		}
		assert.False(t, !m.Tuned && slices.Contains([]string{"8b-h100", "70b-tp4-h100", "34b-tp2-a100"}, m.Name), "%s was looked at on earlier pages", m.Name)
	}
	assert.GreaterOrEqual(t, len(Models), 5)
	assert.GreaterOrEqual(t, untuned, 2)
	for _, k := range Traffics {
		both := map[bool]bool{}
		for _, p := range pairs {
			if p.traffic == k.Name {
				both[modelTuned(p.model)] = true
			}
		}
		assert.Len(t, both, 2, "%s has a tuned and an untuned model", k.Name)
	}
}

// Faults of every kind and size are on every sort of background.
func TestThePublishedSetCoversWhatThePageIsAbout(t *testing.T) {
	plans := All(HeldOut, Sizes["published"], true)
	effects := map[string]map[float64]int{}
	var of, objectives, early, off, ramps, rising, retries, overlapping, pairsSeen float64
	least, most := math.Inf(1), 0.0
	untuned := map[string]int{}
	for _, p := range plans {
		switch p.Kind {
		case Single:
			in := p.Injections[0]
			if effects[p.Variant] == nil {
				effects[p.Variant] = map[float64]int{}
			}
			effects[p.Variant][in.Wanted]++
			of++
			if p.Objectives {
				objectives++
			}
			if in.At < 900 {
				early++
			}
			if math.Mod(in.At, 60) > 1 {
				off++
			}
			if in.Over > 0 {
				ramps++
			}
			if p.Rising {
				rising++
			}
			if p.Retries {
				retries++
			}
			least, most = min(least, p.Load), max(most, p.Load)
			if !p.Tuned && !p.Recorded {
				untuned[in.Cause]++
			}
		case Pair:
			pairsSeen++
			a, b := p.Injections[0], p.Injections[1]
			assert.NotEqual(t, a.Cause, b.Cause)
			if a.At < b.Until && b.At < a.Until {
				overlapping++
			}
		default:
		}
		assert.GreaterOrEqual(t, p.Interval, 10.0)
		assert.LessOrEqual(t, p.Interval, 30.0)
		for _, in := range p.Injections {
			assert.Less(t, in.At+in.Over, in.Ends(&p.Meta), p.Name)
			assert.LessOrEqual(t, in.Ends(&p.Meta), p.Seconds, p.Name)
		}
	}
	require.Len(t, effects, len(faults))
	for _, f := range faults {
		for _, e := range Effects {
			if f.value == 0 {
				assert.GreaterOrEqual(t, effects[f.parameter.String()][e], 4, "%s at effect %v", f.parameter, e)
			}
		}
	}
	for _, c := range append(slices.Clone(Inferred), ReadOff...) {
		assert.Positive(t, untuned[c], "%s on an untuned model", c)
	}
	assert.InDelta(t, 0.5, objectives/of, 0.07)
	assert.InDelta(t, 0.25, early/of, 0.05)
	assert.Greater(t, off/of, 0.9)
	assert.InDelta(t, 0.2, ramps/of, 0.08)
	assert.InDelta(t, 0.2, rising/of, 0.08)
	assert.InDelta(t, 0.12, retries/of, 0.05)
	assert.Greater(t, overlapping/pairsSeen, 0.8)
	assert.LessOrEqual(t, least, 0.35)
	assert.InDelta(t, 1.1, most, 1e-9)
}

func TestThePublishedSetIsLargeEnough(t *testing.T) {
	hours, cells := 0.0, map[string]float64{}
	for _, p := range All(HeldOut, Sizes["published"], false) {
		if p.Kind == Healthy {
			hours += p.Seconds / 3600
			cells[p.Model+" "+p.Traffic+" "+Band(p.Load)] += p.Seconds / 3600
		}
	}
	assert.GreaterOrEqual(t, hours, 4_000.0, "not all of them count")
	assert.Len(t, cells, len(pairs)*len(bands))
	for _, p := range pairs {
		for b := range bands {
			cell, share := p.model+" "+p.traffic+" "+bands[b].Name, counts[p.model][p.traffic][b]
			assert.GreaterOrEqual(t, cells[cell], 24.0, cell)
			if b < len(bands)-1 || share >= nearlyAll {
				assert.GreaterOrEqual(t, cells[cell]*share, 100.0, cell)
			}
		}
	}
}

// A row by cause and effect of fewer stories says little.
func TestThePublishedSetHasSevenStoriesOfEachCauseAndEffect(t *testing.T) {
	type of struct {
		cause  string
		effect float64
	}
	n := map[of]int{}
	for _, p := range All(HeldOut, Sizes["published"], false) {
		if p.Kind == Single {
			n[of{p.Injections[0].Cause, p.Injections[0].Wanted}]++
		}
	}
	for i := range faults {
		for _, effect := range Effects {
			cause := judge.CauseOf(faults[i].parameter)
			if faults[i].value != 0 {
				effect = 0
			}
			assert.GreaterOrEqual(t, n[of{cause, effect}], 7, "%s at effect %v", cause, effect)
		}
	}
}

// Of a minute with fewer than 20 requests it is not known whether it had harm: such a fault
// would leave the tables without a word.
func TestFaultsHaveEnoughRequestsToBeJudged(t *testing.T) {
	for _, p := range All(HeldOut, Sizes["published"], true) {
		if p.Kind == Healthy || Closed(p.Traffic) {
			continue
		}
		if knee := kneeOf(p.Model, p.Traffic).Rate; p.Rate < leastRate-1e-9 {
			assert.GreaterOrEqual(t, p.Rate, mostForRate*knee-1e-9, "%s has %.2f/s, and the knee is %.2f/s", p.Name, p.Rate, knee)
		}
	}
}

// The notice about frozen gauges is for a cache that seems more than half full.
func TestAFrozenGaugeShowsAFullCache(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of simulation")
	}
	race.SkipSequential(t)
	frozen := 0
	for _, p := range All(HeldOut, Sizes["published"], false) {
		if p.Kind != Exposition || p.Variant != string(judge.Frozen) {
			continue
		}
		frozen++
		story, err := p.Make()
		require.NoError(t, err)
		server, err := engine.New(story.Servers[0])
		require.NoError(t, err)
		server.AdvanceTo(p.Faults[0].At)
		assert.Greater(t, server.Stats()[0].KVUsage, 0.5, p.Name)
	}
	assert.GreaterOrEqual(t, frozen, 4)
}

// Minutes up to a window after the beginning of a fault of the exposition do not count.
func TestFaultsOfTheExpositionLastLongEnoughToBeScored(t *testing.T) {
	for _, p := range All(HeldOut, Sizes["published"], false) {
		if p.Kind == Exposition {
			assert.GreaterOrEqual(t, p.Faults[0].Until-p.Faults[0].At, 4*minute, p.Name)
		}
	}
}

// A background has all effects, and an effect all onsets: otherwise a share of one could be
// that of the other.
func TestEffectsBackgroundsAndOnsetsAreIndependent(t *testing.T) {
	type of struct{ variant, what string }
	seen := map[of]map[float64]int{}
	for _, p := range All(HeldOut, Sizes["published"], false) {
		if p.Kind != Single || p.Injections[0].Wanted == 0 || faultOf(parameterOf(t, p.Variant)).weight() < 1.25 {
			continue
		}
		in := p.Injections[0]
		for what, is := range map[string]bool{
			p.Model + ", " + p.Traffic: true, "early": in.At < 900, "rising": p.Rising, "a ramp": in.Over > 0,
		} {
			if key := (of{p.Variant, what}); is {
				if seen[key] == nil {
					seen[key] = map[float64]int{}
				}
				seen[key][in.Wanted]++
			}
		}
	}
	require.NotEmpty(t, seen)
	for key, effects := range seen {
		n := 0
		for _, k := range effects {
			n += k
		}
		least := 2 // Of few stories, some have the same effect by chance.
		if n >= 12 {
			least = 4
		}
		assert.GreaterOrEqual(t, len(effects), least, "%s, %s: %d stories have effects %v only", key.variant, key.what, n, effects)
	}
}

func parameterOf(t *testing.T, name string) engine.Parameter {
	t.Helper()
	for i := range faults {
		if faults[i].parameter.String() == name {
			return faults[i].parameter
		}
	}
	t.Fatalf("no fault %q", name)
	return 0
}

// Whatever part of a run is done, it has stories of all kinds.
func TestEveryBeginningIsAFairSample(t *testing.T) {
	plans := All(HeldOut, Sizes["published"], true)
	some := plans[:len(plans)/4]
	kinds, parameters, models := map[Kind]int{}, map[string]int{}, map[string]int{}
	for _, p := range some {
		kinds[p.Kind]++
		models[p.Model]++
		if p.Kind == Single {
			parameters[p.Variant]++
		}
	}
	for _, k := range []Kind{Single, Pair, Curve, Drift, FromStart, Healthy, Exposition} {
		assert.Positive(t, kinds[k], k)
	}
	assert.Len(t, models, len(Models))
	assert.Len(t, parameters, len(faults))
}

func TestEveryKindOfStoryCanBeMade(t *testing.T) {
	done := map[string]bool{}
	for _, p := range All(HeldOut, Sizes["tiny"], false) {
		// One of each kind, the long ones at low rates.
		what := string(p.Kind) + " " + p.Variant
		if done[what] || p.Kind == Healthy && p.Rate > 1 || p.Kind == Curve {
			continue
		}
		done[what] = true
		s, err := p.Make()
		require.NoError(t, err, p.Name)
		require.Len(t, s.Servers, p.Servers, p.Name)
		require.Len(t, s.Injections, len(p.Injections), p.Name)
		_, err = engine.New(s.Servers[0])
		require.NoError(t, err, p.Name)
		again, err := p.Make()
		require.NoError(t, err)
		assert.True(t, reflect.DeepEqual(s.Servers[0].Workload.Traffic, again.Servers[0].Workload.Traffic), "%s: made twice, it is the same", p.Name)
	}
	assert.Greater(t, len(done), len(faults)+5)
}

// flat is one request in each second.
func flat(seconds int) *engine.Traffic {
	t := &engine.Traffic{Span: float64(seconds)}
	for i := range seconds {
		t.Arrivals = append(t.Arrivals, engine.Arrival{At: float64(i), Prompt: int32(i), Output: 1})
	}
	return t
}

func TestTrafficRises(t *testing.T) {
	b := background{rises: 1800}
	given := flat(7200)
	got := b.shaped(given)
	require.Len(t, got.Arrivals, 7200, "no request is lost")
	n := func(from, to float64) (n int) {
		for i, a := range got.Arrivals {
			assert.Equal(t, given.Arrivals[i].Prompt, a.Prompt, "their order stays")
			if a.At >= from && a.At < to {
				n++
			}
		}
		return n
	}
	assert.InDelta(t, 1800, n(0, 1800), 2)
	assert.InDelta(t, 1800*1.2, n(1800, 3600), 3)
	assert.InDelta(t, 600*1.4, n(3600, 4200), 2)
	assert.InDelta(t, 7199, given.Arrivals[7199].At, 0, "the given traffic is not changed")
	assert.Less(t, got.Span, 7200.0)
	assert.GreaterOrEqual(t, got.Span, got.Arrivals[7199].At)
}

func TestTrafficBursts(t *testing.T) {
	b := background{rises: -1, bursts: []float64{600}}
	got := b.shaped(flat(3600))
	n := 0
	for _, a := range got.Arrivals {
		if a.At >= 600 && a.At < 600+burstSeconds {
			n++
		}
	}
	assert.InDelta(t, burstFactor*burstSeconds, n, 2)
}

func TestAWindowOfATraceHasTheWantedRate(t *testing.T) {
	given := flat(7200)
	for i := range given.Arrivals { // The second half has twice the rate.
		if i >= 2400 {
			given.Arrivals[i].At = 2400 + float64(i-2400)/2
		}
	}
	given.Span = 4800
	assert.InDelta(t, 7200, arrivalsBetween(given, 0, 4800), 0)
	assert.InDelta(t, 7200+100, arrivalsBetween(given, 0, 4900), 0, "it begins again")
	assert.InDelta(t, 200+100, arrivalsBetween(given, 4700, 4900), 0)
}

// A story that is listed with a load of 35 % has this load, whatever its tenants ask for.
func TestTheLoadOfAStoryIsTheWantedOne(t *testing.T) {
	for _, p := range pairs {
		if Closed(p.traffic) {
			continue
		}
		for seed := range uint64(4) {
			for _, seconds := range []float64{45 * minute, 4 * hour} {
				b := newBackground(p.model, p.traffic, 0.35+0.2*float64(seed))
				b.rate = max(b.rate, leastRate)
				got, _, _, err := b.arrivals(18_000_000+seed, seconds)
				require.NoError(t, err)
				assert.InDelta(t, 1, b.share(got, seconds), 0.1, "%s, %s, load %.2f, seed %d, %.0f s", p.model, p.traffic, b.load, seed, seconds)
			}
		}
	}
}

func TestBands(t *testing.T) {
	assert.Equal(t, "20-50 %", Band(0.2))
	assert.Equal(t, "50-80 %", Band(0.5))
	assert.Equal(t, "80-110 %", Band(0.8))
	assert.Equal(t, "80-110 %", Band(1.1))
}

// The table of knees is what the simulation finds.
func TestAKneeIsThatOfTheTable(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds of simulation")
	}
	race.SkipSequential(t)
	want := kneeOf("32b-h200", "reasoning")
	got, err := FindKnee(t.Context(), want.Model, want.Traffic)
	require.NoError(t, err)
	const renew = "the simulator has changed; to find the knees again: go run ./lab/test/accuracy/measure -knees"
	assert.InEpsilon(t, want.Rate, got.Rate, 0.01, renew)
	assert.InEpsilon(t, want.FirstToken, got.FirstToken, 0.01, renew)
	assert.InEpsilon(t, want.Gap, got.Gap, 0.01, renew)
}

func TestObjectivesAreWhatAHealthyServerKeeps(t *testing.T) {
	saved := knees
	t.Cleanup(func() { knees = saved })
	knees = []Knee{{Model: "m", Traffic: "t", Rate: 1, FirstToken: 0.33, Gap: 0.05}}
	got := objectives("m", "t")
	assert.Equal(t, "700ms", got[0].(map[string]any)["threshold"])
	assert.Equal(t, "75ms", got[1].(map[string]any)["threshold"])
}
