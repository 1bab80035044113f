package diagnose

import (
	"maps"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
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
		"first-tokens-at-end":              firstTokensAtEnd,
		"client-aborts-uncounted":          clientAborts,
		"negative-durations":               negativeDurations,
		"sessions-per-chunk":               sessionsPerChunk,
		"engine requests":                  engineRequests,
		"deferred-in-waiting":              deferredInWaiting,
		"cache-queries-recounted":          lookupsRepeated,
		"standstill with repeated lookups": standstillWithLookups,
		"standstill by change":             standstillByChange,
		"decode-side-finds-nothing":        nothingFound,
		"hits-uncounted":                   hitsUncounted,
		"negative-token-counts":            countersStop,
		"gap-per-output":                   gapPerOutput,
		"preemptions-counted-late":         preemptionsLate,
		"first-wait-only":                  firstWaitOnly,
		"client-errors-as-server-errors":   clientErrors,
		"handler-lost":                     handlerLost,
		"errors-uncounted":                 errorsUncounted,
		"cancelled ratio":                  cancelledRatio,
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
func signalsOf(t *testing.T, version string, signs input.Sign, all ...scraped) *signal.Values {
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
	maps.Copy(s.observed, map[input.Metric][2]float64{
		input.E2ERequestLatency: {15, 2.2}, input.QueueTime: {15, 0.02}, input.PrefillTime: {15, 0.06},
		input.DecodeTime: {15, 2}, input.InferenceTime: {15, 2.06}, input.RequestPromptTokens: {15, 500},
	})
	maps.Copy(s.counts, map[input.Metric]float64{input.PrefixCacheQueries: 7500, input.PrefixCacheHits: 1875, input.Preemptions: 0})
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
		assert.Equal(t, same, r.engine("0").Raw != Starting)
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
	s.labelled[input.WaitingByReason] = map[string]float64{"capacity": 0, "deferred": 0}
	ofOne := []signal.Signal{
		signal.Running, signal.Waiting, signal.Deferred, signal.KVUtilization, signal.KVPerToken, signal.KVPerComputed, signal.QueueWait, signal.ArrivalRate,
	}
	want := signalsOf(t, "0.27.0", input.Ray, answers(1), s)
	known(t, true, want, ofOne...)
	got := signalsOf(t, "0.20.0", input.Ray, answers(1), s)
	known(t, false, got, ofOne...)
	same(t, want, got, ofOne...)
	known(t, true, signalsOf(t, "0.20.0", input.Ray, answers(1), finishes("0"), finishes("1")), signal.Running, signal.Waiting)
	known(t, true, signalsOf(t, "0.20.0", 0, answers(1), s), signal.Running, signal.Waiting)
	r := newRig(t)
	r.version, r.signs = "0.20.0", input.Ray
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
	s.observed[input.TimeToFirstToken] = [2]float64{15, 0.3}
	same(t, want, signalsOf(t, "0.17.0", 0, answers(1), s), signal.TimeToFirstToken)
}

// The requests get their first tokens, and of every three only one ends.
func firstTokensAtEnd(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.counts[input.GenerationTokens] = s.observed[input.TimeToFirstToken][0] + s.observed[input.InterTokenLatency][0]
	want := signalsOf(t, "0.34.0", 0, answers(1), s)
	s.observed[input.TimeToFirstToken] = [2]float64{5, s.observed[input.TimeToFirstToken][1]}
	same(t, want, signalsOf(t, "0.34.0", input.LateFirstTokens, answers(1), s))
	assert.InDelta(t, want[signal.FirstTokenRate]/3, signalsOf(t, "0.34.0", 0, answers(1), s)[signal.FirstTokenRate], 1e-9)
}

// What a preempted request waits later is in its prefill: the two add up to the same.
func firstWaitOnly(t *testing.T) {
	t.Helper()
	s := finishes("0")
	want := signalsOf(t, "0.26.0", 0, answers(1), s)
	s.counts[input.Preemptions] = 5
	s.observed[input.QueueTime], s.observed[input.PrefillTime] = [2]float64{15, 0.01}, [2]float64{15, 0.07}
	s.observed[input.InferenceTime] = [2]float64{15, 2.07}
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
	fails.labelledCounts[input.RequestSuccess]["error"] = 15
	r.minutes(6, flood, fails)
	assert.Equal(t, Failing, r.verdict("0").Condition)
	// No request is answered well, and the engine gets none: no client is served, by whosever
	// fault. Where it may be the clients' it is not a page.
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
	s.labelledCounts = map[input.Metric]map[string]float64{input.HTTPRequests: {
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
	corrupt.counts[input.CorruptedRequests], corrupt.counts[input.Dropped] = 3, 15
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
		s.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {last: 15}}
		s.labelled[input.WaitingByReason] = map[string]float64{"deferred": 4}
		s.gauges[input.Waiting] = 6
		s.counts[input.CorruptedRequests], s.counts[input.Dropped] = 3, 15
		got := signalsOf(t, "0.20.0", input.Ray, answers(1), s)
		known(t, false, got, signal.ErrorRatio, signal.Deferred)
		assert.InDelta(t, 6, got[signal.QueueWait], 1e-9, "an upper bound")
		assert.InDelta(t, 0.2, got[signal.CorruptedRatio], 1e-9)
		assert.InDelta(t, 0.5, got[signal.DroppedRatio], 1e-9)
		r := newRig(t)
		r.version, r.signs = "0.20.0", input.Ray
		r.minutes(6, answers(1), serves("0"))
		healthy := serves("0")
		healthy.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {last: 15}}
		r = newRig(t)
		r.version, r.signs = "0.20.0", input.Ray
		r.minutes(15, answers(1), healthy)
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		// The same of a server without Ray is what it says.
		known(t, true, signalsOf(t, "0.20.0", 0, answers(1), s), signal.ErrorRatio, signal.Deferred)
	}
	// A server that has several reasons counts rightly.
	known(t, true, signalsOf(t, "0.20.0", input.Ray, answers(1), serves("0")), signal.ErrorRatio)
}

// A failure counts for each of four ranks. None that is counted is not evidence against.
func failuresPerRank(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.counts[input.FailedTransfers] = 4
	got := signalsOf(t, "0.26.0", input.Connector, answers(1), s)
	assert.GreaterOrEqual(t, got[signal.FailedTransfers], 1./15, "an upper bound")
	known(t, false, signalsOf(t, "0.23.0", input.Connector, answers(1), serves("0")), signal.FailedTransfers)
}

// Of the corrupted requests some are missed. Those that are counted are harm.
func corruptedMiscounted(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	s := serves("0")
	s.counts[input.CorruptedRequests], s.counts[input.Drafts] = 2, 100
	r.minutes(4, answers(1), s)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	assert.Equal(t, CorruptedOutput, r.verdict("0").Primary)
}

// The usage of a cache that is not known is absent, and nothing else with it.
func usagePerProcess(t *testing.T) {
	t.Helper()
	s := serves("0")
	want := signalsOf(t, "0.11.0", 0, answers(1), s)
	delete(s.gauges, input.KVCacheUtilization)
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
		s.gauges[input.KVCacheUtilization] = 0.0005
		r := newRig(t)
		r.version = version
		r.minutes(4, answers(1), s)
		assert.InDelta(t, want, r.engine("0").last.Signals[signal.KVUtilization], 0, "vLLM %q", version)
		assert.Equal(t, Idle, r.verdict("0").Condition)
	}
	busy := serves("0")
	got := signalsOf(t, "0.10.1", 0, answers(1), busy)
	busy.gauges[input.KVCacheUtilization] += 0.0005
	upper := signalsOf(t, "0.10.1", 0, answers(1), busy)
	for _, of := range []signal.Signal{signal.KVPerToken, signal.KVPerComputed} {
		assert.InEpsilon(t, got[of], upper[of], 0.0005/0.1+1e-9, of.String())
	}
}

func prefillDecodeSwapped(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.observed[input.PrefillTime], s.observed[input.DecodeTime] = s.observed[input.DecodeTime], s.observed[input.PrefillTime]
	got := signalsOf(t, "0.6.4", 0, answers(1), s)
	assert.InDelta(t, 0.06, got[signal.PrefillTime], 1e-9)
	assert.InDelta(t, 0.02, got[signal.QueueTime], 1e-9)
	known(t, false, signalsOf(t, "", input.V0, answers(1), s), signal.PrefillTime)
	assert.InDelta(t, 2, signalsOf(t, "0.6.5", 0, answers(1), s)[signal.PrefillTime], 1e-9)
	missed := func(version string, threshold float64) string {
		r := newRig(t)
		r.version = version
		r.settings.Objectives = []Objective{{Name: "prefill", Input: input.PrefillTime, Threshold: threshold, Target: 0.9, Matches: func(string) bool { return true }}}
		r.minutes(3, answers(1), s)
		return r.misses("0")
	}
	assert.Empty(t, missed("0.6.4", 0.1), "0.06 s is within it")
	assert.Equal(t, "prefill", missed("0.6.5", 0.1))
}

// The endpoint shows the microseconds between two readings of a clock.
func latenciesNearZero(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.observed[input.TimeToFirstToken], s.observed[input.InterTokenLatency] = [2]float64{15, 1e-5}, [2]float64{1485, 1e-5}
	of := []signal.Signal{signal.TimeToFirstToken, signal.StepTime, signal.InterTokenLatency, signal.StepFactor}
	known(t, false, signalsOf(t, "0.5.2", 0, answers(1), s), of...)
	known(t, false, signalsOf(t, "", input.V0, answers(1), s), of...)
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
	s.counts[input.GenerationTokens] /= 8
	s.observed[input.RequestGenerationTokens] = [2]float64{15, 12.5}
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
	s.observed[input.InterTokenLatency] = [2]float64{185, 0.08}
	r.minutes(12, answers(1), s)
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	s.observed[input.InterTokenLatency] = [2]float64{185, 0.16}
	r.minutes(6, answers(1), s)
	assert.Equal(t, Degraded, r.verdict("0").Condition, "twice as long")
	assert.Equal(t, SlowSteps, r.verdict("0").Primary)
}
