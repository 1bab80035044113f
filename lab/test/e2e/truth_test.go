//go:build e2e

package e2e

import (
	"errors"
	"io"
	"math"
	"slices"
	"sort"
	"strconv"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/require"
)

// What the processor must emit, computed from the bodies that a server sent. This file is
// independent of the processor: names and formulas are those of its list of metrics, and
// the numbers are read from the text.

// sample is one line of a body.
type sample struct {
	labels labels.Labels
	value  float64
}

// body has the samples of a body by name.
type body map[string][]sample

func parseBody(t *testing.T, text []byte) body {
	t.Helper()
	parsed := body{}
	eachSeries(t, text, func(set labels.Labels, _ *int64, value float64) {
		name := set.Get(model.MetricNameLabel)
		parsed[name] = append(parsed[name], sample{set, value})
	})
	return parsed
}

// eachSeries calls visit for each sample of a text in the text format, as Prometheus's own
// parser reads it.
func eachSeries(t *testing.T, text []byte, visit func(set labels.Labels, at *int64, value float64)) {
	t.Helper()
	p := textparse.NewPromParser(text, labels.NewSymbolTable(), false)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		var set labels.Labels
		p.Labels(&set)
		_, at, value := p.Series()
		visit(set, at, value)
	}
}

// sum adds up the samples of a name whose labels have these values, given as
// name, value and so on. An empty value matches all.
func (b body) sum(name string, matching ...string) float64 {
	total := 0.0
samples:
	for _, s := range b[name] {
		for i := 0; i < len(matching); i += 2 {
			if matching[i+1] != "" && s.labels.Get(matching[i]) != matching[i+1] {
				continue samples
			}
		}
		total += s.value
	}
	return total
}

// span is the window between two bodies of a server, for one engine, or for all if engine
// is empty.
type span struct {
	from, to body
	// last is the last body before a restart of the server; nil without one.
	last    body
	seconds float64
	engine  string
}

// grew returns the increase of a counter. After a restart it counts from 0.
func (s span) grew(name string, matching ...string) float64 {
	matching = append(matching, "engine", s.engine)
	if s.last != nil {
		return s.last.sum(name, matching...) - s.from.sum(name, matching...) + s.to.sum(name, matching...)
	}
	return s.to.sum(name, matching...) - s.from.sum(name, matching...)
}

// now returns the value of a gauge.
func (s span) now(name string, matching ...string) float64 {
	return s.to.sum(name, append(matching, "engine", s.engine)...)
}

// mean returns the mean of the observations of a histogram; NaN without observations.
func (s span) mean(family string) float64 {
	return s.grew(family+"_sum") / s.grew(family+"_count")
}

// quantile returns a quantile of a histogram by linear interpolation within the bucket; NaN
// without observations.
func (s span) quantile(family string, rank float64) float64 {
	upTo := map[float64]float64{}
	for _, line := range s.to[family+"_bucket"] {
		le, err := strconv.ParseFloat(line.labels.Get("le"), 64)
		if err == nil && upTo[le] == 0 {
			upTo[le] = s.grew(family+"_bucket", "le", line.labels.Get("le"))
		}
	}
	var bounds []float64
	for bound := range upTo {
		bounds = append(bounds, bound)
	}
	sort.Float64s(bounds)
	all := upTo[math.Inf(1)]
	if all == 0 {
		return math.NaN()
	}
	at := slices.IndexFunc(bounds, func(bound float64) bool { return upTo[bound] >= rank*all })
	lower, below := 0.0, 0.0
	if at > 0 {
		lower, below = bounds[at-1], upTo[bounds[at-1]]
	}
	if math.IsInf(bounds[at], 1) {
		return lower
	}
	return lower + (bounds[at]-lower)*(rank*all-below)/(upTo[bounds[at]]-below)
}

// derivedValues collects the values of derived series. NaN is not emitted.
type derivedValues exposed

func (out derivedValues) add(value float64, name string, pairs ...string) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	set := labels.NewBuilder(labels.FromStrings(pairs...)).Set(model.MetricNameLabel, name)
	out[set.Labels().String()] = value
}

// expected returns every derived series of a server with these engines at the end of a
// window. A window from a body to itself is that of the first scrape.
func expected(window span, modelName string, engines, quantiles []string) derivedValues {
	out := derivedValues{}
	for _, engine := range append([]string{""}, engines...) {
		window.engine = engine
		pairs := []string{"model_name", modelName}
		if engine != "" {
			pairs = append(pairs, "engine", engine)
			out.rates(window, pairs)
		}
		out.ratios(window, pairs)
		out.means(window, pairs)
		out.speculation(window, pairs)
		for _, family := range []string{"time_to_first_token", "inter_token_latency", "e2e_request_latency"} {
			for _, q := range quantiles {
				rank, _ := strconv.ParseFloat(q, 64)
				out.add(window.quantile("vllm:"+family+"_seconds", rank),
					"vllm_"+family+"_quantile_seconds", append(slices.Clone(pairs), "quantile", q)...)
			}
		}
	}
	window.engine = ""
	out.httpErrors(window)
	return out
}

// rates are emitted for each engine only.
func (out derivedValues) rates(s span, pairs []string) {
	first := s.grew("vllm:time_to_first_token_seconds_count")
	waiting := s.now("vllm:num_requests_waiting") - s.from.sum("vllm:num_requests_waiting", "engine", s.engine)
	for name, n := range map[string]float64{
		"vllm_prompt_throughput_per_second":          s.grew("vllm:prompt_tokens_total"),
		"vllm_prefill_compute_throughput_per_second": s.grew("vllm:prompt_tokens_by_source_total", "source", "local_compute"),
		"vllm_generation_throughput_per_second":      s.grew("vllm:generation_tokens_total"),
		"vllm_request_throughput_per_second":         s.grew("vllm:request_success_total"),
		"vllm_first_token_rate_per_second":           first,
		"vllm_preemption_rate_per_second":            s.grew("vllm:num_preemptions_total"),
		"vllm_arrival_rate_per_second":               max(first+waiting, 0),
	} {
		out.add(n/s.seconds, name, pairs...)
	}
	free := s.now("vllm:cache_config_info")
	for _, info := range s.to["vllm:cache_config_info"] {
		if info.labels.Get("engine") == s.engine {
			free, _ = strconv.ParseFloat(info.labels.Get("kv_cache_size_tokens"), 64)
		}
	}
	out.add(free*(1-s.now("vllm:kv_cache_usage_perc")), "vllm_kv_cache_free", pairs...)
}

// ratios are quotients of increases.
func (out derivedValues) ratios(s span, pairs []string) {
	first := s.grew("vllm:time_to_first_token_seconds_count")
	prompts, generated := s.grew("vllm:request_prompt_tokens_sum"), s.grew("vllm:request_generation_tokens_sum")
	for name, value := range map[string]float64{
		"vllm_prefix_cache_hit_ratio":              s.foundLocally() / s.grew("vllm:prompt_tokens_total"),
		"vllm_external_prefix_cache_hit_ratio":     s.grew("vllm:external_prefix_cache_hits_total") / s.grew("vllm:external_prefix_cache_queries_total"),
		"vllm_mm_cache_hit_ratio":                  s.grew("vllm:mm_cache_hits_total") / s.grew("vllm:mm_cache_queries_total"),
		"vllm_prompt_tokens_cached_ratio":          s.grew("vllm:prompt_tokens_cached_total") / s.grew("vllm:prompt_tokens_total"),
		"vllm_preemptions_per_first_token":         s.grew("vllm:num_preemptions_total") / first,
		"vllm_request_queue_time_ratio":            s.grew("vllm:request_queue_time_seconds_sum") / s.grew("vllm:e2e_request_latency_seconds_sum"),
		"vllm_input_output_ratio":                  prompts / generated,
		"vllm_request_queue_wait_estimate_seconds": s.queueWait(),
	} {
		out.add(value, name, pairs...)
	}
}

// foundLocally are the prompt tokens that the prefix cache found. The server counts lookups
// again while requests wait, so its hits and queries are not used.
func (s span) foundLocally() float64 {
	return s.grew("vllm:prompt_tokens_cached_total") - s.grew("vllm:prompt_tokens_by_source_total", "source", "external_kv_transfer")
}

// queueWait is Little's law; over several engines the rates are added up.
func (s span) queueWait() float64 {
	return s.now("vllm:num_requests_waiting_by_reason", "reason", "capacity") /
		(s.grew("vllm:time_to_first_token_seconds_count") / s.seconds)
}

// means are sums by counts.
func (out derivedValues) means(s span, pairs []string) {
	for name, family := range map[string]string{
		"vllm_time_to_first_token_mean_seconds":  "vllm:time_to_first_token_seconds",
		"vllm_inter_token_latency_mean_seconds":  "vllm:inter_token_latency_seconds",
		"vllm_e2e_request_latency_mean_seconds":  "vllm:e2e_request_latency_seconds",
		"vllm_request_queue_time_mean_seconds":   "vllm:request_queue_time_seconds",
		"vllm_request_prefill_time_mean_seconds": "vllm:request_prefill_time_seconds",
		"vllm_request_prompt_tokens_mean":        "vllm:request_prompt_tokens",
		"vllm_request_generation_tokens_mean":    "vllm:request_generation_tokens",
		"vllm_tokens_per_iteration":              "vllm:iteration_tokens_total",
	} {
		out.add(s.mean(family), name, pairs...)
	}
	// Requests of one token have no time between tokens; they are counted as 0.
	zeros := s.grew("vllm:request_generation_tokens_bucket", "le", "1.0")
	for name, family := range map[string]string{
		"vllm_request_time_per_output_token_mean_seconds": "vllm:request_time_per_output_token_seconds",
		"vllm_request_decode_time_mean_seconds":           "vllm:request_decode_time_seconds",
	} {
		out.add(s.grew(family+"_sum")/(s.grew(family+"_count")-zeros), name, pairs...)
	}
	e2e := s.grew("vllm:e2e_request_latency_seconds_sum")
	inside := s.grew("vllm:request_queue_time_seconds_sum") + s.grew("vllm:request_inference_time_seconds_sum")
	out.add((e2e-inside)/s.grew("vllm:e2e_request_latency_seconds_count"), "vllm_frontend_overhead_mean_seconds", pairs...)
}

// speculation has the metrics of speculative decoding.
func (out derivedValues) speculation(s span, pairs []string) {
	drafts, drafted := s.grew("vllm:spec_decode_num_drafts_total"), s.grew("vllm:spec_decode_num_draft_tokens_total")
	accepted, generated := s.grew("vllm:spec_decode_num_accepted_tokens_total"), s.grew("vllm:generation_tokens_total")
	out.add(accepted/drafted, "vllm_spec_decode_acceptance_ratio", pairs...)
	out.add(1+accepted/drafts, "vllm_spec_decode_mean_acceptance_length", pairs...)
	for _, position := range []string{"0", "1", "2"} {
		out.add(s.grew("vllm:spec_decode_num_accepted_tokens_per_pos_total", "position", position)/drafts,
			"vllm_spec_decode_position_acceptance_ratio", append(slices.Clone(pairs), "position", position)...)
	}
	out.add(s.grew("vllm:inter_token_latency_seconds_sum")/(generated-s.grew("vllm:time_to_first_token_seconds_count")),
		"vllm_inter_token_latency_per_token_mean_seconds", pairs...)
	out.add((drafted-accepted)/(drafted+generated), "vllm_wasted_tokens_ratio", append(slices.Clone(pairs), "reason", "rejected_drafts")...)
}

// httpErrors are those of all requests to the model.
func (out derivedValues) httpErrors(s span) {
	all, failed := 0.0, map[string]float64{}
	for _, status := range []string{"2xx", "3xx", "4xx", "5xx"} {
		for _, handler := range []string{"/v1/chat/completions", "/v1/completions"} {
			n := s.grew("http_requests_total", "status", status, "handler", handler)
			all += n
			failed[status] += n
		}
	}
	for _, class := range []string{"4xx", "5xx"} {
		out.add(failed[class]/all, "vllm_http_error_ratio", "status_class", class)
	}
}
