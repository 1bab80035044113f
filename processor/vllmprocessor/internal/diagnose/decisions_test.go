package diagnose

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// TestDecisions has a subtest for each decision of internal/catalog/decisions.yaml about
// signals that no other test proves. Each plants the defect and compares with the truth,
// which is worked out by hand.
func TestDecisions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T){
		"scale-up-resets":                  scaleUp,
		"only-last-engine":                 onlyLastEngine,
		"rust-served-name":                 rustServedName,
		"ray-last-engine":                  rayLastEngine,
		"counts of first tokens":           countsOfFirstTokens,
		"first-token-without-token":        firstTokenWithoutToken,
		"client-aborts-uncounted":          clientAborts,
		"negative-durations":               negativeDurations,
		"sessions-per-chunk":               sessionsPerChunk,
		"engine requests":                  engineRequests,
		"deferred-in-waiting":              deferredInWaiting,
		"cache-queries-recounted":          lookupsRepeated,
		"standstill with repeated lookups": standstillWithLookups,
		"standstill by change":             standstillByChange,
		"decode-side-finds-nothing":        nothingFound,
		"negative-token-counts":            countersStop,
		"gap-per-output":                   gapPerOutput,
		"preemptions-counted-late":         preemptionsLate,
		"first-wait-only":                  firstWaitOnly,
		"client-errors-as-server-errors":   clientErrors,
		"handler-lost":                     handlerLost,
		"errors-uncounted":                 errorsUncounted,
		"ray-last-label":                   rayLastLabel,
		"nixl-per-rank":                    failuresPerRank,
		"corrupted-miscounted":             corruptedMiscounted,
		"usage-per-process":                usagePerProcess,
		"null-block-used":                  nullBlockUsed,
		"prefill-decode-swapped":           prefillDecodeSwapped,
		"latencies-near-zero":              latenciesNearZero,
		"multi-step-miscounts":             multiStepMiscounts,
		"multi-step-gaps":                  multiStepGaps,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// signalsOf are the signals of engine 0 of a server of a version, after two minutes.
func signalsOf(t *testing.T, version string, signs collect.Sign, all ...scraped) *signal.Values {
	t.Helper()
	r := newRig(t)
	r.version, r.signs = version, signs
	r.minutes(2, all...)
	require.NotNil(t, r.engine(all[1].engine))
	return &r.engine(all[1].engine).last.Signals
}

func known(t *testing.T, want bool, s *signal.Values, of ...signal.Signal) {
	t.Helper()
	for _, one := range of {
		assert.Equal(t, want, signal.Known(s[one]), one.String())
	}
}

// same reports that two readings do not differ, except in some signals.
func same(t *testing.T, want, got *signal.Values, except ...signal.Signal) {
	t.Helper()
	for s := range signal.Count {
		excepted := false
		for _, one := range except {
			excepted = excepted || one == s
		}
		if !excepted && !(math.IsNaN(want[s]) && math.IsNaN(got[s])) {
			assert.InDelta(t, want[s], got[s], 1e-9*math.Abs(want[s]), s.String())
		}
	}
}

// finishes is an engine that also reports the times of the requests that it finishes, and
// its prefix cache: a quarter of the prompts is found.
func finishes(engine string) scraped {
	s := serves(engine)
	maps.Copy(s.observed, map[collect.Input][2]float64{
		collect.E2ERequestLatency: {15, 2.2}, collect.QueueTime: {15, 0.02}, collect.PrefillTime: {15, 0.06},
		collect.DecodeTime: {15, 2}, collect.InferenceTime: {15, 2.06}, collect.RequestPromptTokens: {15, 500},
	})
	maps.Copy(s.counts, map[collect.Input]float64{collect.PrefixCacheQueries: 7500, collect.PrefixCacheHits: 1875, collect.Preemptions: 0})
	return s
}

// Two engines become three. All counters of vLLM begin at 0, and the process goes on. With
// another process it is a restart.
func scaleUp(t *testing.T) {
	t.Helper()
	for _, same := range []bool{true, false} {
		r := newRig(t)
		r.version, r.process = "0.19.1", 1e9
		r.minutes(12, answers(1), serves("0"), serves("1"))
		usual := r.engine("0").baseline.Windows
		require.Greater(t, usual, 5)
		clear(r.counters)
		clear(r.sums)
		clear(r.buckets)
		if !same {
			r.process += 1000
		}
		r.scrape(answers(1), serves("0"), serves("1"), serves("2"))
		assert.Equal(t, same, r.engine("0").last.restarted == 0)
		assert.Equal(t, same, r.engine("0").raw != Starting)
		r.minutes(4, answers(1), serves("0"), serves("1"), serves("2"))
		starts := strings.Contains(r.conditions("0"), "starting")
		assert.Equal(t, !same, starts)
		if !same {
			continue
		}
		assert.NotContains(t, r.conditions("2"), "starting")
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		assert.Equal(t, Healthy, r.verdict("2").Condition)
		assert.Greater(t, r.engine("0").baseline.Windows, usual, "it learns on")
		assert.InDelta(t, 1, r.engine("0").last.Signals[signal.FirstTokenRate], 1e-9)
		assert.Empty(t, r.upgrades)
	}
}

// Of four engines only the last one is seen.
func onlyLastEngine(t *testing.T) {
	t.Helper()
	same(t, signalsOf(t, "0.27.0", 0, answers(1), serves("0")), signalsOf(t, "0.9.2", 0, answers(1), serves("3")))
}

func rustServedName(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.23.0"
	r.minutes(12, answers(1), serves("0"))
	r.restart()
	r.version, r.model = "0.24.0", "served-name"
	r.minutes(2, answers(1), serves("0"))
	for _, e := range r.state.engines {
		assert.LessOrEqual(t, e.baseline.Windows, 2, "a new engine")
	}
	assert.Len(t, r.state.engines, 1)
}

// Under Ray both engines write the series of the last one, 1.
func rayLastEngine(t *testing.T) {
	t.Helper()
	s := finishes("1")
	s.labelled[collect.WaitingByReason] = map[string]float64{"capacity": 0, "deferred": 0}
	ofOne := []signal.Signal{
		signal.Running, signal.Waiting, signal.Deferred, signal.KVUtilization, signal.KVPerToken, signal.KVPerComputed, signal.QueueWait, signal.ArrivalRate,
	}
	want := signalsOf(t, "0.27.0", collect.Ray, answers(1), s)
	known(t, true, want, ofOne...)
	got := signalsOf(t, "0.20.0", collect.Ray, answers(1), s)
	known(t, false, got, ofOne...)
	same(t, want, got, ofOne...)
	known(t, true, signalsOf(t, "0.20.0", collect.Ray, answers(1), finishes("0"), finishes("1")), signal.Running, signal.Waiting)
	known(t, true, signalsOf(t, "0.20.0", 0, answers(1), s), signal.Running, signal.Waiting)
	r := newRig(t)
	r.version, r.signs = "0.20.0", collect.Ray
	r.minutes(12, answers(1), s)
	known(t, false, &r.engine("1").last.Signals, signal.StepFactor, signal.PrefillFactor)
	r.version = "0.21.0"
	r.minutes(12, answers(1), s)
	known(t, true, &r.engine("1").last.Signals, signal.StepFactor, signal.PrefillFactor)
}

// The times of first tokens have another meaning, or are about 0. Their number has not.
func countsOfFirstTokens(t *testing.T) {
	t.Helper()
	s := finishes("0")
	want := signalsOf(t, "0.16.0", 0, answers(1), s)
	s.observed[collect.TimeToFirstToken] = [2]float64{15, 0.3}
	same(t, want, signalsOf(t, "0.17.0", 0, answers(1), s), signal.TimeToFirstToken)
}

// Of 20 requests 5 fail in their prefill, which is observed as a first token.
func firstTokenWithoutToken(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.labelledCounts = map[collect.Input]map[string]float64{collect.RequestSuccess: {"stop": 15, "error": 5}}
	s.observed[collect.TimeToFirstToken] = [2]float64{20, 0.1}
	s.counts[collect.PromptTokens] = 10000
	s.counts[collect.PrefixCacheQueries], s.counts[collect.PrefixCacheHits] = 10000, 2500
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	assert.InDelta(t, 20./15, got[signal.ArrivalRate], 1e-9, "all of them arrived")
	assert.InDelta(t, 500, got[signal.PromptTokens], 1e-9)
	assert.InDelta(t, 375, got[signal.ComputedTokens], 1e-9)
	// The bound is the share that fails, which is a signal itself.
	assert.InDelta(t, 0.25, got[signal.ErrorRatio], 1e-9)
	assert.InEpsilon(t, 15./15, got[signal.FirstTokenRate], got[signal.ErrorRatio]/(1-got[signal.ErrorRatio])+1e-9)
}

// Clients abort as many requests as finish. The means are those of the others, and harm
// to those who leave is seen all the same.
func clientAborts(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.26.0"
	r.minutes(12, answers(1), finishes("0"))
	late := finishes("0")
	late.observed[collect.TimeToFirstToken] = [2]float64{30, 3}
	late.counts[collect.PromptTokens] = 15000
	r.minutes(4, answers(1), late)
	got := &r.engine("0").last.Signals
	assert.InDelta(t, 0.02, got[signal.QueueTime], 1e-9, "of those who stayed")
	assert.InDelta(t, 100, got[signal.OutputTokens], 1e-9)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
}

// A request that ends before it is scheduled adds minus the uptime to the time in the
// queue, and the uptime to those of prefill and inference.
func negativeDurations(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.26.0"
	r.settings.Objectives = []Objective{{Name: "queue", Input: collect.QueueTime, Threshold: 0.05, Target: 0.9, Matches: func(string) bool { return true }}}
	r.minutes(12, answers(1), finishes("0"))
	usual := *r.engine("0").baseline
	r.plant(answers(1), finishes("0"), map[collect.Input]float64{collect.QueueTime: -1e6, collect.PrefillTime: 1e6, collect.InferenceTime: 1e6})
	of := []signal.Signal{signal.QueueTime, signal.PrefillTime, signal.FrontEnd, signal.PrefillFactor, signal.MissedRatio}
	for n := range 3 {
		known(t, false, &r.engine("0").last.Signals, of...)
		assert.Zero(t, r.engine("0").last.restarted, "a sum that falls is no restart")
		assert.Equal(t, Healthy, r.verdict("0").Condition, n)
		r.scrape(answers(1), finishes("0"))
	}
	r.minutes(2, answers(1), finishes("0"))
	known(t, true, &r.engine("0").last.Signals, of...)
	r.minutes(12, answers(1), finishes("0"))
	b := r.engine("0").baseline
	assert.InDelta(t, usual.Usual(signal.QueueTime), b.Usual(signal.QueueTime), 1e-6)
	assert.InDelta(t, usual.Usual(signal.PrefillTime), b.Usual(signal.PrefillTime), 1e-6)
}

// The whole of a session is that of its last chunk, and less than its parts.
func sessionsPerChunk(t *testing.T) {
	t.Helper()
	s := finishes("0")
	want := signalsOf(t, "0.26.0", 0, answers(1), s)
	assert.InDelta(t, 0.12, want[signal.FrontEnd], 1e-9)
	s.observed[collect.E2ERequestLatency] = [2]float64{15, 1}
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	known(t, false, got, signal.FrontEnd)
	// Another clock measures the whole: a few milliseconds are no contradiction.
	s.observed[collect.E2ERequestLatency] = [2]float64{15, 2.075}
	assert.Zero(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.FrontEnd])
}

// Each request has four choices, or a beam search of four steps: the engine has four times
// as many requests, in each of its numbers. What it is per request is the same.
func engineRequests(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.labelledCounts[collect.RequestSuccess]["error"] = 5
	want := signalsOf(t, "0.26.0", 0, answers(1), s)
	for in := range s.gauges {
		s.gauges[in] *= 4
	}
	for in := range s.counts {
		s.counts[in] *= 4
	}
	for in, o := range s.observed {
		s.observed[in] = [2]float64{4 * o[0], o[1]}
	}
	for label := range s.labelledCounts[collect.RequestSuccess] {
		s.labelledCounts[collect.RequestSuccess][label] *= 4
	}
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	for _, rate := range []signal.Signal{signal.FirstTokenRate, signal.ArrivalRate, signal.GenerationRate, signal.Running, signal.KVUtilization} {
		assert.InEpsilon(t, 4*want[rate], got[rate], 1e-9, rate.String())
	}
	same(t, want, got, signal.FirstTokenRate, signal.ArrivalRate, signal.GenerationRate, signal.Running, signal.KVUtilization)
	// A dropped request counts once: its share is a lower bound.
	dropped := serves("0")
	dropped.counts[collect.Dropped] = 15
	half := signalsOf(t, "0.26.0", 0, answers(1), dropped)[signal.DroppedRatio]
	assert.InDelta(t, 0.5, half, 1e-9)
	s.counts[collect.Dropped] = 15
	assert.Less(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.DroppedRatio], half)
}

// Six wait, four of them for something else.
func deferredInWaiting(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.gauges[collect.Waiting] = 6
	old := signalsOf(t, "0.19.1", 0, answers(1), s)
	s.labelled[collect.WaitingByReason] = map[string]float64{"capacity": 2, "deferred": 4}
	exact := signalsOf(t, "0.20.0", 0, answers(1), s)
	assert.InDelta(t, 2, exact[signal.QueueWait], 1e-9)
	assert.InDelta(t, 6, old[signal.QueueWait], 1e-9, "an upper bound")
	known(t, false, old, signal.Deferred)
	for _, of := range []signal.Signal{signal.Waiting, signal.ArrivalRate} {
		assert.InDelta(t, exact[of], old[of], 1e-9)
	}
}

// A request of 20,000 tokens waits for a place, and is looked up 50 times a second. A
// quarter of each prompt is found, and all of the one that waits.
func lookupsRepeated(t *testing.T) {
	t.Helper()
	again := func(s scraped) scraped {
		s.counts[collect.PrefixCacheQueries] += 50 * 15 * 20_000
		s.counts[collect.PrefixCacheHits] += 50 * 15 * 20_000
		return s
	}
	of := []signal.Signal{signal.ComputedTokens, signal.KVPerComputed}
	exact := signalsOf(t, "0.15.0", 0, answers(1), finishes("0"))
	assert.InDelta(t, 375, exact[signal.ComputedTokens], 1e-9)
	known(t, false, signalsOf(t, "0.15.0", 0, answers(1), again(finishes("0"))), of...)
	// The server counts what it found for each prompt once.
	counts := again(finishes("0"))
	counts.counts[collect.PromptTokensCached] = 1875
	same(t, exact, signalsOf(t, "0.26.0", 0, answers(1), counts), signal.Standstill)
	// A preempted request found its own blocks up to 0.11.0.
	own := finishes("0")
	own.counts[collect.Preemptions] = 1
	known(t, false, signalsOf(t, "0.10.2", 0, answers(1), own), of...)
	known(t, true, signalsOf(t, "0.11.1", 0, answers(1), own), of...)

	// A step is not taken for slow because of what it may have found, and the window is not
	// learned as one in which everything was computed.
	r := newRig(t)
	r.version = "0.15.0"
	r.minutes(12, answers(1), finishes("0"))
	before := *r.engine("0").baseline
	factor := r.engine("0").last.Signals[signal.StepFactor]
	assert.InDelta(t, 1, factor, 0.05)
	r.minutes(2, answers(1), again(finishes("0")))
	known(t, false, &r.engine("0").last.Signals, signal.PrefillFactor)
	assert.LessOrEqual(t, r.engine("0").last.Signals[signal.StepFactor], factor+1e-9, "a lower bound")
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	r.minutes(10, answers(1), again(finishes("0")))
	assert.InDelta(t, before.Usual(signal.ComputedTokens), r.engine("0").baseline.Usual(signal.ComputedTokens), 1e-6)
	assert.InDelta(t, before.Step.N, r.engine("0").baseline.Step.N, 2.1, "but for what was healthy before")
}

// An engine hangs in admission: it looks the first request of its queue up, again and
// again, and computes nothing.
func standstillWithLookups(t *testing.T) {
	t.Helper()
	for version, want := range map[string]Condition{"0.26.0": Stalled, "": Stalled, "0.27.0": Healthy} {
		r := newRig(t)
		r.version = version
		r.minutes(12, answered(15), finishes("0"))
		waits := finishes("0")
		waits.gauges[collect.Waiting] = 1
		r.scrape(answered(15), waits)
		hangs := standsStill("0")
		hangs.gauges = waits.gauges
		hangs.labelledCounts = map[collect.Input]map[string]float64{collect.RequestSuccess: {"stop": 0, "error": 0}}
		hangs.counts[collect.PrefixCacheQueries], hangs.counts[collect.PrefixCacheHits] = 37500, 0
		r.minutes(1.5, answered(0), hangs)
		if want == Stalled {
			assert.Equal(t, want, r.verdict("0").Condition, version)
			assert.InDelta(t, 90, r.engine("0").last.Signals[signal.Standstill], 1, version)
		} else {
			assert.NotEqual(t, Stalled, r.verdict("0").Condition, "lookups are not repeated: something is done")
		}
	}
	// While nothing waits, a lookup is work.
	r := newRig(t)
	r.version = "0.26.0"
	r.minutes(3, answers(1), finishes("0"))
	prefill := standsStill("0")
	prefill.gauges[collect.Waiting] = 0
	prefill.counts[collect.PrefixCacheQueries], prefill.counts[collect.PrefixCacheHits] = 7500, 0
	r.minutes(2, answers(1), prefill)
	assert.Zero(t, r.engine("0").last.Signals[signal.Standstill])
}

// Whatever a number is wrong by, it moves when the engine works.
func standstillByChange(t *testing.T) {
	t.Helper()
	for _, in := range []collect.Input{collect.EstimatedFLOPs, collect.PromptTokens, collect.GenerationTokens} {
		s := standsStill("0")
		s.counts[collect.EstimatedFLOPs] = 0
		s.counts[in] = 1e-3
		assert.Zero(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.Standstill], in)
	}
}

// The decode side finds nothing: all of the prompt is work, or comes from elsewhere.
func nothingFound(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.counts[collect.PrefixCacheHits] = 0
	got := signalsOf(t, "0.23.0", collect.Connector, answers(1), s)
	assert.InDelta(t, 500, got[signal.ComputedTokens], 1e-9)
}

// A negative number stops the counters and fails requests, which is a stall with requests
// in the gauges, or a server that does not answer.
func countersStop(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.15.0"
	works := finishes("0")
	works.counts[collect.Drafts], works.counts[collect.AcceptedTokens] = 700, 785
	r.minutes(12, answers(1), works)
	got := r.engine("0").last.Signals
	assert.InDelta(t, 1+785./700, got[signal.AcceptanceLength], 1e-9)
	r.minutes(2, answers(1), standsStill("0"))
	assert.Equal(t, Stalled, r.verdict("0").Condition)
	r.minutes(3, answers(0))
	assert.Equal(t, Unreachable, r.verdict("0").Condition)
}

// 1485 tokens come in 700 outputs of 0.04 s.
func gapPerOutput(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.observed[collect.InterTokenLatency] = [2]float64{700, 0.04}
	s.counts[collect.Drafts], s.counts[collect.AcceptedTokens] = 700, 785
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	assert.InDelta(t, 700*0.04/1485, got[signal.InterTokenLatency], 1e-9)
	assert.InDelta(t, 0.04, got[signal.StepTime], 1e-9)
	// The objective is about the metric, of which no output is early.
	r := newRig(t)
	r.settings.Objectives = []Objective{{Name: "gap", Input: collect.InterTokenLatency, Threshold: 0.02, Target: 0.9, Matches: func(string) bool { return true }}}
	s.observed[collect.TimePerOutputToken] = [2]float64{15, 0.019}
	r.minutes(3, answers(1), s)
	assert.Equal(t, "gap", r.engine("0").last.objective.name)
}

// Preemptions are counted when the requests return: until then a full cache is seen.
func preemptionsLate(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.26.0"
	r.minutes(12, answers(1), finishes("0"))
	full := finishes("0")
	full.gauges[collect.KVCacheUtilization], full.gauges[collect.Waiting] = 0.99, 20
	full.observed[collect.TimeToFirstToken] = [2]float64{15, 20}
	r.minutes(4, answers(1), full)
	e := r.engine("0")
	assert.Zero(t, e.last.Signals[signal.Preemptions], "a lower bound")
	g := newGrowths(&e.last, e.baseline)
	assert.True(t, g.kvFull)
	assert.False(t, e.contradicted(r.settings, &e.last, KVPressure))
	// Work that is computed again and is not counted yet makes steps seem slow, not fast.
	late := e.last.Signals[signal.StepFactor]
	full.counts[collect.Preemptions] = 30
	r.minutes(2, answers(1), full)
	assert.GreaterOrEqual(t, late, r.engine("0").last.Signals[signal.StepFactor])
}

// What a preempted request waits later is in its prefill: the two add up to the same.
func firstWaitOnly(t *testing.T) {
	t.Helper()
	s := finishes("0")
	want := signalsOf(t, "0.26.0", 0, answers(1), s)
	s.counts[collect.Preemptions] = 5
	s.observed[collect.QueueTime], s.observed[collect.PrefillTime] = [2]float64{15, 0.01}, [2]float64{15, 0.07}
	s.observed[collect.InferenceTime] = [2]float64{15, 2.07}
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	assert.Less(t, got[signal.QueueTime], want[signal.QueueTime], "a lower bound")
	assert.Greater(t, got[signal.PrefillTime], want[signal.PrefillTime], "an upper bound")
	assert.InDelta(t, want[signal.FrontEnd], got[signal.FrontEnd], 1e-9)
	assert.Positive(t, got[signal.Preemptions], "which shows it")
}

// A client floods the server with requests that are wrong by themselves. Affected versions
// count them with 5xx.
func clientErrors(t *testing.T) {
	t.Helper()
	for version, want := range map[string]Condition{"0.24.0": Healthy, "": Healthy, "0.27.0": Failing} {
		r := newRig(t)
		r.version = version
		r.minutes(12, answers(1), serves("0"))
		flood := answers(1)
		http(&flood, 300, 15)
		r.minutes(6, flood, serves("0"))
		assert.Equal(t, want, r.verdict("0").Condition, "vLLM %q", version)
	}
	// Requests that end with an error in the engine are errors of the server.
	r := newRig(t)
	r.version = "0.24.0"
	r.minutes(12, answers(1), serves("0"))
	flood, fails := answers(1), serves("0")
	http(&flood, 300, 15)
	fails.labelledCounts[collect.RequestSuccess]["error"] = 15
	r.minutes(6, flood, fails)
	assert.Equal(t, Failing, r.verdict("0").Condition)
	// No request is answered well, and the engine gets none: nobody is served, by whosever
	// fault. Where it may be the clients' it is no page.
	for version, want := range map[string]Condition{"0.10.2": Failing, "0.12.0": Failing, "0.20.0": Degraded, "0.25.0": Degraded, "": Degraded, "0.26.0": Failing} {
		r := newRig(t)
		r.version = version
		r.minutes(12, answers(1), serves("0"))
		outage := answers(1)
		http(&outage, 15, 0)
		r.minutes(6, outage, rests("0"))
		v := r.verdict("0")
		assert.Equal(t, want, v.Condition, "vLLM %q", version)
		assert.True(t, v.Explained, "vLLM %q", version)
		assert.Equal(t, Erroring, v.Primary, "vLLM %q", version)
		assert.InDelta(t, 1, r.engine("0").last.Signals[signal.ErrorRatio], 1e-9, "vLLM %q", version)
		// One success in the window shows that the server works.
		http(&outage, 15, 1)
		r.minutes(6, outage, rests("0"))
		assert.Equal(t, version != "0.10.2" && version != "0.12.0" && version != "0.26.0", r.verdict("0").Condition == Idle, "vLLM %q", version)
	}
}

// All requests have the handler none, those for health checks, too.
func handlerLost(t *testing.T) {
	t.Helper()
	s := answers(1)
	s.labelledCounts = map[collect.Input]map[string]float64{collect.HTTPRequests: {
		"5xx\x00none\x00POST": 5, "2xx\x00none\x00POST": 10, "2xx\x00none\x00GET": 5,
	}}
	got := signalsOf(t, "0.27.0", 0, s, serves("0"))[signal.ErrorRatio]
	assert.InDelta(t, 0.25, got, 1e-9)
	assert.LessOrEqual(t, got, 5./15, "a lower bound")
}

// Requests that never reach the engine end in none of its counts.
func errorsUncounted(t *testing.T) {
	t.Helper()
	s := answers(1)
	http(&s, 5, 15)
	got := signalsOf(t, "0.27.0", 0, s, serves("0"))
	assert.InDelta(t, 0.25, got[signal.ErrorRatio], 1e-9)
	without := signalsOf(t, "0.27.0", 0, answers(1), serves("0"))
	assert.Zero(t, without[signal.ErrorRatio])
	corrupt := serves("0")
	corrupt.counts[collect.CorruptedRequests], corrupt.counts[collect.Dropped] = 3, 15
	got = signalsOf(t, "0.27.0", 0, s, corrupt)
	assert.InDelta(t, 0.2, got[signal.CorruptedRatio], 1e-9)
	assert.InDelta(t, 0.5, got[signal.DroppedRatio], 1e-9)
}

// Every finished request is counted with the last reason, and deferred requests overwrite
// those that wait for capacity.
func rayLastLabel(t *testing.T) {
	t.Helper()
	for _, last := range []string{"error", "repetition"} {
		s := serves("0")
		s.labelledCounts = map[collect.Input]map[string]float64{collect.RequestSuccess: {last: 15}}
		s.labelled[collect.WaitingByReason] = map[string]float64{"deferred": 4}
		s.gauges[collect.Waiting] = 6
		s.counts[collect.CorruptedRequests], s.counts[collect.Dropped] = 3, 15
		got := signalsOf(t, "0.20.0", collect.Ray, answers(1), s)
		known(t, false, got, signal.ErrorRatio, signal.Deferred)
		assert.InDelta(t, 6, got[signal.QueueWait], 1e-9, "an upper bound")
		assert.InDelta(t, 0.2, got[signal.CorruptedRatio], 1e-9)
		assert.InDelta(t, 0.5, got[signal.DroppedRatio], 1e-9)
		r := newRig(t)
		r.version, r.signs = "0.20.0", collect.Ray
		r.minutes(6, answers(1), serves("0"))
		healthy := serves("0")
		healthy.labelledCounts = map[collect.Input]map[string]float64{collect.RequestSuccess: {last: 15}}
		r = newRig(t)
		r.version, r.signs = "0.20.0", collect.Ray
		r.minutes(15, answers(1), healthy)
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		// The same of a server without Ray is what it says.
		known(t, true, signalsOf(t, "0.20.0", 0, answers(1), s), signal.ErrorRatio, signal.Deferred)
	}
	// A server that has several reasons counts rightly.
	known(t, true, signalsOf(t, "0.20.0", collect.Ray, answers(1), serves("0")), signal.ErrorRatio)
}

// A failure counts for each of four ranks. None that is counted is no evidence against.
func failuresPerRank(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.counts[collect.FailedTransfers] = 4
	got := signalsOf(t, "0.26.0", collect.Connector, answers(1), s)
	assert.GreaterOrEqual(t, got[signal.FailedTransfers], 1./15, "an upper bound")
	known(t, false, signalsOf(t, "0.23.0", collect.Connector, answers(1), serves("0")), signal.FailedTransfers)
}

// Of the corrupted requests some are missed. Those that are counted are harm.
func corruptedMiscounted(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	s := serves("0")
	s.counts[collect.CorruptedRequests], s.counts[collect.Drafts] = 2, 100
	r.minutes(4, answers(1), s)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	assert.Equal(t, CorruptedOutput, r.verdict("0").Primary)
}

// The usage of a cache that nobody can tell is absent, and nothing else with it.
func usagePerProcess(t *testing.T) {
	t.Helper()
	s := serves("0")
	want := signalsOf(t, "0.11.0", 0, answers(1), s)
	delete(s.gauges, collect.KVCacheUtilization)
	got := signalsOf(t, "0.11.0", 0, answers(1), s)
	of := []signal.Signal{signal.KVUtilization, signal.KVPerToken, signal.KVPerComputed}
	known(t, false, got, of...)
	same(t, want, got, of...)
}

// An empty cache of 2000 blocks has one in use.
func nullBlockUsed(t *testing.T) {
	t.Helper()
	for version, want := range map[string]float64{"0.10.1": 0, "0.10.2": 0.0005, "": 0} {
		s := rests("0")
		s.gauges[collect.KVCacheUtilization] = 0.0005
		r := newRig(t)
		r.version = version
		r.minutes(4, answers(1), s)
		assert.InDelta(t, want, r.engine("0").last.Signals[signal.KVUtilization], 0, "vLLM %q", version)
		assert.Equal(t, Idle, r.verdict("0").Condition)
	}
	busy := serves("0")
	got := signalsOf(t, "0.10.1", 0, answers(1), busy)
	busy.gauges[collect.KVCacheUtilization] += 0.0005
	upper := signalsOf(t, "0.10.1", 0, answers(1), busy)
	for _, of := range []signal.Signal{signal.KVPerToken, signal.KVPerComputed} {
		assert.InEpsilon(t, got[of], upper[of], 0.0005/0.1+1e-9, of.String())
	}
}

func prefillDecodeSwapped(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.observed[collect.PrefillTime], s.observed[collect.DecodeTime] = s.observed[collect.DecodeTime], s.observed[collect.PrefillTime]
	got := signalsOf(t, "0.6.4", 0, answers(1), s)
	assert.InDelta(t, 0.06, got[signal.PrefillTime], 1e-9)
	assert.InDelta(t, 0.02, got[signal.QueueTime], 1e-9)
	known(t, false, signalsOf(t, "", collect.V0, answers(1), s), signal.PrefillTime)
	assert.InDelta(t, 2, signalsOf(t, "0.6.5", 0, answers(1), s)[signal.PrefillTime], 1e-9)
	missed := func(version string, threshold float64) string {
		r := newRig(t)
		r.version = version
		r.settings.Objectives = []Objective{{Name: "prefill", Input: collect.PrefillTime, Threshold: threshold, Target: 0.9, Matches: func(string) bool { return true }}}
		r.minutes(3, answers(1), s)
		return r.engine("0").last.objective.name
	}
	assert.Empty(t, missed("0.6.4", 0.1), "0.06 s is within it")
	assert.Equal(t, "prefill", missed("0.6.5", 0.1))
}

// The endpoint shows the microseconds between two readings of a clock.
func latenciesNearZero(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.observed[collect.TimeToFirstToken], s.observed[collect.InterTokenLatency] = [2]float64{15, 1e-5}, [2]float64{1485, 1e-5}
	of := []signal.Signal{signal.TimeToFirstToken, signal.StepTime, signal.InterTokenLatency, signal.StepFactor}
	known(t, false, signalsOf(t, "0.5.2", 0, answers(1), s), of...)
	known(t, false, signalsOf(t, "", collect.V0, answers(1), s), of...)
	known(t, true, signalsOf(t, "0.5.4", 0, answers(1), s), of[:3]...)
	assert.InDelta(t, 1, signalsOf(t, "0.5.2", 0, answers(1), s)[signal.FirstTokenRate], 1e-9)
	r := newRig(t)
	r.version = "0.5.2"
	r.settings.Objectives = objectives()
	r.minutes(3, answers(1), s)
	known(t, false, &r.engine("0").last.Signals, signal.MissedRatio)
}

// Eight steps per scheduling count one token for each sequence.
func multiStepMiscounts(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.counts[collect.GenerationTokens] /= 8
	s.observed[collect.RequestGenerationTokens] = [2]float64{15, 12.5}
	of := []signal.Signal{signal.GenerationRate, signal.OutputTokens, signal.KVPerToken, signal.KVPerComputed}
	got := signalsOf(t, "0.6.3", 0, answers(1), s)
	known(t, false, got, of...)
	known(t, true, got, signal.TimeToFirstToken, signal.PromptTokens, signal.ErrorRatio, signal.FrontEnd, signal.Running)
	known(t, true, signalsOf(t, "0.6.4", 0, answers(1), s), of...)
}

// A time is that of eight tokens, before and after: what is usual is wrong by the same.
func multiStepGaps(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.8.0"
	s := finishes("0")
	s.observed[collect.InterTokenLatency] = [2]float64{185, 0.08}
	r.minutes(12, answers(1), s)
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	s.observed[collect.InterTokenLatency] = [2]float64{185, 0.16}
	r.minutes(4, answers(1), s)
	assert.Equal(t, Degraded, r.verdict("0").Condition, "twice as long")
	assert.Equal(t, SlowSteps, r.verdict("0").Primary)
}
