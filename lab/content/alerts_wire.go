package content

import "fmt"

// wireGroup is for people who let Prometheus scrape vLLM and do not use this project's
// processor. The names are vLLM's own. There are fewer rules, because without the
// diagnosis a rule knows neither what is usual for an engine nor why it is slow.
func wireGroup(p parameters) Group {
	const (
		by  = "job, model_name"
		all = "vllm:time_to_first_token_seconds_count"
	)
	late := func(window string) string {
		return fmt.Sprintf(`1 - sum by (%[1]s) (rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[%[2]s])) / (sum by (%[1]s) (rate(%[3]s[%[2]s])) > 0)`,
			by, window, all)
	}
	burn := func(factor, long, short string, length int, events string) string {
		// As for our own objectives: where not even an outage reaches the factor, a share is enough.
		limit := fmt.Sprintf("scalar(clamp_max(vector(%s * (1 - %s)), %s))", p.number(factor), p.number("rawFirstTokenTarget"), p.number("errorRatioAlways"))
		return fmt.Sprintf("%s > %s and %s > %s and sum by (%s) (rate(%s[%s])) * %d >= %s",
			late(long), limit, late(short), limit, by, all, short, length, p.number(events))
	}
	return Group{
		Name: "vllm-raw", Set: Wire,
		Alerts: []Alert{
			{
				Name: "VLLMRawServerDown", Severity: Page, For: 2 * minute, KeepFiringFor: 5 * minute,
				Expr:    "up == 0 and on (job, instance) last_over_time(vllm:num_requests_running[1d])",
				Summary: "{{ $labels.instance }} cannot be scraped",
			},
			{
				Name: "VLLMRawServerStalled", Severity: Page, For: 5 * minute, KeepFiringFor: 5 * minute,
				// Of several engines one may stall; without the label engine it is the server.
				Expr: "sum by (job, instance, engine) (min_over_time(vllm:num_requests_running[5m])) > 0" +
					" and on (job, instance, engine) sum by (job, instance, engine) (increase(vllm:generation_tokens_total[5m])) == 0" +
					" and on (job, instance, engine) sum by (job, instance, engine) (increase(vllm:prompt_tokens_total[5m])) == 0",
				Summary: "{{ $labels.instance }}{{ with $labels.engine }}, engine {{ . }},{{ end }} has running requests but makes no tokens",
			},
			{
				Name: "VLLMRawFirstTokenLateFast", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:    burn("burnFast", "1h", "5m", 300, "eventsFast"),
				Summary: "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " wait longer than 2.5 s for their first token",
			},
			{
				Name: "VLLMRawFirstTokenLateMedium", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:    burn("burnMedium", "6h", "30m", 1800, "eventsMedium"),
				Summary: "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " wait longer than 2.5 s for their first token",
			},
			{
				Name: "VLLMRawQueueTimeHigh", Severity: Ticket, For: 10 * minute, KeepFiringFor: 10 * minute,
				Expr: "histogram_quantile(0.95, sum by (" + by + ", le) (rate(vllm:request_queue_time_seconds_bucket[5m]))) > " +
					p.number("rawQueueSeconds") + " and on (" + by + ") sum by (" + by + ") (rate(vllm:request_queue_time_seconds_count[5m])) * 300 >= " +
					p.number("eventsFast"),
				Summary: "5 % of the requests for " + model("an unknown model") + " wait longer than {{ $value | humanizeDuration }} in the queue",
			},
			{
				Name: "VLLMRawRequestsFailing", Severity: Page, For: 5 * minute, KeepFiringFor: 5 * minute,
				Expr: `sum by (` + by + `) (rate(vllm:request_success_total{finished_reason="error"}[5m])) / (sum by (` + by +
					`) (rate(vllm:request_success_total[5m])) > 0) > ` + p.number("gatewayErrorRatio") +
					` and on (` + by + `) sum by (` + by + `) (rate(vllm:request_success_total[5m])) * 300 >= ` + p.number("eventsFast"),
				Summary: "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " end with an error",
			},
		},
	}
}
