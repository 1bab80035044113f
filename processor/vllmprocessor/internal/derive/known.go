package derive

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// This file has what several rows do about the known defects of vLLM's metrics.
// internal/catalog/decisions.yaml has the decision for each metric and defect.

// withhold makes parts that could be used absent because of a defect.
func (p *Parts) withhold(wrong bool) {
	if wrong {
		p.Reason = defective(p.Reason)
	}
}

// These are the last values of the label of a counter, of all versions. Under Ray, all
// that an affected server counts is under the last.
var (
	lastReasons = []string{"abort", "error", "repetition"}
	lastSources = []string{"external_kv_transfer"}
)

// underLast reports whether a server counts everything under the last value of a label.
// It then exposes no other value. A server without the defect exposes all of them from
// the beginning.
func underLast(v *window.View, in input.Metric, last []string) bool {
	n, only := 0, ""
	for label := range v.Labels(in) {
		n, only = n+1, label.Value(0)
	}
	return n == 1 && slices.Contains(last, only) && v.Affected(catalog.DefectRayLastLabel)
}

// Mixed reports whether the gauges of an engine can be those of any engine of the server:
// through Ray each engine overwrites what another one wrote.
func Mixed(v *window.View) bool { return v.Affected(catalog.DefectRayLastEngine) }

// unmixed is the reason of a value that needs gauges of one engine.
func unmixed(v *window.View, reason Reason) Reason {
	if Mixed(v) {
		return defective(reason)
	}
	return reason
}

// defective is the reason of a value that a defect makes wrong, if there is one.
func defective(reason Reason) Reason {
	if reason == OK {
		return KnownDefect
	}
	return reason
}

// onlyALaterPosition reports whether all accepted tokens are counted under the last
// position: there is one, and it is not the first.
func onlyALaterPosition(v *window.View) bool {
	n, first := 0, false
	for label := range v.Labels(input.AcceptedTokensPerPosition) {
		n, first = n+1, first || label.Value(0) == "0"
	}
	return n == 1 && !first && v.Affected(catalog.DefectRayLastLabel)
}

// Frozen reports whether the gauges of an engine can be those of requests that are gone:
// there are requests, nothing was counted in the whole window, and the server can have
// the defect. A stall looks the same.
func Frozen(v *window.View) bool {
	running, _ := v.Gauge(input.Running)
	waiting, _ := v.Gauge(input.Waiting)
	if running+waiting <= 0 || !v.Affected(catalog.DefectGaugesFreezeOnAbort) {
		return false
	}
	stands, progress := progressOf(v)
	return stands && progress == 0
}

// firstTokens is the number of requests that got their first token. Where their times are observed
// when the requests end, it is the number of tokens before which there was no other: each output has
// one token, unless there is speculation, and each but the first has a time since the one before.
func firstTokens(v *window.View) (float64, window.Status) {
	if !v.Affected(catalog.DefectFirstTokensAtEnd) {
		count, _, _, status := v.Moments(input.TimeToFirstToken)
		return count, status
	}
	generated, status := v.Increase(input.GenerationTokens)
	gaps, _, _, statusGaps := v.Moments(input.InterTokenLatency)
	switch {
	case status == window.Pending || statusGaps == window.Pending:
		return 0, window.Pending
	case status != window.Present:
		return 0, status
	case statusGaps == window.Present && v.Shows("speculation"):
		return 0, window.Defective
	}
	return max(generated-gaps, 0), statusGaps
}

// progressOf returns what an engine did over the window; known is false where it does not
// say.
func progressOf(v *window.View) (known bool, progress float64) {
	for _, in := range []input.Metric{input.GenerationTokens, input.PromptTokens, input.RequestSuccess} {
		if n, status := v.Increase(in); status == window.Present {
			known = true
			progress += n
		}
	}
	if n, status := firstTokens(v); status == window.Present {
		known = true
		progress += n
	}
	return known, progress
}

var generated = rate(increase(input.GenerationTokens))

// generationRate is absent where the V0 engine can have counted one token for all steps of
// a scheduling. Nothing shows that a server has several of them.
func generationRate(settings *Settings, m *Member) (float64, Reason) {
	value, reason := generated(settings, m)
	if m.Now.AffectedV0(catalog.DefectMultiStepMiscounts) {
		reason = defective(reason)
	}
	return value, reason
}

// other is the distribution whose times can be those of another one: prefill and decode.
// It is the distribution itself for those that are not swapped.
func other(in input.Metric) input.Metric {
	switch in {
	case input.PrefillTime:
		return input.DecodeTime
	case input.DecodeTime:
		return input.PrefillTime
	}
	return in
}

// source is the distribution that has the times of a metric. It is another one where a
// server swaps prefill and decode.
func source(v *window.View, in input.Metric) (input.Metric, Reason) {
	swapped := other(in)
	switch {
	case swapped == in || !v.AffectedV0(catalog.DefectPrefillDecodeSwapped):
		return in, OK
	case v.Known():
		return swapped, OK
	}
	return in, KnownDefect
}

// unsound reports whether a defect makes the times of a distribution wrong in this window.
func unsound(v *window.View, in input.Metric) bool {
	switch in {
	case input.TimeToFirstToken:
		return nearZero(v, in)
	case input.InterTokenLatency:
		return untimed(v) || SeveralSteps(v)
	}
	return false
}

// untimed reports whether the sum of the times between tokens, or the number of tokens, can
// be wrong.
func untimed(v *window.View) bool {
	return nearZero(v, input.InterTokenLatency) || v.AffectedV0(catalog.DefectMultiStepMiscounts)
}

// SeveralSteps reports whether one time stands for the tokens of several steps: there are
// about as many tokens after the first as times, or with two steps or more at least twice
// as many. Nothing else shows that a server has several steps per scheduling.
func SeveralSteps(v *window.View) bool {
	if !v.AffectedV0(catalog.DefectMultiStepGaps) {
		return false
	}
	gaps, _, _, status := v.Moments(input.InterTokenLatency)
	generated, statusGenerated := v.Increase(input.GenerationTokens)
	first, statusFirst := firstTokens(v)
	return worst(status, statusGenerated, statusFirst) == OK && generated-first > 1.5*gaps
}

// Untrusted reports whether a defect makes the times of a distribution wrong in this
// window, so that none of them can be compared with a threshold.
func Untrusted(v *window.View, in input.Metric) bool {
	from, why := source(v, in)
	return from != in || why != OK || unsound(v, in)
}

// nearZero reports whether times can be those that some V0 servers observed as about 0.
// Where the version is not known, all of them must be in the first bucket.
func nearZero(v *window.View, in input.Metric) bool {
	if !v.AffectedV0(catalog.DefectLatenciesNearZero) {
		return false
	}
	if v.Known() {
		return true
	}
	var all window.Histogram
	if v.AddTo(&all, in) != window.Present || len(all.Counts) == 0 {
		return false
	}
	return all.Count > 0 && all.Counts[0] == all.Count
}

// bySource returns what reads a distribution, or the other one where a server swaps the two.
func bySource[T any](in input.Metric, read func(input.Metric) T) func(*window.View) (T, Reason) {
	same, swapped := read(in), read(other(in))
	return func(v *window.View) (T, Reason) {
		from, why := source(v, in)
		if from != in {
			return swapped, why
		}
		return same, why
	}
}

// trusted is a quotient about a distribution, absent where the distribution is unsound.
func trusted(in input.Metric, average func(input.Metric) func(*Settings, *Member) Parts) func(*Settings, *Member) Parts {
	choose := bySource(in, average)
	return func(settings *Settings, m *Member) Parts {
		of, why := choose(&m.Now)
		parts := of(settings, m)
		parts.withhold(why == KnownDefect || parts.Denominator > 0 && unsound(&m.Now, in))
		return parts
	}
}

// trustedQuantiles is the same for quantiles.
func trustedQuantiles(
	in input.Metric, read func(input.Metric) func(*Member, *window.Histogram) Reason,
) func(*Member, *window.Histogram) Reason {
	choose := bySource(in, read)
	return func(m *Member, dst *window.Histogram) Reason {
		of, why := choose(&m.Now)
		reason := of(m, dst)
		if reason == OK && dst.Count > 0 && (why == KnownDefect || unsound(&m.Now, in)) {
			return KnownDefect
		}
		return reason
	}
}

var meanStep = mean(input.IterationTokens)

// stepTokens is the mean number of tokens of a step. Before v0.23 a step includes what a
// cache or a transfer spared: the server counts that, too, for the same steps.
func stepTokens(settings *Settings, m *Member) Parts {
	v := &m.Now
	parts := meanStep(settings, m)
	if parts.Reason != OK || parts.Denominator == 0 {
		return parts
	}
	parts.withhold(v.Shows("api_servers") && v.Affected(catalog.DefectStepsSplitOverApiServers))
	if !v.Affected(catalog.DefectStepTokensWithCached) {
		return parts
	}
	cached, status := v.Increase(input.PromptTokensCached)
	includes, shown := true, v.Known()
	if !shown {
		includes, shown = includesCached(v, parts.Numerator, cached)
	}
	switch {
	case status == window.Missing:
		parts.withhold(foundEver(v))
	case status != window.Present:
		parts.Reason = worst(status)
	case cached > 0 && !shown:
		parts.withhold(true)
	case !includes:
	case cached > parts.Numerator:
		parts.Reason = Contradiction
	default:
		parts.Numerator -= cached
	}
	return parts
}

// includesCached reports whether steps include what a cache or a transfer spared. A server
// counts the tokens of a step and those of prompts and outputs together. So the steps have
// either all tokens of the prompts or all but the cached ones. shown is false where neither
// is exactly so.
func includesCached(v *window.View, steps, cached float64) (includes, shown bool) {
	prompts, status := v.Increase(input.PromptTokens)
	generated, statusGenerated := v.Increase(input.GenerationTokens)
	if worst(status, statusGenerated) != OK {
		return false, false
	}
	switch steps {
	case prompts + generated:
		return true, true
	case prompts + generated - cached:
		return false, true
	}
	return false, false
}

// foundEver reports whether a cache or a connector may have spared tokens.
func foundEver(v *window.View) bool {
	for _, in := range []input.Metric{input.PrefixCacheHits, input.ExternalPrefixCacheHits} {
		if n, status := v.Total(in); status != window.Missing && n > 0 {
			return true
		}
	}
	return false
}

// This file has what the diagnosis shares with the derived metrics, so that both read an
// input with a known defect in the same way.

// Mean returns how many observations a distribution got over the window, and their mean.
// Both are NaN where the server does not report them, and the mean where a defect makes
// it wrong.
func Mean(v *window.View, in input.Metric) (count, mean float64) {
	from, why := source(v, in)
	n, sum, hasSum, status := v.Moments(from)
	switch {
	case status != window.Present:
		return math.NaN(), math.NaN()
	case !hasSum, n <= 0, why == KnownDefect, unsound(v, in):
		return n, math.NaN()
	}
	return n, sum / n
}

// FirstTokens is how many requests got their first token over the window; NaN where it is not known.
func FirstTokens(v *window.View) float64 {
	n, status := firstTokens(v)
	if status != window.Present {
		return math.NaN()
	}
	return n
}

// FoundInCache returns the share of the prompt tokens that the prefix cache found; NaN with
// a reason where it is not known.
func FoundInCache(v *window.View) (share float64, reason Reason) {
	parts := prefixHits(nil, &Member{Now: *v})
	switch {
	case parts.Reason != OK:
		return math.NaN(), parts.Reason
	case !(parts.Denominator > 0):
		return math.NaN(), Idle
	case parts.Numerator > parts.Denominator:
		return math.NaN(), Contradiction
	}
	return parts.Numerator / parts.Denominator, OK
}

// Reasons reports whether the server counts finished requests by the reason for which they
// ended. Under Ray, some count all of them under the last one.
func Reasons(v *window.View) bool { return !underLast(v, input.RequestSuccess, lastReasons) }

// Tokens reports whether the server counts generated tokens rightly. The V0 engine did not with
// several steps per scheduling, and nothing shows that setting.
func Tokens(v *window.View) bool { return !v.AffectedV0(catalog.DefectMultiStepMiscounts) }

// Observations adds the observations of a distribution over the window to a histogram.
// They are those of another distribution where a server swaps the two.
func Observations(v *window.View, dst *window.Histogram, in input.Metric) Reason {
	from, why := source(v, in)
	switch {
	case why != OK:
		return why
	case unsound(v, in):
		return KnownDefect
	}
	return Because(v.AddTo(dst, from))
}
