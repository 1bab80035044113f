package content

import (
	"fmt"
	"slices"
	"strings"
)

// Repository is where links to runbooks and pages begin.
const Repository = "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/"

// PromotedAttributes are the attributes of resources that the boards use as labels besides
// job and instance. A backend that does not have them as labels shows the same boards; the
// choices of these variables are then empty, and columns of tables as well.
func PromotedAttributes() []string {
	return []string{"k8s.cluster.name", "k8s.namespace.name", "k8s.pod.name", "service.version", "vllm.server.kind"}
}

// Boards returns all boards. Those of the set "stable" exist in each spelling.
func Boards() []Board {
	return []Board{
		overview(), engine(), objectives(), pool(), features(), collectorBoard(), wall(), wire(),
	}
}

// BoardByUID returns the board with the UID.
func BoardByUID(uid string) (Board, bool) {
	for _, b := range Boards() {
		if b.UID == uid {
			return b, true
		}
	}
	return Board{}, false
}

// The choices of a server. A choice of "all" matches also where a label is absent.
const (
	scopeMatchers  = `k8s_cluster_name=~"$cluster",k8s_namespace_name=~"$namespace"`
	serverMatchers = scopeMatchers + `,job=~"$job",service_version=~"$version",k8s_pod_name=~"$pod",instance=~"$instance"`
	engineMatchers = serverMatchers + `,model_name=~"$model"`
	// A pool has these labels only where the processor groups by them, so absent ones match.
	poolMatchers = `k8s_cluster_name=~"$cluster|",k8s_namespace_name=~"$namespace|",model_name=~"$model|"`
	// notServers are the kinds of targets that are no model servers.
	notServers = `vllm_server_kind!~"gateway|lora_syncer|router|accelerator"`
)

// server selects a metric of a server, engineOf one of an engine and a model, poolOf one of
// a pool, and gatewayOf one of a gateway, each by the choices of the board.
func server(metric string, more ...string) string    { return selector(metric, serverMatchers, more) }
func engineOf(metric string, more ...string) string  { return selector(metric, engineMatchers, more) }
func poolOf(metric string, more ...string) string    { return selector(metric, poolMatchers, more) }
func gatewayOf(metric string, more ...string) string { return selector(metric, scopeMatchers, more) }

func selector(metric, matchers string, more []string) string {
	return metric + "{" + strings.Join(append(more, matchers), ",") + "}"
}

// rate is the increase per second of a counter or of a part of a histogram.
func rate(series string) string { return "rate(" + series + "[$__rate_interval])" }

// quantile is one over all servers: of their buckets together, never of quantiles. Without
// observations it would be NaN, which Grafana shows instead of what the panel says without data.
func quantile(q float64, by, buckets string) string {
	return fmt.Sprintf("histogram_quantile(%g, sum by (%s) (%s)) >= 0", q, by, rate(buckets))
}

// quantileOf is one of each model.
func quantileOf(q float64, bucket string) string {
	return quantile(q, "le, model_name", engineOf(bucket))
}

// The choices of the boards about servers. Their values come from vllm_up, which stays at 0
// while a server is down; so a server can be chosen when it is needed.
func serverVariables() []Variable {
	return append(scopeVariables(),
		choice("job", "Service", serverUp(scopeMatchers), "job"),
		choice("version", "Version", serverUp(scopeMatchers+`,job=~"$job"`), "service_version"),
		choice("pod", "Pod", serverUp(scopeMatchers+`,job=~"$job",service_version=~"$version"`), "k8s_pod_name"),
		choice("instance", "Server", serverUp(scopeMatchers+`,job=~"$job",service_version=~"$version",k8s_pod_name=~"$pod"`), "instance"),
		choice("model", "Model", "vllm_diagnosis_severity{"+serverMatchers+"}", "model_name"),
	)
}

func serverUp(matchers string) string { return "vllm_up{" + notServers + "," + matchers + "}" }

func scopeVariables() []Variable {
	return []Variable{
		choice("cluster", "Cluster", "vllm_up", "k8s_cluster_name"),
		choice("namespace", "Namespace", `vllm_up{k8s_cluster_name=~"$cluster"}`, "k8s_namespace_name"),
	}
}

func choice(name, title, metric, label string) Variable {
	return Variable{Name: name, Label: title, Metric: metric, LabelName: label}
}

// severityWords are the words for vllm_diagnosis_severity.
func severityWords() []Mapping {
	return []Mapping{
		{0, "nothing to do", Green}, {1, "notice", Blue}, {2, "warning", Orange}, {3, "page", Red},
	}
}

func upDown() []Mapping { return []Mapping{{0, "down", Red}, {1, "up", Green}} }

// anyIsBad colours a count of bad things.
func anyIsBad(color Color) []Threshold { return []Threshold{{0, Green}, {1, color}} }

// changes marks the moments at which an engine or a pool got another condition.
func changes() []Annotation {
	// The interval is the time between two points, so that no change is between them.
	begins := func(series string) string { return series + " == 1 unless " + series + " offset $__interval == 1" }
	return []Annotation{
		{
			Name: "Engine conditions", Color: Orange,
			Expr: begins(engineOf("vllm_diagnosis_condition")),
			Text: "{{instance}} engine {{engine}}, {{model_name}}: {{condition}}",
		},
		{
			Name: "Causes", Color: Red,
			Expr: begins(engineOf("vllm_diagnosis_cause")),
			Text: "{{instance}} engine {{engine}}, {{model_name}}: {{cause}} ({{role}})",
		},
	}
}

func number(v float64) *float64 { return new(v) } // new(0) is an int

// highest and lowest keep as many series of a picture as can be distinguished: those with the
// highest or lowest mean over the chosen time. Each step of the picture has the same ones.
func highest(by, series string) string { return chosenSeries("topk", "max", by, series) }
func lowest(by, series string) string  { return chosenSeries("bottomk", "max", by, series) }

func chosenSeries(choose, aggregate, by, series string) string {
	all := aggregate + " by (" + by + ") "
	return all + "(" + series + ") and " + choose + "(20, " + all + "(avg_over_time(" + series + "[$__range] @ end())))"
}

// highestRate is like highest for the rate of a counter.
func highestRate(by, series string) string {
	all := "sum by (" + by + ") "
	return all + "(" + rate(series) + ") and topk(20, " + all + "(rate(" + series + "[$__range] @ end())))"
}

// shownOf says which series a panel shows if there are many.
var shownOf = []struct{ function, says string }{
	{" and topk(20,", " Of many, the 20 that are highest over the chosen time."},
	{" and bottomk(20,", " Of many, the 20 that are lowest over the chosen time."},
	{" and topk by (signal) (5,", " Of many engines, the 5 that are highest over the chosen time, for each signal."},
}

// sized sets the size of panels that stand side by side, and says which series they show.
func sized(width, height int, panels ...Panel) []Panel {
	out := make([]Panel, 0, len(panels))
	for _, p := range panels {
		for _, shown := range shownOf {
			if slices.ContainsFunc(p.Queries, func(q Query) bool { return strings.Contains(q.Expr, shown.function) }) {
				p.About += shown.says
			}
		}
		if p.Width == 0 {
			p.Width = width
		}
		if p.Height == 0 {
			p.Height = height
		}
		out = append(out, p)
	}
	return out
}

// chart draws queries over time, from 0. percent is the same for shares, from 0 to 100 %.
func chart(title, unit, about, noValue string, queries []Query) Panel {
	return Panel{Title: title, Kind: TimeSeries, Unit: unit, About: about, NoValue: noValue, Queries: queries, Min: number(0)}
}

func percent(title, about, noValue string, queries []Query) Panel {
	p := chart(title, "1", about, noValue, queries)
	p.Max = number(1)
	return p
}

func one(expr, legend string) []Query { return []Query{{Expr: expr, Legend: legend}} }

func now(expr, legend string) []Query { return []Query{{Expr: expr, Legend: legend, Instant: true}} }

// percentiles are the 95th and 99th percentile of a histogram over all chosen servers, per
// model, and the thresholds of the objectives about it.
func percentiles(bucket, metric string) []Query {
	queries := []Query{
		{Expr: quantileOf(0.95, bucket), Legend: "p95 {{model_name}}"},
		{Expr: quantileOf(0.99, bucket), Legend: "p99 {{model_name}}"},
	}
	if metric != "" {
		queries = append(queries, Query{
			Expr:   "max by (objective, model_name) (" + thresholds(metric) + ")",
			Legend: "objective {{objective}} {{model_name}}", AsThreshold: true,
		})
	}
	return queries
}

// thresholds are those of the objectives about a latency, and strictest the lowest of them.
func thresholds(metric string) string {
	return engineOf("vllm_slo_threshold_seconds", `metric="`+metric+`"`)
}

func strictest(metric string) Query {
	return Query{Expr: "min(" + thresholds(metric) + ")", Legend: "strictest objective", AsThreshold: true}
}

// The latencies of objectives.
const (
	ttft = "vllm.time_to_first_token"
	itl  = "vllm.inter_token_latency"
	tpot = "vllm.request.time_per_output_token"
	e2e  = "vllm.e2e_request_latency"
)

const drawnLimit = "A dashed line is the threshold of an objective about it."

// byModel is a sum over the chosen servers of each model.
func byModel(series string) string { return "sum by (model_name) (" + series + ")" }
