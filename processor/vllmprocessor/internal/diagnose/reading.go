package diagnose

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// reading is what an engine reports over the window that ends now.
type reading struct {
	signal.Window
	// fromServer has dropped of the engine where it counts them itself, and refused only where its
	// errors are those of the server.
	fromServer

	// elapsed is the length of the window in seconds; 0 where there is none yet.
	elapsed float64
	// The latest states; NaN where the server does not report them.
	runningNow, waitingNow, deferredNow, awake float64
	// fetching are the deferred requests of the window that wait for KV from elsewhere; NaN where that is
	// not known.
	fetching float64
	// gaps is the number of intervals between outputs in the window, finished that of
	// requests that ended.
	gaps, finished float64
	// severalSteps is true where one gap is that of the tokens of several steps.
	severalSteps bool
	// progress has numbers that change whenever an engine works, generated tokens
	// first; NaN for those that the server does not report.
	progress [numProgress]number
	// received are the same as the server sends them: a collector that has restarted reads the
	// same.
	received [numProgress]number
	// cancelled is the number of requests in the window that clients cancelled, of all that ended; both are 0
	// where it is not known.
	cancelled, ended float64
	// endedByEngine is what the engine has finished, as a total.
	endedByEngine float64
	// doubtful is true where the gauges may be those of requests that are gone.
	doubtful bool
	// hidden are the requests that the files and the load of the server show, and the gauges do not.
	hidden float64
	// recent is what the last half minute alone shows, served how many requests got their first token
	// since the reading before, and servedAfter the mean of the seconds that they waited for it; NaN where
	// that is not known.
	recent              recent
	served, servedAfter float64
	// restarted is the time of the last restart in Unix nanoseconds; 0 without one.
	restarted int64
	// worst is the objective that is missed most, relative to what its target allows.
	worst missed
	// keeps is whether the objectives say that late first tokens, or slow tokens, are no harm.
	keeps [missedObjective]bool
	// mostMissed is the objective that the most requests miss.
	mostMissed missed
	// leastWait is the least mean wait in seconds where requests wait and none got its first token
	// in the window; else 0.
	leastWait float64
	// lacks is true where the server reports neither latency of tokens, so that there is
	// nothing to judge.
	lacks bool
}

// missed is an objective that was missed in the window.
type missed struct {
	name  string
	input input.Metric
	// share is the share of observations that are certainly beyond the threshold. allowed
	// is the share that the target allows.
	share, allowed float64
	// seen is the number of observations, undecided the share of them in the bucket that the
	// threshold splits.
	seen, undecided float64
}

// transfersFail reports whether a share of the KV transfers fails that matters.
func (r *reading) transfersFail() bool {
	return r.Signals[signal.FailedTransfers] > failingTransfers*r.Signals[signal.FirstTokenRate]
}

type reader struct {
	settings *Settings
	fromServer
}

// value is a number of a view; NaN where the server does not report it.
func value(v float64, status window.Status) float64 {
	if status != window.Present {
		return math.NaN()
	}
	return v
}

// before is the time of the reading before; 0 without one.
func (r *reader) read(v *window.View, at, before int64) reading {
	out := reading{Window: signal.Window{Signals: signal.Unknown(), At: at}, fromServer: r.fromServer, elapsed: v.Elapsed}
	out.refused = false
	out.runningNow = value(v.Gauge(input.Running))
	out.waitingNow = value(v.Gauge(input.Waiting))
	out.deferredNow = value(v.GaugeOf(input.WaitingByReason, "deferred"))
	if out.awake = value(v.GaugeOf(input.SleepState, "awake")); r.toSleep {
		out.awake = 0
	}
	out.fetching = fetching(v)
	out.Canaries = v.Canaries()
	if before > 0 {
		out.recent.read(v, time.Duration(at-before))
	}
	since := v.Over(time.Duration(at - before))
	out.served = derive.FirstTokens(&since)
	_, out.servedAfter = derive.Mean(&since, input.TimeToFirstToken)
	out.restarted, _ = v.Restarted()
	out.progress = progressOf(v, func(in input.Metric) float64 { return value(v.Total(in)) })
	out.received = progressOf(v, v.Received)
	out.endedByEngine = value(v.Total(input.RequestSuccess))
	s := &out.Signals
	s[signal.Running] = value(v.Average(input.Running))
	s[signal.KVUtilization] = WithoutNullBlock(v, value(v.Average(input.KVCacheUtilization)))
	out.Capacity, _ = derive.Capacity(v)
	s[signal.Waiting] = value(v.Average(input.Waiting))
	s[signal.Deferred] = deferred(v)
	capacity := s[signal.Waiting] - signal.OrZero(s[signal.Deferred])

	timed, ttft := derive.Mean(v, input.TimeToFirstToken)
	firstTokens := derive.FirstTokens(v)
	gaps, step := derive.Mean(v, input.InterTokenLatency)
	finished, output := derive.Mean(v, input.RequestGenerationTokens)
	_, _, _, firstReported := v.Moments(input.TimeToFirstToken)
	_, _, _, gapReported := v.Moments(input.InterTokenLatency)
	out.lacks = firstReported == window.Missing && gapReported == window.Missing
	out.FirstTokens, out.gaps, out.severalSteps = timed, gaps, derive.SeveralSteps(v)
	s[signal.TimeToFirstToken], s[signal.StepTime] = ttft, step
	rate := firstTokens / v.Elapsed
	s[signal.FirstTokenRate] = rate
	admitted := max(firstTokens+value(v.Change(input.Waiting)), 0)
	s[signal.ArrivalRate] = admitted / v.Elapsed
	generated, prompt := value(v.Increase(input.GenerationTokens)), value(v.Increase(input.PromptTokens))
	if !derive.Tokens(v) {
		generated, output = math.NaN(), math.NaN()
	}
	out.Generation = generated / v.Elapsed
	s[signal.GenerationRate] = out.Generation

	s[signal.PromptTokens] = prompt / firstTokens
	share := computedShare(v)
	s[signal.ComputedTokens] = s[signal.PromptTokens] * share
	// The mean over finished requests is exact. Without it, tokens per first token are
	// used, which are wrong for a while after lengths or rates change.
	s[signal.OutputTokens] = signal.Or(output, generated/firstTokens)
	preempted := value(v.Increase(input.Preemptions))
	s[signal.Preemptions] = preempted / firstTokens
	// A preempted request computes its prompt and what it had generated again.
	again := signal.OrZero(preempted) / v.Elapsed * (s[signal.PromptTokens] + signal.OrZero(s[signal.OutputTokens])/2)
	// At most all prompts are computed. Then a step has at least the time that its load
	// explains, so that it is not taken for slow where it is not.
	out.Computed = prompt*signal.Or(share, 1)/v.Elapsed + signal.OrZero(again)

	if drafts := value(v.Increase(input.Drafts)); drafts > 0 {
		s[signal.AcceptanceLength] = 1 + value(v.Increase(input.AcceptedTokens))/drafts
	}
	s[signal.InterTokenLatency] = step
	if tokens := generated - firstTokens; signal.Known(s[signal.AcceptanceLength]) && tokens > 0 {
		s[signal.InterTokenLatency] = step * gaps / tokens
	}
	s[signal.QueueWait] = capacity / rate
	if firstTokens == 0 && capacity >= 1 {
		out.leastWait = capacity * v.Elapsed // By Little's law, with less than one request in the window.
	}
	queued, queue := derive.Mean(v, input.QueueTime)
	prefilled, prefill := derive.Mean(v, input.PrefillTime)
	s[signal.PrefillTime] = prefill
	if queued == prefilled {
		// Some servers observe only requests that had to queue: another mean.
		s[signal.QueueTime] = queue
	}
	s[signal.KVBlockReuses] = reuses(v)
	s[signal.FrontEnd] = frontEnd(v)
	s[signal.KVPerToken] = s[signal.KVUtilization] / (s[signal.Running] * (s[signal.PromptTokens] + s[signal.OutputTokens]/2))
	s[signal.KVPerComputed] = s[signal.KVUtilization] / (s[signal.Running] * (s[signal.ComputedTokens] + s[signal.OutputTokens]/2))
	ended := value(v.Increase(input.RequestSuccess))
	if derive.Reasons(v) {
		s[signal.ErrorRatio] = value(v.IncreaseOf(input.RequestSuccess, "error")) / ended
	}
	if gone, of, reason := derive.Cancelled(v); reason == derive.OK {
		out.cancelled, out.ended = gone, of
		s[signal.CancelledRatio] = gone / of
	}
	s[signal.CorruptedRatio] = min(value(v.Increase(input.CorruptedRequests))/ended, 1)
	out.finished = signal.Or(finished, ended)
	if signal.Known(r.errors) && !(s[signal.ErrorRatio] >= r.errors) {
		out.refused = r.refused
		// Requests that the front end refuses never end in an engine.
		s[signal.ErrorRatio], out.finished = r.errors, max(signal.OrZero(out.finished), signal.OrZero(r.answered))
	}
	if out.dropped = value(v.Increase(input.Dropped)); signal.Known(out.dropped) {
		s[signal.DroppedRatio] = out.dropped / (out.dropped + signal.OrZero(signal.Or(admitted, ended)))
	} else if out.dropped = r.dropped; signal.Known(out.dropped) {
		s[signal.DroppedRatio] = out.dropped / (out.dropped + r.arrived)
	}
	s[signal.FailedTransfers] = value(v.Increase(input.FailedTransfers)) / v.Elapsed
	if r.merged {
		out.Computed = math.NaN()
		for _, of := range ofOneEngine {
			s[of] = math.NaN()
		}
	}
	for i := range s {
		if math.IsInf(s[i], 0) {
			s[i] = math.NaN()
		}
	}
	if r.settings != nil {
		out.worst, out.mostMissed, out.keeps = r.settings.missed(v)
		if out.mostMissed.name != "" {
			s[signal.MissedRatio] = out.mostMissed.share
		}
	}
	return out
}

// ofOneEngine are the signals that need a gauge of the same engines as the counters.
var ofOneEngine = []signal.Signal{
	signal.Running, signal.Waiting, signal.Deferred, signal.KVUtilization, signal.KVPerToken, signal.KVPerComputed, signal.QueueWait, signal.ArrivalRate,
}

// lookups are the prefix cache's, where they show progress. A request that waits can be
// looked up at each step, also where the engine can never admit it.
func lookups(v *window.View, number func(input.Metric) float64) float64 {
	if waiting, _ := v.Gauge(input.Waiting); waiting > 0 && v.Affected(catalog.DefectCacheQueriesRecounted) {
		return 0
	}
	return number(input.PrefixCacheQueries)
}

// The places of the numbers of progress.
const (
	generatedTokens = iota
	cacheLookups
	cacheInUse
	estimatedFLOPs
	promptTokens

	numProgress
)

// progressOf are the numbers that change whenever an engine works.
func progressOf(v *window.View, total func(input.Metric) float64) [numProgress]number {
	return [numProgress]number{
		generatedTokens: number(total(input.GenerationTokens)), cacheLookups: number(lookups(v, total)),
		cacheInUse: number(total(input.KVCacheUtilization)), estimatedFLOPs: number(total(input.EstimatedFLOPs)),
		// A model that only embeds generates nothing, and may have no KV cache.
		promptTokens: number(total(input.PromptTokens)),
	}
}

// computedShare is the share of the prompt tokens that were computed and not found in a
// cache; 1 where the server does not report it, and NaN where a defect hides it.
func computedShare(v *window.View) float64 {
	found, all := value(v.Increase(input.PromptTokensCached)), value(v.Increase(input.PromptTokens))
	if found <= all && all > 0 {
		return 1 - found/all
	}
	share, reason := derive.FoundInCache(v)
	if reason == derive.KnownDefect {
		return math.NaN()
	}
	return 1 - signal.OrZero(share)
}

// nullBlock is more than the share of one block in a KV cache of the usual size. Some
// versions count the block that is never used.
const nullBlock = 1e-3

// WithoutNullBlock is a utilization of the KV cache without a block that is never used.
func WithoutNullBlock(v *window.View, utilization float64) float64 {
	if utilization < nullBlock && v.Affected(catalog.DefectNullBlockUsed) {
		return 0
	}
	return utilization
}

// deferred is the number of requests that wait for something other than capacity. Under
// Ray some servers write the requests of each reason over those of the one before, and so
// have one reason only.
func deferred(v *window.View) float64 {
	reasons := 0
	for range v.Labels(input.WaitingByReason) {
		reasons++
	}
	if reasons == 1 && v.Affected(catalog.DefectRayLastLabel) {
		return math.NaN()
	}
	return value(v.AverageOf(input.WaitingByReason, "deferred"))
}

// fetching is the number of deferred requests whose KV comes from elsewhere, or has come and waits for
// its turn. Those in the stage waiting_to_start wait for capacity. Since 0.32 a server without the number
// has no connector that could fetch.
func fetching(v *window.View) float64 {
	loading, status := v.AverageOf(input.KVFetches, "in_progress")
	loaded, _ := v.AverageOf(input.KVFetches, "completed_waiting")
	if status == window.Missing && !v.Before(countsFetches) && !v.Shows("connector") {
		return 0
	}
	return value(loading+loaded, status)
}

// countsFetches is the first version that counts requests by the stage of their KV fetch.
var countsFetches = catalog.Release{0, 32}

// reuses is how often an evicted KV block had been used again. vLLM
// observes both distributions when it evicts a block
// (vllm/v1/core/kv_cache_metrics.py).
func reuses(v *window.View) float64 {
	evicted, _ := derive.Mean(v, input.KVBlockIdle)
	gaps, _ := derive.Mean(v, input.KVBlockReuseGap)
	if !(evicted >= leastObjectiveSeen) {
		return math.NaN()
	}
	return gaps / evicted
}

// frontEnd is the mean time that finished requests spent outside the engine.
func frontEnd(v *window.View) float64 {
	n, all := derive.Mean(v, input.E2ERequestLatency)
	queued, queue := derive.Mean(v, input.QueueTime)
	inferred, inference := derive.Mean(v, input.InferenceTime)
	if n != queued || n != inferred {
		return math.NaN()
	}
	outside := all - queue - inference
	if outside < -clocks {
		// With streaming input the whole is that of the last chunk only.
		return math.NaN()
	}
	return max(outside, 0)
}

// clocks is by how much the parts of a request's time can exceed the whole, which another
// clock measures, in seconds.
const clocks = 0.01
