package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Of 20 requests 5 fail in their prefill, which is observed as a first token.
func firstTokenWithoutToken(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 15, "error": 5}}
	s.observed[input.TimeToFirstToken] = [2]float64{20, 0.1}
	s.counts[input.PromptTokens] = 10000
	s.counts[input.PrefixCacheQueries], s.counts[input.PrefixCacheHits] = 10000, 2500
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
	late.observed[input.TimeToFirstToken] = [2]float64{30, 3}
	late.counts[input.PromptTokens] = 15000
	late.gauges[input.Waiting] = 6 // Two arrive in a second, and each waits for 3 s.
	r.minutes(6, answers(1), late)
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
	r.settings.Objectives = []Objective{{Name: "queue", Input: input.QueueTime, Threshold: 0.05, Target: 0.9, Matches: func(string) bool { return true }}}
	r.minutes(12, answers(1), finishes("0"))
	usual := *r.engine("0").baseline
	r.plant(answers(1), finishes("0"), map[input.Metric]float64{input.QueueTime: -1e6, input.PrefillTime: 1e6, input.InferenceTime: 1e6})
	of := []signal.Signal{signal.QueueTime, signal.PrefillTime, signal.FrontEnd, signal.PrefillFactor, signal.MissedRatio}
	for n := range 3 {
		known(t, false, &r.engine("0").last.Signals, of...)
		assert.Zero(t, r.engine("0").last.restarted, "a sum that falls is not a restart")
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
	s.observed[input.E2ERequestLatency] = [2]float64{15, 1}
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	known(t, false, got, signal.FrontEnd)
	// Another clock measures the whole: a few milliseconds are no contradiction.
	s.observed[input.E2ERequestLatency] = [2]float64{15, 2.075}
	assert.Zero(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.FrontEnd])
}

// Each request has four choices, or a beam search of four steps: the engine has four times
// as many requests, in each of its numbers. What it is per request is the same.
func engineRequests(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.labelledCounts[input.RequestSuccess]["error"] = 5
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
	for label := range s.labelledCounts[input.RequestSuccess] {
		s.labelledCounts[input.RequestSuccess][label] *= 4
	}
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	for _, rate := range []signal.Signal{signal.FirstTokenRate, signal.ArrivalRate, signal.GenerationRate, signal.Running, signal.KVUtilization} {
		assert.InEpsilon(t, 4*want[rate], got[rate], 1e-9, rate.String())
	}
	same(t, want, got, signal.FirstTokenRate, signal.ArrivalRate, signal.GenerationRate, signal.Running, signal.KVUtilization)
	// A dropped request counts once: its share is a lower bound.
	dropped := serves("0")
	dropped.counts[input.Dropped] = 15
	half := signalsOf(t, "0.26.0", 0, answers(1), dropped)[signal.DroppedRatio]
	assert.InDelta(t, 0.5, half, 1e-9)
	s.counts[input.Dropped] = 15
	assert.Less(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.DroppedRatio], half)
}

// Six wait, four of them for something else.
func deferredInWaiting(t *testing.T) {
	t.Helper()
	s := serves("0")
	s.gauges[input.Waiting] = 6
	old := signalsOf(t, "0.19.1", 0, answers(1), s)
	s.labelled[input.WaitingByReason] = map[string]float64{"capacity": 2, "deferred": 4}
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
		s.counts[input.PrefixCacheQueries] += 50 * 15 * 20_000
		s.counts[input.PrefixCacheHits] += 50 * 15 * 20_000
		return s
	}
	of := []signal.Signal{signal.ComputedTokens, signal.KVPerComputed}
	exact := signalsOf(t, "0.15.0", 0, answers(1), finishes("0"))
	assert.InDelta(t, 375, exact[signal.ComputedTokens], 1e-9)
	known(t, false, signalsOf(t, "0.15.0", 0, answers(1), again(finishes("0"))), of...)
	// The server counts what it found for each prompt once.
	counts := again(finishes("0"))
	counts.counts[input.PromptTokensCached] = 1875
	same(t, exact, signalsOf(t, "0.26.0", 0, answers(1), counts), signal.Standstill)
	// A preempted request found its own blocks up to 0.11.0.
	own := finishes("0")
	own.counts[input.Preemptions] = 1
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
		waits.gauges[input.Waiting] = 1
		r.scrape(answered(15), waits)
		hangs := standsStill("0")
		hangs.gauges = waits.gauges
		hangs.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 0, "error": 0}}
		hangs.counts[input.PrefixCacheQueries], hangs.counts[input.PrefixCacheHits] = 37500, 0
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
	prefill.gauges[input.Waiting] = 0
	prefill.counts[input.PrefixCacheQueries], prefill.counts[input.PrefixCacheHits] = 7500, 0
	r.minutes(2, answers(1), prefill)
	assert.Zero(t, r.engine("0").last.Signals[signal.Standstill])
}

// Whatever a number is wrong by, it moves when the engine works.
func standstillByChange(t *testing.T) {
	t.Helper()
	for _, in := range []input.Metric{input.EstimatedFLOPs, input.PromptTokens, input.GenerationTokens} {
		s := standsStill("0")
		s.counts[input.EstimatedFLOPs] = 0
		s.counts[in] = 1e-3
		assert.Zero(t, signalsOf(t, "0.26.0", 0, answers(1), s)[signal.Standstill], in)
	}
}

// The decode side finds nothing: all of the prompt is work, or comes from elsewhere.
func nothingFound(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.counts[input.PrefixCacheHits] = 0
	got := signalsOf(t, "0.23.0", input.Connector, answers(1), s)
	assert.InDelta(t, 500, got[signal.ComputedTokens], 1e-9)
}

// Of 500 tokens of a prompt 200 are found, and the hits do not say so.
func hitsUncounted(t *testing.T) {
	t.Helper()
	s := finishes("0")
	s.counts[input.PrefixCacheHits], s.counts[input.PromptTokensCached] = 0, 3000
	got := signalsOf(t, "0.32.0", 0, answers(1), s)
	assert.InDelta(t, 300, got[signal.ComputedTokens], 1e-9)
}

// A negative number stops the counters and fails requests, which is a stall with requests
// in the gauges, or a server that does not answer.
func countersStop(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.15.0"
	works := finishes("0")
	works.counts[input.Drafts], works.counts[input.AcceptedTokens] = 700, 785
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
	s.observed[input.InterTokenLatency] = [2]float64{700, 0.04}
	s.counts[input.Drafts], s.counts[input.AcceptedTokens] = 700, 785
	got := signalsOf(t, "0.26.0", 0, answers(1), s)
	assert.InDelta(t, 700*0.04/1485, got[signal.InterTokenLatency], 1e-9)
	assert.InDelta(t, 0.04, got[signal.StepTime], 1e-9)
	// The objective is about the metric, of which no output is early.
	r := newRig(t)
	r.settings.Objectives = []Objective{{Name: "gap", Input: input.InterTokenLatency, Threshold: 0.02, Target: 0.9, Matches: func(string) bool { return true }}}
	s.observed[input.TimePerOutputToken] = [2]float64{15, 0.019}
	r.minutes(3, answers(1), s)
	assert.Equal(t, "gap", r.misses("0"))
}

// Preemptions are counted when the requests return: until then a full cache is seen.
func preemptionsLate(t *testing.T) {
	t.Helper()
	r := newRig(t)
	r.version = "0.26.0"
	r.minutes(12, answers(1), finishes("0"))
	full := finishes("0")
	full.gauges[input.KVCacheUtilization], full.gauges[input.Waiting] = 0.99, 20
	full.observed[input.TimeToFirstToken] = [2]float64{15, 20}
	r.minutes(4, answers(1), full)
	e := r.engine("0")
	assert.Zero(t, e.last.Signals[signal.Preemptions], "a lower bound")
	assert.True(t, cacheFull(&e.last))
	assert.False(t, e.contradicted(r.settings, &e.last, KVPressure))
	// Work that is computed again and is not counted yet makes steps seem slow, not fast.
	late := e.last.Signals[signal.StepFactor]
	full.counts[input.Preemptions] = 30
	r.minutes(2, answers(1), full)
	assert.GreaterOrEqual(t, late, r.engine("0").last.Signals[signal.StepFactor])
}
