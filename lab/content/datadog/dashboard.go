package datadog

import "strings"

// group is a group of widgets.
type group struct {
	title   string
	widgets []widget
}

// widget is one picture. Each formula draws a line for each group of its queries.
type widget struct {
	title, about string
	// kind is "timeseries", "query_value" or "toplist".
	kind string
	// unit is the unit in Datadog's words; empty for a bare number.
	unit  string
	lines []line
	// limits colour a value from a number on.
	limits []limit
}

// line is a formula over queries, which are called a, b and c.
type line struct {
	formula, alias string
	queries        []string
}

type limit struct {
	from    float64
	palette string
}

const (
	seconds  = "second"
	fraction = "fraction"
)

// scope are the choices at the top of the dashboard. A choice of all matches also where
// the tag is missing.
const scope = "$model,$service,$server,$namespace"

// choices are the tags behind them, by name.
var choices = []struct{ name, tag string }{
	{"model", "model_name"}, {"service", "service.name"}, {"server", "service.instance.id"}, {"namespace", "k8s.namespace.name"},
}

// of is a query with the choices and further filters.
func of(aggregator, metric, by string, filters ...string) string {
	query := aggregator + ":" + metric + "{" + strings.Join(append([]string{scope}, filters...), ",") + "}"
	if by != "" {
		query += " by {" + by + "}"
	}
	return query
}

func one(query string) []line { return []line{{formula: "a", queries: []string{query}}} }

const (
	perModel  = "model_name"
	perServer = "service.instance.id,model_name"
)

// p95 is the percentile of the slowest server: percentiles of several servers cannot be
// averaged.
func p95(title, metric string) widget {
	return widget{
		title: title, kind: "timeseries", unit: seconds, about: "Of each server, over the last minute. Absent without requests.",
		lines: one(of("max", metric, perServer, "quantile:0.95")),
	}
}

func groups() []group {
	severity := []limit{{3, "white_on_red"}, {2, "white_on_yellow"}, {0, "white_on_green"}}
	good, undecided, valid := of("sum", "vllm.slo.good", "model_name,objective")+".as_count()",
		of("sum", "vllm.slo.undecided", "model_name,objective")+".as_count()", of("sum", "vllm.slo.valid", "model_name,objective")+".as_count()"
	return []group{
		{"Health", []widget{
			{
				title: "Worst severity", kind: "query_value", limits: severity, about: "0 nothing to do, 1 notice, 2 warning, 3 page.",
				lines: one(of("max", "vllm.diagnosis.severity", "")),
			},
			{title: "Servers", kind: "query_value", about: "That are scraped, whether they answer or not.", lines: []line{{
				formula: "count_not_null(a)", queries: []string{of("max", "vllm.up", "service.instance.id")},
			}}},
			{title: "Severity", kind: "timeseries", about: "Of each server: 0 nothing to do, 1 notice, 2 warning, 3 page.", lines: one(of("max", "vllm.diagnosis.severity", perServer))},
			{
				title: "Causes", kind: "toplist", about: "1 while the cause is present, 0 afterwards. docs/runbooks has a page for each.",
				lines: one(of("max", "vllm.diagnosis.cause", "cause,role,service.instance.id,model_name")),
			},
			{title: "Condition", kind: "timeseries", about: "Servers in each condition.", lines: one(of("sum", "vllm.diagnosis.condition", "condition"))},
		}},
		{"Traffic and latency", []widget{
			{title: "Arriving requests, per second", kind: "timeseries", lines: one(of("sum", "vllm.arrival_rate", perModel))},
			p95("Time to first token, p95", "vllm.time_to_first_token_quantile"),
			p95("Inter-token latency, p95", "vllm.inter_token_latency_quantile"),
			{
				title: "Queue time, mean", kind: "timeseries", unit: seconds, about: "Of each server, of the requests that ended in the last minute.",
				lines: one(of("max", "vllm.request.queue_time_mean", perServer)),
			},
		}},
		{"Objectives", []widget{
			{title: "Attainment", kind: "timeseries", unit: fraction, about: "Over all servers. The true value is between both lines.", lines: []line{
				{formula: "(a + b) / c", alias: "at most", queries: []string{good, undecided, valid}},
				{formula: "a / c", alias: "at least", queries: []string{good, undecided, valid}},
			}},
			{title: "Target", kind: "timeseries", unit: fraction, about: "The strictest, if servers differ.", lines: one(of("max", "vllm.slo.target", "model_name,objective"))},
			{
				title: "Burn rate", kind: "timeseries", about: "Of each server: how many times faster than allowed the error budget is certainly used.",
				lines: one(of("max", "vllm.slo.burn_rate", perServer+",objective,window", "bound:lower")),
			},
			{
				title: "Error budget left", kind: "timeseries", unit: fraction, about: "Of each server, over budget_window: 1 is all of it, 0 none. A new server has seen little of it.",
				lines: one(of("min", "vllm.slo.error_budget_remaining", perServer+",objective", "bound:upper")),
			},
		}},
		{"Engines", []widget{
			{title: "Running requests", kind: "timeseries", lines: one(of("sum", "vllm.num_requests.running", perServer))},
			{title: "Waiting requests", kind: "timeseries", about: "Bursts queue. What matters is their time in the queue.", lines: one(of("sum", "vllm.num_requests.waiting", perServer))},
			{
				title: "KV cache usage", kind: "timeseries", unit: fraction, about: "A full cache without preemptions and without waiting requests is used well.",
				lines: one(of("max", "vllm.kv_cache.utilization", perServer)),
			},
			{title: "Preemptions, per second", kind: "timeseries", lines: one(of("sum", "vllm.preemption_rate", perServer))},
			{title: "Generated tokens, per second", kind: "timeseries", lines: one(of("sum", "vllm.generation_throughput", perModel))},
			{title: "Prompt tokens, per second", kind: "timeseries", lines: one(of("sum", "vllm.prompt_throughput", perModel))},
			{
				title: "Prefix cache hit ratio", kind: "timeseries", unit: fraction, about: "Of each server: the share of prompt tokens that need no prefill.",
				lines: one(of("max", "vllm.prefix_cache.hit_ratio", perServer)),
			},
		}},
		{"Gateway", []widget{
			{title: "Error ratio", kind: "timeseries", unit: fraction, about: "The share of what arrived, also of what was refused.", lines: []line{{
				formula: "a / b", queries: []string{
					"default_zero(" + of("sum", "inference_gateway.epp.request.errors", perModel) + ".as_count())",
					// The picker counts as requests only what it scheduled, so what it refused is added.
					// Datadog may have changed the value of the tag to lower case.
					"default_zero(" + of("sum", "inference_gateway.epp.requests", perModel) + ".as_count()) + default_zero(" +
						of("sum", "inference_gateway.epp.request.errors", perModel, "!error_code:ModelServerError", "!error_code:modelservererror") + ".as_count())",
				},
			}}},
			{title: "Ready endpoints", kind: "timeseries", lines: one(of("max", "inference_gateway.pool.endpoint.ready", "pool"))},
			{
				title: "Request latency, p99", kind: "timeseries", unit: seconds, about: "The slowest replica of the picker.",
				lines: one(of("max", "inference_gateway.epp.request.duration_quantile", perModel, "quantile:0.99")),
			},
		}},
	}
}
