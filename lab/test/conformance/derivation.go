package conformance

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// formulas are PromQL for derived metrics. G(name), with sum, count or bucket behind the name of a
// histogram, stands for the increase over the window of the family that the page has for a metric
// of the catalogue, added up by the attributes of a value; E is the length of the window in seconds,
// STATUS a class of status codes. Of several formulas the first whose families the page has counts.
// Means and quantiles of a histogram need none.
var formulas = map[string][]string{
	"vllm.prompt_throughput":     {`G(vllm.prompt_tokens) / E`},
	"vllm.generation_throughput": {`G(vllm.generation_tokens) / E`},
	"vllm.request_throughput":    {`G(vllm.request.success) / E`},
	"vllm.first_token_rate":      {`G(vllm.time_to_first_token count) / E`},
	"vllm.arrival_rate":          {`clamp_min(G(vllm.time_to_first_token count) + G(vllm.num_requests.waiting), 0) / E`},
	"vllm.preemption_rate":       {`G(vllm.num_preemptions) / E`},
	"vllm.prefill_compute_throughput": {
		`G(vllm.prompt_tokens_by_source{source="local_compute"}) / E`,
	},
	"vllm.prompt_tokens_cached_ratio": {`G(vllm.prompt_tokens_cached) / G(vllm.prompt_tokens)`},
	"vllm.prefix_cache.hit_ratio": {
		`(G(vllm.prompt_tokens_cached) - G(vllm.prompt_tokens_by_source{source="external_kv_transfer"})) / G(vllm.prompt_tokens)`,
		`G(vllm.prefix_cache.hits) / G(vllm.prefix_cache.queries)`,
	},
	"vllm.external_prefix_cache.hit_ratio": {`G(vllm.external_prefix_cache.hits) / G(vllm.external_prefix_cache.queries)`},
	"vllm.mm_cache.hit_ratio":              {`G(vllm.mm_cache.hits) / G(vllm.mm_cache.queries)`},
	"vllm.request.queue_time_ratio":        {`G(vllm.request.queue_time sum) / G(vllm.e2e_request_latency sum)`},
	"vllm.input_output_ratio":              {`G(vllm.request.prompt_tokens sum) / G(vllm.request.generation_tokens sum)`},
	"vllm.preemptions_per_first_token":     {`G(vllm.num_preemptions) / G(vllm.time_to_first_token count)`},
	"vllm.tokens_per_iteration":            {`G(vllm.iteration_tokens sum) / G(vllm.iteration_tokens count)`},
	"vllm.tokens_per_iteration before 0.23": {
		`(G(vllm.iteration_tokens sum) - G(vllm.prompt_tokens_cached)) / G(vllm.iteration_tokens count)`,
	},
	"vllm.frontend_overhead_mean": {
		`(G(vllm.e2e_request_latency sum) - G(vllm.request.queue_time sum) - G(vllm.request.inference_time sum)) / G(vllm.e2e_request_latency count)`,
	},
	// Requests of one token have no time between tokens; the server counts them as 0.
	"vllm.request.decode_time_mean":           {meanOfSeveralTokens("vllm.request.decode_time")},
	"vllm.request.time_per_output_token_mean": {meanOfSeveralTokens("vllm.request.time_per_output_token")},
	"vllm.http.error_ratio": {
		`G(http_requests_total{status="STATUS",handler=~"/v1/(chat/)?completions"}) / G(http_requests_total{handler=~"/v1/(chat/)?completions"})`,
	},
	"inference_gateway.epp.request_rate":        {asked + ` / E`, `G(inference_gateway.epp.requests) / E`},
	"inference_gateway.epp.request.error_ratio": {`(G(` + errors + `) or 0 * G(inference_gateway.epp.requests)) / ` + asked, noErrors},
	"inference_gateway.epp.request.shed_ratio": {
		`(G(` + errors + `{error_code="ResourceExhausted"}) or 0 * G(inference_gateway.epp.requests)) / ` + asked, noErrors,
	},
	"inference_gateway.epp.request.time_to_first_token_mean": {
		`G(inference_gateway.epp.request.time_to_first_token sum{streaming="true"}) / G(inference_gateway.epp.request.time_to_first_token count{streaming="true"})`,
	},
	"inference_gateway.epp.request.time_to_first_token_quantile": {
		`histogram_quantile(Q, G(inference_gateway.epp.request.time_to_first_token bucket{streaming="true"}))`,
	},
	"inference_gateway.epp.flow_control.queue.duration_mean": {
		`G(inference_gateway.epp.flow_control.queue.duration sum{outcome="Dispatched"}) / G(inference_gateway.epp.flow_control.queue.duration count{outcome="Dispatched"})`,
	},
	"inference_gateway.epp.flow_control.queue.duration_quantile": {
		`histogram_quantile(Q, G(inference_gateway.epp.flow_control.queue.duration bucket{outcome="Dispatched"}))`,
	},
}

const (
	errors = `inference_gateway.epp.request.errors`
	// asked are the requests with those that were refused. A model can have only one of the two.
	asked = `((G(inference_gateway.epp.requests) or 0 * G(` + errors + `)) + (G(` + errors + `{error_code!="ModelServerError"}) or 0 * G(inference_gateway.epp.requests)))`
	// noErrors is for a page that has not had an error yet.
	noErrors = `0 * G(inference_gateway.epp.requests) / G(inference_gateway.epp.requests)`
)

func meanOfSeveralTokens(name string) string {
	return `G(` + name + ` sum) / (G(` + name + ` count) - G(vllm.request.generation_tokens bucketless{le=~"1|1[.]0"}))`
}

// correct is the first version whose steps do not count cached tokens.
var correct, _ = catalog.ParseRelease("0.23.0")

// withheld are derived quantiles that one query cannot express, because requests of one token are
// taken out of their first bucket.
var withheld = []string{"vllm.request.decode_time_quantile", "vllm.request.time_per_output_token_quantile"}

// formula returns the PromQL of a derived metric for a page of a version with these families; empty
// where there is none.
func formula(metric, version string, families map[string]bool) string {
	candidates := formulas[metric]
	if release, known := catalog.ParseRelease(version); known && release.Compare(correct) < 0 {
		candidates = slices.Concat(formulas[metric+" before 0.23"], candidates)
	}
	if base, is := strings.CutSuffix(metric, "_mean"); is && candidates == nil {
		candidates = []string{`G(` + base + ` sum) / G(` + base + ` count)`}
	}
	if base, is := strings.CutSuffix(metric, "_quantile"); is && candidates == nil && !slices.Contains(withheld, metric) {
		candidates = []string{`histogram_quantile(Q, G(` + base + ` bucket))`}
	}
	for _, c := range candidates {
		if out, ok := onWire(c, families); ok {
			return out
		}
	}
	return ""
}

var term = regexp.MustCompile(`G\(([a-z0-9_.]+)( \w+)?(\{[^}]*\})?\)`)

// onWire puts the families of a page into a formula; ok is false if it lacks one.
func onWire(formula string, families map[string]bool) (out string, ok bool) {
	ok = true
	out = term.ReplaceAllStringFunc(formula, func(text string) string {
		parts := term.FindStringSubmatch(text)
		family := newest(parts[1], families)
		ok = ok && family != ""
		by, role := "BY", strings.TrimSpace(parts[2])
		switch role {
		case "bucket":
			by = "le, BY"
		case "bucketless":
			role = "bucket"
		}
		if role != "" {
			family += "_" + role
		}
		series := family + parts[3]
		// A series that appeared within the window began at 0.
		grew := fmt.Sprintf("sum by (%[1]s) (%[2]s - (%[2]s offset WINDOW or %[2]s * 0))", by, series)
		if parts[3] != "" && role == "" { // No series of a selection is none of its events.
			grew = fmt.Sprintf("(%s or 0 * %s)", grew, strings.ReplaceAll(grew, series, family))
		}
		return grew
	})
	return out, ok
}

// newest is the family of a page that becomes a metric: of several the newest, as the catalogue says.
// A name of the wire is itself.
func newest(name string, families map[string]bool) string {
	m, known := catalog.ByName(name)
	if !known {
		if families[name] {
			return name
		}
		return ""
	}
	for _, s := range slices.Backward(m.Sources) {
		if s.Label == "" && families[s.Family] {
			return s.Family
		}
	}
	return ""
}

// groupingsOf are the attributes by which the values of a metric can be told apart, the finest first. A coarser
// one replaces what a finer one says of the series without those attributes.
func groupingsOf(metric string) []string {
	switch {
	case strings.HasSuffix(metric, ".request_rate"):
		return []string{"model_name, target_model_name, target_model"}
	case strings.HasPrefix(metric, "inference_gateway."):
		return []string{"model_name, target_model_name, target_model", ""}
	}
	return []string{"model_name, engine", "model_name", ""}
}

// rename returns the attributes by which values are told apart, of labels or attributes.
func rename(labels map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		if other, is := catalog.Gateway.Labels[name]; is {
			name = other
		}
		if value != "" && slices.Contains([]string{"model_name", "engine", "target_model_name"}, name) {
			parts = append(parts, name+"="+value)
		}
	}
	return strings.Join(parts, ",")
}
