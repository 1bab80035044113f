package querylint

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// routerMetrics are the families that only the router of the production stack has. They are not in
// the catalogue, because the receiver takes the router's names as they come.
var routerMetrics = []catalog.Metric{
	routerMetric("vllm:current_qps", catalog.KindGauge, "{request}/s", "server"),
	routerMetric("vllm:avg_decoding_length", catalog.KindGauge, "{token}", "server"),
	routerMetric("vllm:num_prefill_requests", catalog.KindGauge, "{request}", "server"),
	routerMetric("vllm:num_decoding_requests", catalog.KindGauge, "{request}", "server"),
	routerMetric("vllm:healthy_pods_total", catalog.KindGauge, "{pod}", "server"),
	routerMetric("vllm:avg_latency", catalog.KindGauge, "s", "server"),
	routerMetric("vllm:avg_itl", catalog.KindGauge, "s", "server"),
	routerMetric("vllm:semantic_cache_hits", catalog.KindGauge, "{hit}", "server"),
	routerMetric("vllm:semantic_cache_misses", catalog.KindGauge, "{miss}", "server"),
	routerMetric("vllm:semantic_cache_hit_ratio", catalog.KindGauge, "1", "server"),
	routerMetric("vllm:semantic_cache_size", catalog.KindGauge, "{entry}", "server"),
	routerMetric("vllm:semantic_cache_latency", catalog.KindGauge, "s", "server"),
	routerMetric("vllm:num_incoming_requests_total", catalog.KindSum, "{request}", "model"),
	routerMetric("vllm:input_tokens_total", catalog.KindSum, "{token}", "server", "model"),
	routerMetric("vllm:output_tokens_total", catalog.KindSum, "{token}", "server", "model"),
	routerMetric("vllm:request_errors_total", catalog.KindSum, "{error}", "server", "model", "error_type"),
	routerMetric("vllm:request_latency_seconds", catalog.KindHistogram, "s", "server", "model", "status"),
	routerMetric("vllm_pii_requests_total", catalog.KindSum, "{request}", "endpoint"),
	routerMetric("vllm_pii_detected_total", catalog.KindSum, "{request}", "endpoint", "pii_type"),
	routerMetric("vllm_pii_detection_seconds", catalog.KindHistogram, "s", "endpoint", "status"),
	routerMetric("vllm_pii_detection_score", catalog.KindHistogram, "1", "pii_type"),
	routerMetric("vllm_pii_analyzer_errors_total", catalog.KindSum, "{error}", "error_type"),
}

func routerMetric(family string, kind catalog.Kind, unit string, attributes ...string) catalog.Metric {
	return catalog.Metric{Name: family, Kind: kind, Unit: unit, Attributes: attributes}
}

// repeated are the families of servers that the router exposes again, with the label server.
var repeated = []string{
	"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:num_requests_swapped",
	"vllm:gpu_prefix_cache_hit_rate", "vllm:gpu_prefix_cache_hits_total", "vllm:gpu_prefix_cache_queries_total",
}

// OfRouter reports whether only the router of the production stack has series of a name: one of
// its own, or one that the receiver made of it, whose rest can be anything.
func OfRouter(name string) bool {
	if strings.HasPrefix(name, catalog.Router.Name) || strings.HasPrefix(name, Suffixed.label(catalog.Router.Name)) {
		return true
	}
	e, known := namesOf(Wire).byName[name]
	return known && strings.HasPrefix(name, e.metric.Name) && slices.ContainsFunc(routerMetrics, func(m catalog.Metric) bool { return m.Name == e.metric.Name })
}

// repeats reports whether the router exposes a family of servers again.
func repeats(e entry) bool { return e.source != nil && slices.Contains(repeated, e.source.Family) }

// selectsRouter reports whether a selector asks for the series of the router alone.
func selectsRouter(node *parser.VectorSelector) bool {
	return slices.ContainsFunc(node.LabelMatchers, func(m *labels.Matcher) bool {
		return m.Name == catalog.Router.Label && !m.Matches("")
	})
}

// checkServers reports series of the router that are grouped by server together with those of the
// servers, which fall into one more group.
func (c *checker) checkServers(e *parser.AggregateExpr) {
	if e.Without || !slices.Contains(e.Grouping, catalog.Router.Label) {
		return
	}
	s, is := inner(e.Expr).(*parser.VectorSelector)
	if !is || slices.ContainsFunc(s.LabelMatchers, func(m *labels.Matcher) bool { return m.Name == catalog.Router.Label }) {
		return
	}
	if entry, known := c.linter.lookup(selectorName(s)); known && repeats(entry) {
		c.report(CodeDoubleCount, Info, s,
			"Only the router of the production stack has the label server; it repeats the values of its servers, whose own series have none and fall into one more group. Add server!=\"\" for the router, or group by instance.")
	}
}
