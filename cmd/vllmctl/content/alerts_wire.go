package content

import "fmt"

// wireGroup is for people who let Prometheus scrape vLLM and do not use this project's
// processor. The names are vLLM's own. There are fewer rules, because without the
// diagnosis a rule knows neither what is usual for an engine nor why it is slow.
func wireGroup(p parameters) Group {
	const (
		by  = "namespace, job, model_name"
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
				Expr:        "up == 0 and on (job, instance) last_over_time(vllm:num_requests_running[1d])",
				Summary:     "{{ $labels.instance }} cannot be scraped",
				Description: "Prometheus cannot scrape this server, which reported requests within the last day.",
				Meaning:     "Prometheus cannot scrape a target that had vLLM's metrics within a day.",
				Impact:      "Requests to this server probably fail.",
				Diagnosis: []Step{
					{Text: "See whether others fail, too.", Query: "up == 0"},
					{Text: "Read the error on the page of targets of Prometheus."},
					{Text: "Send one request of your own: an answer means that only the scrape fails. Read the end of the server's log."},
				},
				Mitigation:   []string{"If your request fails, restart the server. Loading the model takes minutes."},
				LooksTheSame: "A server that is too busy to answer the scrape within its timeout.",
				NotConclude:  "The engine may run: only its metrics cannot be read.",
				CannotFire:   "Discovery removed the target: then there is no `up`. A server that is down for a day is forgotten.",
				FiresIn:      map[string][]string{"unreachable": lone},
			},
			{
				Name: "VLLMRawServerStalled", Severity: Page, For: 5 * minute, KeepFiringFor: 5 * minute,
				// Of several engines one may stall; without the label engine it is the server.
				Expr: "sum by (namespace, pod, job, instance, engine) (min_over_time(vllm:num_requests_running[5m])) > 0" +
					" and on (namespace, pod, job, instance, engine) sum by (namespace, pod, job, instance, engine) (increase(vllm:generation_tokens_total[5m])) == 0" +
					" and on (namespace, pod, job, instance, engine) sum by (namespace, pod, job, instance, engine) (increase(vllm:prompt_tokens_total[5m])) == 0",
				Summary:     "{{ $labels.instance }}{{ with $labels.engine }}, engine {{ . }},{{ end }} has running requests but makes no tokens",
				Description: "Requests have run for five minutes without a new token.",
				Meaning:     "Requests have been running on an engine for five minutes without a new token.",
				Impact:      "Its users wait until their own timeout.",
				Diagnosis: []Step{
					{Text: "See the running requests and the tokens.", Query: "sum by (instance) (rate(vllm:generation_tokens_total[5m]))", Board: "vllm-wire", Panel: "Token throughput"},
					{Text: "Send one request of your own: before 0.10.2, and once reported later, the gauge of running requests freezes when all clients leave at once."},
					{Text: "Read the server's log for a timeout of NCCL, or an error of the engine."},
				},
				Mitigation: []string{
					"Take the server out of rotation, save a stack dump of its processes (py-spy dump) within five minutes, and then restart it. Its requests are lost; they were not served any more.",
				},
				LooksTheSame: "A frozen gauge on an idle server: your own request succeeds then. See `frozen_gauges`.",
				NotConclude:  "The GPU may be well.",
				CannotFire:   "The server cannot be scraped (`VLLMRawServerDown`), or several API servers report the gauge each for itself.",
				FiresIn:      map[string][]string{"long stalled": lone},
			},
			{
				Name: "VLLMRawFirstTokenLateFast", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:         burn("burnFast", "1h", "5m", 300, "eventsFast"),
				Summary:      "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " wait longer than 2.5 s for their first token",
				Description:  "In the last hour and in the last five minutes, far more requests than allowed waited longer than 2.5 s for their first token.",
				Meaning:      "Over 1h and 5m, the share of first tokens later than 2.5 s is more than 14.4 times what a target of 95 % allows." + rawLate,
				Impact:       "Most users of the model wait before they see anything.",
				Diagnosis:    rawLateSteps(),
				Mitigation:   burnMitigation[1:],
				LooksTheSame: rawLooks,
				NotConclude:  burnNot,
				CannotFire:   rawCannot,
				ShownBy:      "TestAlertsOnRawNames",
			},
			{
				Name: "VLLMRawFirstTokenLateMedium", Severity: Page, KeepFiringFor: 5 * minute,
				Expr:         burn("burnMedium", "6h", "30m", 1800, "eventsMedium"),
				Summary:      "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " wait longer than 2.5 s for their first token",
				Description:  "In the last six hours and in the last 30 minutes, far more requests than allowed waited longer than 2.5 s for their first token.",
				Meaning:      "Over 6h and 30m, the share of first tokens later than 2.5 s is more than 6 times what a target of 95 % allows." + rawLate,
				Impact:       "Many users of the model wait before they see anything.",
				Diagnosis:    rawLateSteps(),
				Mitigation:   burnMitigation[1:],
				LooksTheSame: rawLooks,
				NotConclude:  burnNot,
				CannotFire:   rawCannot,
				ShownBy:      "TestAlertsOnRawNames",
			},
			{
				Name: "VLLMRawQueueTimeHigh", Severity: Ticket, For: 10 * minute, KeepFiringFor: 10 * minute,
				Expr: "histogram_quantile(0.95, sum by (" + by + ", le) (rate(vllm:request_queue_time_seconds_bucket[5m]))) > " +
					p.number("rawQueueSeconds") + " and on (" + by + ") sum by (" + by + ") (rate(vllm:request_queue_time_seconds_count[5m])) * 300 >= " +
					p.number("eventsFast"),
				Summary:     "5 % of the requests for " + model("an unknown model") + " wait longer than {{ $value | humanizeDuration }} in the queue",
				Description: "5 % of the requests wait longer in vLLM's queue than the threshold.",
				Meaning:     "The p95 of the time in the queue is above 5 s.",
				Impact:      "These users wait before their prompt is even read.",
				Diagnosis: []Step{
					{Text: "See whether the queue still grows, and at which server.", Query: "sum by (instance, model_name) (vllm:num_requests_waiting)", Board: "vllm-wire", Panel: "Running and waiting requests"},
					{Text: "See whether the KV cache is full and requests are preempted.", Query: "sum by (model_name) (rate(vllm:num_preemptions_total[5m]))", Board: "vllm-wire", Panel: "Preemptions"},
					{Text: "See whether more requests end than usual. [What you see](symptoms.md) has the next steps.", Query: "sum by (model_name) (rate(vllm:request_success_total[5m])) / quantile_over_time(0.5, (sum by (model_name) (rate(vllm:request_success_total[5m])))[1d:5m])", Board: "vllm-wire", Panel: "Finished requests by reason"},
				},
				Mitigation:   burnMitigation[1:],
				LooksTheSame: "Many long prompts, fewer servers and a slower engine all make a queue.",
				NotConclude:  "It may last although the value falls: the histogram changes only when requests end.",
				CannotFire:   "No request ends: then `VLLMRawServerStalled` fires. The p95 of an empty queue reads 0.285 s.",
				FiresIn:      map[string][]string{"overload": nil},
			},
			{
				Name: "VLLMRawRequestsFailing", Severity: Page, For: 5 * minute, KeepFiringFor: 5 * minute,
				Expr: `sum by (` + by + `) (rate(vllm:request_success_total{finished_reason="error"}[5m])) / (sum by (` + by +
					`) (rate(vllm:request_success_total[5m])) > 0) > ` + p.number("gatewayErrorRatio") +
					` and on (` + by + `) sum by (` + by + `) (rate(vllm:request_success_total[5m])) * 300 >= ` + p.number("eventsFast"),
				Summary:     "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " end with an error",
				Description: "{{ $value | humanizePercentage }} of the requests that ended in the last five minutes did so with an error of the engine.",
				Meaning:     "More than 5 % of the requests have `finished_reason` error. Despite its name, the metric counts every end.",
				Impact:      "These users get an error or a truncated answer.",
				Diagnosis: []Step{
					{Text: "See how requests end, and at which server.", Query: "sum by (instance, finished_reason) (rate(vllm:request_success_total[5m]))", Board: "vllm-wire", Panel: "Finished requests by reason"},
					{Text: "Read the server's log for the error."},
				},
				Mitigation:   []string{"All servers since a release: undo the newest change of image or model.", "One server: take it out of rotation. If its log has EngineDeadError, restart the server."},
				LooksTheSame: "Cancelled requests are not counted; vLLM's Rust front end counts them as abort.",
				NotConclude:  "Without this alert requests may still fail: those refused before the engine are only in the HTTP metrics.",
				CannotFire:   "The version has no finished_reason error, or fewer than ten requests ended in five minutes.",
				FiresIn:      map[string][]string{"erroring": nil},
			},
		},
	}
}

const (
	rawLateQuery = `histogram_quantile(0.95, sum by (model_name, le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`
	rawLate      = " 2.5 s is a bound of vLLM's histogram, so the share is exact."
	rawLooks     = "A few long prompts in a quiet hour: with ten requests in five minutes, eight late ones are enough."
	rawCannot    = "vLLM is not scraped under its own names, or too few requests got a first token. Requests without a first token are in no histogram."
)

func rawLateSteps() []Step {
	return []Step{
		{Text: "See how late the first token is.", Query: rawLateQuery, Board: "vllm-wire", Panel: "Time to first token"},
		{Text: "See whether requests wait in the queue, and at which server.", Query: "sum by (instance, model_name) (vllm:num_requests_waiting)", Board: "vllm-wire", Panel: "Running and waiting requests"},
		{Text: "See whether prompts became longer.", Query: "rate(vllm:request_prompt_tokens_sum[5m]) / (rate(vllm:request_prompt_tokens_count[5m]) > 0)", Board: "vllm-wire", Panel: "Prompt length"},
		{Text: "[What you see](symptoms.md) has the next steps."},
	}
}
