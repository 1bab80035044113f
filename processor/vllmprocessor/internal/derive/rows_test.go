package derive_test

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// values are those of one metric, by its own attributes.
type values map[string]float64

// parts are a numerator and a denominator of one engine.
type parts struct {
	above, below float64
	k            known
}

// first is the first state that stands in the way; what is pending before all.
func first(ks ...known) known {
	if slices.Contains(ks, pending) {
		return pending
	}
	for _, k := range ks {
		if k != present {
			return k
		}
	}
	return present
}

// ratio adds the parts of all engines that have both, then divides.
func (s *scope) ratio(least float64, of func(engine string) parts) (float64, bool) {
	var above, below float64
	for _, e := range s.engines {
		p := of(e)
		switch p.k {
		case pending:
			return 0, false
		case present:
			above += p.above
			below += p.below
		}
	}
	if below <= 0 || below < least {
		return 0, false
	}
	return above / below, true
}

func (s *scope) counters(above, below input.Metric) func(string) parts {
	return func(e string) parts {
		a, ka := s.increase(e, above, s.from)
		b, kb := s.increase(e, below, s.from)
		return parts{a, b, first(ka, kb)}
	}
}

func (s *scope) sums(above, below input.Metric) func(string) parts {
	return func(e string) parts {
		a, ka := s.observations(e, above, s.from)
		b, kb := s.observations(e, below, s.from)
		return parts{a.sum(), b.sum(), first(ka, kb)}
	}
}

func (s *scope) average(in input.Metric) func(string) parts {
	return func(e string) parts {
		o, k := s.observations(e, in, s.from)
		return parts{o.sum(), o.count(), k}
	}
}

// ones are the requests of at most one token.
func (s *scope) ones(e string) (n float64, k known) {
	o, k := s.observations(e, input.RequestGenerationTokens, s.from)
	for _, v := range o.values {
		if v <= 1 {
			n++
		}
	}
	return n, k
}

func (s *scope) averageOfMore(in input.Metric) func(string) parts {
	return func(e string) parts {
		o, k := s.observations(e, in, s.from)
		zeros, kz := s.ones(e)
		return parts{o.sum(), o.count() - zeros, first(k, kz)}
	}
}

func (s *scope) perSecond(n float64, k known) (float64, bool) {
	return n / s.elapsed, k == present && s.elapsed > 0
}

// expect is what all rows say about the scope. A roll-up has several engines.
func (s *scope) expect(rollup, alone, misattributed bool) map[string]values {
	all := map[string]values{}
	put := func(name, extra string, value float64, ok bool) {
		if ok {
			if all[name] == nil {
				all[name] = values{}
			}
			all[name][extra] = value
		}
	}
	quotient := func(name string, least float64, of func(string) parts) {
		value, ok := s.ratio(least, of)
		put(name, "", value, ok)
	}
	quotient("vllm.prefix_cache.hit_ratio", 0, s.counters(input.PrefixCacheHits, input.PrefixCacheQueries))
	for metric, of := range plainRatios {
		quotient(metric, 0, s.counters(of[0], of[1]))
	}
	if rollup || alone { // the cache belongs to the front end
		quotient("vllm.mm_cache.hit_ratio", 0, s.counters(input.MMCacheHits, input.MMCacheQueries))
	}
	quotient("vllm.request.queue_time_ratio", 0, s.sums(input.QueueTime, input.E2ERequestLatency))
	quotient("vllm.input_output_ratio", 0, s.sums(input.RequestPromptTokens, input.RequestGenerationTokens))
	quotient("vllm.tokens_per_iteration", 1, s.average(input.IterationTokens))
	quotient("vllm.request.queue_wait_estimate", 0, func(e string) parts {
		queue, k := s.level(e, input.WaitingByReason, "capacity")
		o, kf := s.observations(e, input.TimeToFirstToken, s.from)
		return parts{queue, o.count() / s.elapsed, first(k, kf)}
	})
	quotient("vllm.preemptions_per_first_token", 0, func(e string) parts {
		n, k := s.increase(e, input.Preemptions, s.from)
		o, kf := s.observations(e, input.TimeToFirstToken, s.from)
		return parts{n, o.count(), first(k, kf)}
	})
	quotient("vllm.frontend_overhead_mean", 1, func(e string) parts {
		o, k := s.observations(e, input.E2ERequestLatency, s.from)
		q, kq := s.observations(e, input.QueueTime, s.from)
		i, ki := s.observations(e, input.InferenceTime, s.from)
		return parts{o.sum() - q.sum() - i.sum(), o.count(), first(k, kq, ki)}
	})
	s.speculation(quotient, put, rollup, misattributed)
	work := func(counters ...input.Metric) func(string) parts {
		return func(e string) parts {
			var n, ever float64
			k := present
			for _, in := range counters {
				each, ke := s.increase(e, in, s.from)
				n += each
				ever += s.ever(e, in)
				k = first(k, ke)
			}
			generated, kg := s.increase(e, input.GenerationTokens, s.from)
			if kg == pending {
				k = pending
			}
			if k == present && (ever == 0 || n == 0 && kg == present && generated > 0) {
				k = never
			}
			return parts{n / s.elapsed, s.peak, k}
		}
	}
	quotient("vllm.model_flops_utilization", 0, work(input.EstimatedFLOPs))
	quotient("vllm.memory_bandwidth_utilization", 0, work(input.EstimatedReadBytes, input.EstimatedWriteBytes))
	s.latencies(quotient, put, rollup || alone || s.perEngine)
	s.reasons(put)
	s.shares(put, "vllm.prompt_tokens_cached_by_source_ratio", input.PromptTokensCachedBySource, input.PrefixCacheQueries)
	if !rollup {
		s.rates(put)
	}
	return all
}

func (s *scope) speculation(quotient func(string, float64, func(string) parts), put func(string, string, float64, bool), rollup, misattributed bool) {
	quotient("vllm.inter_token_latency_per_token_mean", 1, func(e string) parts {
		_, kd := s.increase(e, input.Drafts, s.from)
		o, k := s.observations(e, input.InterTokenLatency, s.from)
		generated, kg := s.increase(e, input.GenerationTokens, s.from)
		f, kf := s.observations(e, input.TimeToFirstToken, s.from)
		return parts{o.sum(), generated - f.count(), first(kd, k, kg, kf)}
	})
	if misattributed && !rollup {
		return
	}
	quotient("vllm.spec_decode.acceptance_ratio", 0, s.counters(input.AcceptedTokens, input.DraftTokens))
	quotient("vllm.spec_decode.mean_acceptance_length", 0, func(e string) parts {
		accepted, k := s.increase(e, input.AcceptedTokens, s.from)
		drafts, kd := s.increase(e, input.Drafts, s.from)
		return parts{drafts + accepted, drafts, first(k, kd)}
	})
	s.shares(put, "vllm.spec_decode.position_acceptance_ratio", input.AcceptedTokensPerPosition, input.Drafts)
}

// shares are the parts of a labelled counter in another, or in itself: of all
// engines, also of those that do not show the label.
func (s *scope) shares(put func(string, string, float64, bool), name string, in, all input.Metric) {
	above, below := map[string]float64{}, 0.0
	for _, e := range s.engines {
		n, k := s.increase(e, all, s.from)
		_, kn := s.increase(e, in, s.from)
		switch first(k, kn) {
		case pending:
			return
		case present:
		default:
			continue
		}
		below += n
		for _, each := range s.of(e, in) {
			if each.label == "host" && s.everOf(each, s.now) == 0 {
				continue
			}
			state := s.state(each, s.now)
			if state == present {
				above[each.label] += s.grown(each, s.from, s.now)
			} else if state == gone && s.seen[each].since[s.now] <= s.from {
				if n := s.grown(each, s.from, s.now); n > 0 {
					above[each.label] += n
				}
			}
		}
	}
	for label, n := range above {
		put(name, label, n/below, below > 0)
	}
}

func (s *scope) rates(put func(string, string, float64, bool)) {
	e := s.engines[0]
	rate := func(name string, n float64, k known) {
		value, ok := s.perSecond(n, k)
		put(name, "", value, ok)
	}
	for name, in := range map[string]input.Metric{
		"vllm.prompt_throughput": input.PromptTokens, "vllm.generation_throughput": input.GenerationTokens,
		"vllm.request_throughput": input.RequestSuccess, "vllm.preemption_rate": input.Preemptions,
		"vllm.drop_rate": input.Dropped,
	} {
		n, k := s.increase(e, in, s.from)
		rate(name, n, k)
	}
	found, kf := s.increase(e, input.ExternalPrefixCacheHits, s.from)
	if lookups, kl := s.increase(e, input.ExternalPrefixCacheQueries, s.from); lookups > 0 {
		rate("vllm.external_prefix_cache.hit_throughput", found, first(kf, kl))
	}
	_, k := s.increase(e, input.PromptTokensBySource, s.from)
	local := 0.0
	for _, each := range s.of(e, input.PromptTokensBySource) {
		if each.label == "local_compute" && s.seen[each].since[s.now] <= s.from {
			local = s.grown(each, s.from, s.now)
		}
	}
	rate("vllm.prefill_compute_throughput", local, k)
	o, kf := s.observations(e, input.TimeToFirstToken, s.from)
	rate("vllm.first_token_rate", o.count(), kf)
	change, kw := s.moved(e, input.Waiting, s.from)
	rate("vllm.arrival_rate", math.Max(o.count()+change, 0), first(kf, kw))

	long, kl := s.observations(e, input.TimeToFirstToken, s.longFrom)
	done, kd := s.increase(e, input.RequestSuccess, s.longFrom)
	running, kr := s.moved(e, input.Running, s.longFrom)
	put("vllm.request.cancelled_estimate", "", math.Max(long.count()-done-running, 0)/s.whole,
		s.unbroken(e, first(kl, kd, kr)) == present && s.whole > 0)

	used, ku := s.level(e, input.KVCacheUtilization, "")
	capacity, kc := s.level(e, input.CacheConfigTokens, "")
	put("vllm.kv_cache.free", "", capacity*(1-used), first(ku, kc) == present)
}

var quantiles = []float64{0.5, 0.95, 0.99, 1}

func (s *scope) latencies(quotient func(string, float64, func(string) parts), put func(string, string, float64, bool), wanted bool) {
	for in := range input.NumMetrics {
		name := in.String()
		if _, derived := catalog.ByName(name + "_quantile"); !derived || name == "" || strings.HasPrefix(name, "inference_gateway.") {
			continue
		}
		less := strings.HasSuffix(name, "decode_time") || strings.HasSuffix(name, "output_token")
		_, mean := catalog.ByName(name + "_mean")
		switch {
		case mean && less:
			quotient(name+"_mean", 1, s.averageOfMore(in))
		case mean:
			quotient(name+"_mean", 1, s.average(in))
		}
		if !wanted {
			continue
		}
		var both observed
		zeros, held := 0.0, false
		for _, e := range s.engines {
			o, k := s.observations(e, in, s.from)
			n := 0.0
			if less {
				var kz known
				n, kz = s.ones(e)
				k = first(k, kz)
			}
			held = held || k == pending
			if k != present || o.count() <= n {
				continue
			}
			both.values, both.bounds, zeros = append(both.values, o.values...), append(both.bounds, o.bounds...), zeros+n
		}
		if held || both.count()-zeros < 1 {
			continue
		}
		for _, q := range quantiles {
			value, lower, upper, ok := both.quantile(q, zeros)
			text := strconv.FormatFloat(q, 'g', -1, 64)
			put(name+"_quantile", text, value, ok)
			put(name+"_quantile_bound", text+"\x00lower", lower, ok)
			put(name+"_quantile_bound", text+"\x00upper", upper, ok && !math.IsInf(upper, 1))
		}
	}
}

// ever is all that a counter was seen to count.
func (r *reference) everAt(e string, in input.Metric, now int) (n float64) {
	for _, each := range r.of(e, in) {
		n += r.everOf(each, now)
	}
	return n
}

func (r *reference) everOf(each *stream, now int) (n float64) {
	since := r.seen[each].since[now]
	if since < 0 {
		return 0
	}
	if r.seen[each].exposed[since] {
		n, _, _ = r.body(each, r.scrapes[since])
	}
	return n + r.grown(each, since, now)
}

func (s *scope) ever(e string, in input.Metric) float64 { return s.everAt(e, in, s.now) }

// misattributed reports whether one engine alone has drafts.
func (r *reference) misattributed(now int) bool {
	with, without := 0, 0
	for _, e := range r.engines {
		if !r.here(e, now) && !r.missing(e, now) {
			continue
		}
		switch {
		case r.everAt(e, input.Drafts, now) > 0:
			with++
		case r.everAt(e, input.GenerationTokens, now) > 0:
			without++
		}
	}
	return with == 1 && without > 0
}

// here reports whether an engine is in the scrape, missing whether it was in the
// one before and may still come.
func (r *reference) here(e string, now int) bool {
	return slices.ContainsFunc(r.streams, func(s *stream) bool {
		return s.engine == e && s.input != input.CacheConfigTokens && r.seen[s].exposed[now]
	})
}

func (r *reference) missing(e string, now int) bool {
	return now > 0 && !r.markers && !r.here(e, now) && r.here(e, now-1)
}

// frontEnd are the expected values of the whole server.
func (s *scope) expectOfFrontEnd() map[string]values {
	all := map[string]values{}
	n, errors := 0.0, map[string]float64{"4xx": 0, "5xx": 0}
	if _, k := s.increase(frontEnd, input.HTTPRequests, s.from); k != present {
		return all
	}
	for _, each := range s.of(frontEnd, input.HTTPRequests) {
		label := strings.Split(each.label, "\x00")
		if label[1] != "/v1/completions" || s.seen[each].since[s.now] < 0 || s.seen[each].since[s.now] > s.from {
			continue
		}
		grown := s.grown(each, s.from, s.now)
		n += grown
		if label[0] != "2xx" {
			errors[label[0]] += grown
		}
	}
	if n > 0 {
		all["vllm.http.error_ratio"] = values{"4xx": errors["4xx"] / n, "5xx": errors["5xx"] / n}
	}
	return all
}
