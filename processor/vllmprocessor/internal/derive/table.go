package derive

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Rows returns every derived metric of a resource in the order of their emission.
func Rows() []Row { return rows }

// Detailed reports whether the setting percentiles::detailed switches a metric on.
func Detailed(metric string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Metric == metric && r.detailed })
}

var rows = slices.Concat([]Row{
	{Metric: "vllm.prefix_cache.hit_ratio", Quotient: prefixHits, share: true},
	{Metric: "vllm.prompt_tokens_cached_ratio", Quotient: increases(input.PromptTokensCached, input.PromptTokens), share: true},
	{Metric: "vllm.prompt_tokens_cached_by_source_ratio", Extra: []string{"source"}, Several: cachedIn},
	{Metric: "vllm.external_prefix_cache.hit_ratio", Quotient: externalHits, share: true},
	{Metric: "vllm.external_prefix_cache.hit_throughput", Additive: externalHitRate},
	{Metric: "vllm.mm_cache.hit_ratio", Quotient: increases(input.MMCacheHits, input.MMCacheQueries), share: true, shared: catalog.DefectMmCacheUnderAnyEngine},

	{Metric: "vllm.prompt_throughput", Additive: rate(increase(input.PromptTokens))},
	{Metric: "vllm.prefill_compute_throughput", Additive: computed},
	{Metric: "vllm.generation_throughput", Additive: generationRate},
	{Metric: "vllm.request_throughput", Additive: rate(increase(input.RequestSuccess))},
	{Metric: "vllm.first_token_rate", Additive: rate(firstTokens)},
	{Metric: "vllm.preemption_rate", Additive: rate(increase(input.Preemptions))},
	{Metric: "vllm.arrival_rate", Additive: arrivalRate},
	{Metric: "vllm.drop_rate", Additive: rate(increase(input.Dropped))},

	{Metric: "vllm.request.queue_wait_estimate", Quotient: queueWait},
	{Metric: "vllm.preemptions_per_first_token", Quotient: ratio(increase(input.Preemptions), firstTokens)},
	{Metric: "vllm.request.queue_time_ratio", Quotient: sums(input.QueueTime, input.E2ERequestLatency)},
	{Metric: "vllm.frontend_overhead_mean", Quotient: frontendOverhead},
	{Metric: "vllm.request.finished_ratio", Extra: []string{"finished_reason"}, Several: finished},
	{Metric: "vllm.request.cancelled_estimate", Additive: cancelled},

	{Metric: "vllm.tokens_per_iteration", Quotient: stepTokens},
	{Metric: "vllm.request.prompt_tokens_mean", Quotient: mean(input.RequestPromptTokens)},
	{Metric: "vllm.request.generation_tokens_mean", Quotient: mean(input.RequestGenerationTokens)},
	{Metric: "vllm.input_output_ratio", Quotient: sums(input.RequestPromptTokens, input.RequestGenerationTokens)},

	{Metric: "vllm.spec_decode.acceptance_ratio", Quotient: increases(input.AcceptedTokens, input.DraftTokens), share: true, speculative: true},
	{Metric: "vllm.spec_decode.mean_acceptance_length", Quotient: acceptanceLength, speculative: true},
	{Metric: "vllm.spec_decode.position_acceptance_ratio", Extra: []string{"position"}, Several: acceptedAt, speculative: true},

	{Metric: "vllm.kv_cache.capacity", Additive: capacity},
	{Metric: "vllm.kv_cache.free", Additive: free},
	{Metric: "vllm.model_flops_utilization", Quotient: flopsUtilization},
	{Metric: "vllm.memory_bandwidth_utilization", Quotient: bandwidthUtilization},
	{Metric: "vllm.http.error_ratio", Extra: []string{"status_class"}, Several: httpErrors},
	{Metric: "vllm.wasted_tokens_ratio", Extra: []string{"reason", "bound"}, Several: wasted, speculativeExtra: rejectedDrafts},
	{Metric: "vllm.inter_token_latency_per_token_mean", Quotient: interTokenPerToken},
}, latencyRows(), lengthRows(), gatewayRows())

// latencyRows are the mean, the quantiles and their bounds of each histogram of times.
func latencyRows() []Row {
	var all []Row
	for _, of := range []struct {
		in                    input.Metric
		mean, quantile, bound string
		detailed              bool
	}{
		{input.TimeToFirstToken, "vllm.time_to_first_token_mean", "vllm.time_to_first_token_quantile", "vllm.time_to_first_token_quantile_bound", false},
		{input.InterTokenLatency, "vllm.inter_token_latency_mean", "vllm.inter_token_latency_quantile", "vllm.inter_token_latency_quantile_bound", false},
		{input.E2ERequestLatency, "vllm.e2e_request_latency_mean", "vllm.e2e_request_latency_quantile", "vllm.e2e_request_latency_quantile_bound", false},
		{input.TimePerOutputToken, "vllm.request.time_per_output_token_mean", "vllm.request.time_per_output_token_quantile", "vllm.request.time_per_output_token_quantile_bound", true},
		{input.QueueTime, "vllm.request.queue_time_mean", "vllm.request.queue_time_quantile", "vllm.request.queue_time_quantile_bound", true},
		{input.PrefillTime, "vllm.request.prefill_time_mean", "vllm.request.prefill_time_quantile", "vllm.request.prefill_time_quantile_bound", false},
		{input.DecodeTime, "vllm.request.decode_time_mean", "vllm.request.decode_time_quantile", "vllm.request.decode_time_quantile_bound", false},
	} {
		read, average := trustedQuantiles(of.in, distribution), trusted(of.in, mean)
		if of.in == input.TimePerOutputToken || of.in == input.DecodeTime {
			read, average = trustedQuantiles(of.in, withoutZeros), trusted(of.in, meanWithoutZeros)
		}
		all = append(all, Row{Metric: of.mean, Quotient: average})
		all = append(all, quantileRows(read, of.quantile, of.bound, of.detailed)...)
	}
	return all
}

// lengthRows are the quantiles of the lengths of prompts and outputs, and their bounds.
func lengthRows() []Row {
	return slices.Concat(
		quantileRows(distribution(input.RequestPromptTokens), "vllm.request.prompt_tokens_quantile", "vllm.request.prompt_tokens_quantile_bound", true),
		quantileRows(distribution(input.RequestGenerationTokens), "vllm.request.generation_tokens_quantile", "vllm.request.generation_tokens_quantile_bound", true),
	)
}

// quantileRows are the quantiles of a histogram and their bounds. percentiles::detailed switches the
// quantiles on that are detailed.
func quantileRows(read func(*Member, *window.Histogram) Reason, quantile, bound string, detailed bool) []Row {
	return []Row{
		{Metric: quantile, Extra: []string{"quantile"}, Quantiles: read, detailed: detailed},
		{Metric: bound, Extra: []string{"quantile", "bound"}, Quantiles: read, bounds: true},
	}
}

// computed is what prompts have beyond cached tokens where all sources are counted as one:
// vLLM counts the three together, for each prompt.
func computed(_ *Settings, m *Member) (float64, Reason) {
	v := &m.Now
	n, status := v.IncreaseOf(input.PromptTokensBySource, "local_compute")
	reason := Because(status)
	if reason == OK && underLast(v, input.PromptTokensBySource, lastSources) {
		prompts, statusPrompts := v.Increase(input.PromptTokens)
		cached, statusCached := v.Increase(input.PromptTokensCached)
		n, reason = prompts-cached, worst(statusPrompts, statusCached)
		if reason == Missing {
			reason = KnownDefect
		}
		if reason == OK && n < 0 {
			reason = Contradiction
		}
	}
	return perSecond(n, v.Elapsed, reason)
}

// arrivalRate is 0 where more requests left the queue unserved than arrived, so that it
// is never negative.
func arrivalRate(_ *Settings, m *Member) (float64, Reason) {
	n, status := firstTokens(&m.Now)
	change, statusToo := m.Now.Change(input.Waiting)
	return perSecond(max(n+change, 0), m.Now.Elapsed, unmixed(&m.Now, worst(status, statusToo)))
}

// queueWait is Little's law. All versions count deferred requests among the waiting ones.
// Since v0.20 those that wait for capacity are also counted on their own.
func queueWait(_ *Settings, m *Member) Parts {
	queue, status := m.Now.GaugeOf(input.WaitingByReason, "capacity")
	if status == window.Missing {
		queue, status = m.Now.Gauge(input.Waiting)
	}
	n, statusToo := firstTokens(&m.Now)
	served, reason := perSecond(n, m.Now.Elapsed, worst(status, statusToo))
	if n > 0 {
		reason = unmixed(&m.Now, reason)
	}
	return Parts{Numerator: queue, Denominator: served, Reason: reason}
}

// frontendOverhead needs the same requests in all three distributions.
func frontendOverhead(_ *Settings, m *Member) Parts {
	count, e2e, has, status := m.Now.Moments(input.E2ERequestLatency)
	queued, queue, hasQueue, statusQueue := m.Now.Moments(input.QueueTime)
	inferred, inference, hasInference, statusInference := m.Now.Moments(input.InferenceTime)
	reason := worst(status, statusQueue, statusInference)
	switch {
	case reason != OK:
	case !(has && hasQueue && hasInference):
		reason = Missing
	case count != queued || count != inferred:
		reason = Contradiction
	}
	return Parts{Numerator: e2e - queue - inference, Denominator: count, Reason: reason}
}

func finished(m *Member, to []entry) (all []entry, rest Parts, reason Reason) {
	requests, status := m.Now.Increase(input.RequestSuccess)
	if status != window.Present {
		return to, noParts, Because(status)
	}
	merged := underLast(&m.Now, input.RequestSuccess, lastReasons)
	for why, n := range m.Now.Increases(input.RequestSuccess) {
		parts := Parts{Numerator: n, Denominator: requests}
		parts.withhold(merged && requests > 0)
		to = append(to, entry{Extra{why.Value(0)}, parts})
	}
	return to, Parts{Denominator: requests}, OK
}

// unbroken is the reason of a value that follows requests from one counter to another. What
// is counted between the last scrape and a reset is lost, so that a request can be in one of
// them and never in the other. After a restart there is nothing earlier to compare with.
// Engines that are added begin the counters again by a defect.
func unbroken(v *window.View, reason Reason) Reason {
	if reason != OK {
		return reason
	}
	began, restarted := v.Renewed()
	switch {
	case restarted:
		return First
	case began:
		return KnownDefect
	}
	return OK
}

func acceptanceLength(_ *Settings, m *Member) Parts {
	accepted, status := m.Now.Increase(input.AcceptedTokens)
	drafts, statusToo := m.Now.Increase(input.Drafts)
	return Parts{Numerator: drafts + accepted, Denominator: drafts, Reason: worst(status, statusToo)}
}

func acceptedAt(m *Member, to []entry) (all []entry, rest Parts, reason Reason) {
	drafts, status := m.Now.Increase(input.Drafts)
	_, statusToo := m.Now.Increase(input.AcceptedTokensPerPosition)
	if reason = worst(status, statusToo); reason != OK {
		return to, noParts, reason
	}
	merged := drafts > 0 && onlyALaterPosition(&m.Now)
	for position, accepted := range m.Now.Increases(input.AcceptedTokensPerPosition) {
		parts := Parts{Numerator: accepted, Denominator: drafts}
		parts.share()
		if merged {
			parts.Reason = KnownDefect
		}
		to = append(to, entry{Extra{position.Value(0)}, parts})
	}
	return to, Parts{Denominator: drafts}, OK
}

// flopsUtilization is absent where the server does not count: its counter is 0, or does
// not grow while tokens are generated.
func flopsUtilization(settings *Settings, m *Member) Parts {
	return utilization(m, settings.Peak.FLOPS, input.EstimatedFLOPs)
}

func bandwidthUtilization(settings *Settings, m *Member) Parts {
	return utilization(m, settings.Peak.Bandwidth, input.EstimatedReadBytes, input.EstimatedWriteBytes)
}

func utilization(m *Member, peak float64, counters ...input.Metric) Parts {
	if peak <= 0 {
		return Parts{Reason: Missing}
	}
	work, total := 0.0, 0.0
	for _, in := range counters {
		n, status := m.Now.Increase(in)
		if status != window.Present {
			return Parts{Reason: Because(status)}
		}
		was, _ := m.Now.Total(in)
		work += n
		total += was
	}
	generated, status := m.Now.Increase(input.GenerationTokens)
	if status == window.Pending {
		return Parts{Reason: Pending}
	}
	if total == 0 || (work == 0 && generated > 0) {
		return Parts{Reason: Missing}
	}
	parts := Parts{Numerator: work, Denominator: peak * m.Now.Elapsed}
	// The estimate takes some kinds of attention for more work than they are. More than the
	// peak is the only sign of it in the data.
	parts.withhold(work > parts.Denominator &&
		(m.Now.Affected(catalog.DefectBytesOfMlaModels) || m.Now.Affected(catalog.DefectFlopsOfHybridModels)))
	return parts
}

// interTokenPerToken is for servers with speculative decoding, where one output can have
// several tokens.
func interTokenPerToken(_ *Settings, m *Member) Parts {
	_, status := m.Now.Increase(input.Drafts)
	_, sum, hasSum, statusSum := m.Now.Moments(input.InterTokenLatency)
	generated, statusGenerated := m.Now.Increase(input.GenerationTokens)
	first, statusFirst := firstTokens(&m.Now)
	reason := worst(status, statusSum, statusGenerated, statusFirst)
	if reason == OK && !hasSum {
		reason = Missing
	}
	parts := Parts{Numerator: sum, Denominator: generated - first, Reason: reason}
	parts.withhold(parts.Denominator > 0 && untimed(&m.Now))
	return parts
}

func distribution(in input.Metric) func(*Member, *window.Histogram) Reason {
	return func(m *Member, dst *window.Histogram) Reason { return Because(m.Now.AddTo(dst, in)) }
}

// withoutZeros leaves out the requests of at most one token, for which vLLM
// records a time of 0.
func withoutZeros(in input.Metric) func(*Member, *window.Histogram) Reason {
	return func(m *Member, dst *window.Histogram) Reason {
		zeros, status := ofOneToken(&m.Now)
		if reason := worst(m.Now.AddTo(dst, in), status); reason != OK {
			return reason
		}
		if !dst.RemoveZeros(zeros) {
			return Contradiction
		}
		return OK
	}
}

// ofOneToken returns the number of requests of at most one token. Through Ray a bucket may
// exclude its upper bound, so that such a request is in the bucket up to 2, as one of two
// tokens of another version of Ray. Only where that bucket is empty, the number is known.
func ofOneToken(v *window.View) (float64, window.Status) {
	n, status := v.AtMost(input.RequestGenerationTokens, 1)
	if status == window.Present && v.Shows("ray") {
		if two, has := v.AtMost(input.RequestGenerationTokens, 2); has != window.Present || two != n {
			return 0, window.Defective
		}
	}
	return n, status
}

func meanWithoutZeros(in input.Metric) func(*Settings, *Member) Parts {
	return func(_ *Settings, m *Member) Parts {
		count, sum, hasSum, status := m.Now.Moments(in)
		zeros, statusZeros := ofOneToken(&m.Now)
		reason := worst(status, statusZeros)
		switch {
		case reason != OK:
		case !hasSum:
			reason = Missing
		case zeros > count:
			reason = Contradiction
		}
		return Parts{Numerator: sum, Denominator: count - zeros, Reason: reason}
	}
}
