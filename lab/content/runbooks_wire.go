package content

const (
	rawLateQuery = `histogram_quantile(0.95, sum by (model_name, le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`
	rawLate      = " 2.5 s is a bound of vLLM's histogram, so the share is exact. Where a low target makes the factor unreachable, 90 % late requests are enough."
	rawCannot    = "vLLM is not scraped under its own names, or fewer requests got a first token in the short window than the guard asks for. Requests that never get a first token are in no histogram."
)

func rawLateSteps() []Step {
	return []Step{
		{Text: "See how late the first token is.", Query: rawLateQuery, Board: "vllm-wire", Panel: "Time to first token"},
		{Text: "See whether requests wait in the queue.", Query: "sum by (model_name) (vllm:num_requests_waiting)", Board: "vllm-wire", Panel: "Requests that wait and run"},
		{Text: "See whether prompts became longer.", Query: "rate(vllm:request_prompt_tokens_sum[5m]) / (rate(vllm:request_prompt_tokens_count[5m]) > 0)", Board: "vllm-wire", Panel: "Length of prompts"},
		{Text: "[What you see](symptoms.md) has the next steps."},
	}
}

var wireWords = map[string]runbook{
	"VLLMRawServerDown": {
		description: "Prometheus cannot scrape this server, which reported requests within the last day.",
		meaning:     "The scrape of a target that had vLLM's metrics within a day fails for two minutes.",
		impact:      "Requests to this server probably fail.",
		diagnosis: []Step{
			{Text: "See whether others fail, too.", Query: "up == 0"},
			{Text: "Read why the scrape fails: the page of targets of Prometheus has the error."},
			{Text: "Send one request of your own, and read the end of the server's log."},
		},
		mitigation:   []string{"Restart the server. Loading the model takes minutes.", "Route the users to another server."},
		looksTheSame: "A server that is too busy to answer the scrape within its timeout.",
		notConclude:  "Do not conclude that the engine is dead: only its metrics cannot be read.",
		cannotFire:   "Discovery removed the target: then there is no `up`. A server that is down for a day is forgotten.",
	},
	"VLLMRawServerStalled": {
		description: "Requests run, and no token was computed in five minutes.",
		meaning:     "Requests have been running on an engine for five minutes without a new prompt token or output token of it, and this lasts for five more minutes.",
		impact:      "Its users wait until their own timeout.",
		diagnosis: []Step{
			{Text: "See the running requests and the tokens.", Query: "sum by (instance) (rate(vllm:generation_tokens_total[5m]))", Board: "vllm-wire", Panel: "Tokens"},
			{Text: "Send one request of your own: before 0.10.2, and by one report later as well, vLLM leaves the gauge of running requests frozen when all clients leave at once."},
			{Text: "Read the server's log for a timeout of NCCL, or an error of the engine."},
		},
		mitigation:   []string{"Restart the server. Its requests are lost; they were not served any more."},
		looksTheSame: "A frozen gauge on an idle server: your own request succeeds then. See `frozen_gauges`.",
		notConclude:  "Do not conclude that the GPU is broken.",
		cannotFire:   "The server cannot be scraped (`VLLMRawServerDown`), or several API servers report the gauge for themselves.",
	},
	"VLLMRawFirstTokenLateFast": {
		description: "In the last hour and in the last five minutes, far more requests than allowed waited longer than 2.5 s for their first token.",
		meaning:     "The share of requests whose first token took longer than 2.5 s is more than 14.4 times what a target of 95 % allows, over an hour and over five minutes." + rawLate,
		impact:      "Most users of the model wait before they see anything.", diagnosis: rawLateSteps(), mitigation: burnMitigation,
		looksTheSame: burnLooks, notConclude: burnNot, cannotFire: rawCannot,
	},
	"VLLMRawFirstTokenLateMedium": {
		description: "In the last six hours and in the last 30 minutes, far more requests than allowed waited longer than 2.5 s for their first token.",
		meaning:     "The share of requests whose first token took longer than 2.5 s is more than 6 times what a target of 95 % allows, over six hours and over 30 minutes." + rawLate,
		impact:      "Many users of the model wait before they see anything.", diagnosis: rawLateSteps(), mitigation: burnMitigation,
		looksTheSame: burnLooks, notConclude: burnNot, cannotFire: rawCannot,
	},
	"VLLMRawQueueTimeHigh": {
		description: "5 % of the requests wait longer in vLLM's queue than the threshold.",
		meaning:     "The p95 of the time in the queue is above 5 s for ten minutes.",
		impact:      "These users wait before their prompt is even read.",
		diagnosis: []Step{
			{Text: "See whether the queue still grows.", Query: "sum by (model_name) (vllm:num_requests_waiting)", Board: "vllm-wire", Panel: "Requests that wait and run"},
			{Text: "See whether the KV cache is full and requests are preempted.", Query: "sum by (model_name) (rate(vllm:num_preemptions_total[5m]))", Board: "vllm-wire", Panel: "Preemptions"},
			{Text: "See whether more requests come than before.", Query: "sum by (model_name) (rate(vllm:request_success_total[5m]))", Board: "vllm-wire", Panel: "Requests that ended"},
		},
		mitigation:   burnMitigation,
		looksTheSame: "Many long prompts, fewer servers, or a slower engine: all of them make a queue.",
		notConclude:  "Do not conclude that it is over when the value falls: the histogram changes when requests end, so it is late.",
		cannotFire:   "Requests wait and none of them ends: then `VLLMRawServerStalled` fires. The first bucket ends at 0.3 s, so the p95 of an empty queue reads 0.285 s.",
	},
	"VLLMRawRequestsFailing": {
		description: "{{ $value | humanizePercentage }} of the requests that ended in the last five minutes did so with an error of the engine.",
		meaning:     "The share of requests with `finished_reason` error is above 5 % for five minutes. The name of the metric says success, but it counts every end.",
		impact:      "These users get an error or a truncated answer.",
		diagnosis: []Step{
			{Text: "See how requests end.", Query: "sum by (finished_reason) (rate(vllm:request_success_total[5m]))", Board: "vllm-wire", Panel: "Requests that ended"},
			{Text: "Read the server's log for the error."},
		},
		mitigation:   []string{"Restart the server if its engine is broken.", "Undo the newest change of its image or model."},
		looksTheSame: "Requests that clients cancel are not counted at all; vLLM's Rust front end counts them as abort.",
		notConclude:  "Do not conclude that all is well without this alert: requests that are refused before the engine are not counted. HTTP metrics of the server have them.",
		cannotFire:   "The version has no finished_reason error, or fewer than ten requests ended in five minutes.",
	},
}
