package querylint

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// routerMetrics are the families that only the router of the production stack has: those of the catalogue by server or
// model, and those of its experiments.
var routerMetrics = append(ofRouter(),
	routerMetric("vllm:semantic_cache_hits", catalog.KindGauge, "{hit}", "server"),
	routerMetric("vllm:semantic_cache_misses", catalog.KindGauge, "{miss}", "server"),
	routerMetric("vllm:semantic_cache_hit_ratio", catalog.KindGauge, "1", "server"),
	routerMetric("vllm:semantic_cache_size", catalog.KindGauge, "{entry}", "server"),
	routerMetric("vllm:semantic_cache_latency", catalog.KindGauge, "s", "server"),
	routerMetric("vllm_pii_requests_total", catalog.KindSum, "{request}", "endpoint"),
	routerMetric("vllm_pii_detected_total", catalog.KindSum, "{request}", "endpoint", "pii_type"),
	routerMetric("vllm_pii_detection_seconds", catalog.KindHistogram, "s", "endpoint", "status"),
	routerMetric("vllm_pii_detection_score", catalog.KindHistogram, "1", "pii_type"),
	routerMetric("vllm_pii_analyzer_errors_total", catalog.KindSum, "{error}", "error_type"),
)

// ofRouter are those of the catalogue, by their names on the wire.
func ofRouter() (out []catalog.Metric) {
	for _, m := range catalog.All() {
		if !strings.HasPrefix(m.Name, catalog.Router.Name) || !slices.Contains(m.Attributes, catalog.Router.Label) && !slices.Contains(m.Attributes, "model") {
			continue
		}
		family := "vllm:" + strings.TrimPrefix(m.Sources[0].Family, Suffixed.label(catalog.Router.Name))
		if !slices.Contains(repeated, family) {
			out = append(out, routerMetric(family, m.Kind, m.Unit, m.Attributes...))
		}
	}
	return out
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
