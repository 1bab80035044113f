package runbook

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// section returns the text below a heading of a page.
func section(t *testing.T, page, title string) string {
	t.Helper()
	_, rest, found := strings.Cut(page, "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// A public guide about vLLM in production describes four situations, with what to see, the
// likely reasons and what to do. Each of its points has an answer here: a cause, an alert,
// a query, a panel or a flag.
func TestEachPointOfTheFourSituationsHasAnAnswer(t *testing.T) {
	page := pages(t)["symptoms"]
	for title, points := range map[string]map[string][]string{
		"First tokens and the queue get longer": {
			"first tokens late":              {"VLLMBudgetBurnFast.md", "VLLMServerDegraded.md"},
			"queue time":                     {"VLLMRawQueueTimeHigh.md", "vllm_request_queue_wait_estimate_seconds", "vllm_request_queue_time_ratio"},
			"more load than capacity":        {"demand_exceeds_capacity.md"},
			"longer prompts, large prefills": {"prefill_heavy.md"},
			"uneven traffic":                 {"imbalanced.md", "vllm_pool_imbalance_max_ratio"},
			"compare the rate of requests":   {"rate(vllm_time_to_first_token_seconds_count[15m])))[1d:5m])", ": Requests*"},
			"compare lengths of prompts":     {"vllm_request_prompt_tokens_sum", ": Prompt length*"},
			"replicas healthy":               {"\n   vllm_diagnosis_severity\n"},
			"prefill, decode or queue":       {": Mean time by request phase*"},
			"admission control":              {"limit admission or refuse work of low priority"},
			"scale out only if it helps":     {"Add servers only after steps 1 to 4."},
		},
		"Tokens get slower, the queue is short": {
			"time between tokens":            {"VLLMServerDegraded.md", "vllm_inter_token_latency_mean_seconds", ": Inter-token latency, p95*"},
			"throughput may fall":            {"Do not conclude** from fewer generated tokens"},
			"concurrency":                    {"decode_load.md", "vllm_num_requests_running"},
			"bandwidth, clocks, power":       {"slow_steps.md", ": GPU clock*", "clock, power, temperature, throttling, memory and hardware errors"},
			"communication":                  {"collective communication"},
			"model, kernel or runtime":       {"a new version of model, kernel or server"},
			"compare with the last good day": {"with those of the last good day"},
			"load test before tuning":        {"replay a typical load", "`--max-num-seqs` or `--max-num-batched-tokens`"},
			"the trade-off":                  {"cost total throughput and waiting time"},
		},
		"Preemptions increase": {
			"rate":                       {"rate(vllm_num_preemptions_total[5m])", ": Preemptions per first token*"},
			"near the ceiling":           {"vllm_kv_cache_utilization_ratio", ": KV cache usage*"},
			"with worse latency":         {"coincide with worse latency"},
			"what it means":              {"**Means:**"},
			"stabilize first":            {"Stabilize the admitted load"},
			"what changed":               {"vllm_request_params_max_tokens_bucket", "longer_outputs", "prompts_grew", "vllm_num_requests_running"},
			"reproduce":                  {"Replay this load against a test server"},
			"flags as trade-offs":        {"`--max-num-seqs`", "`--max-num-batched-tokens`", "None of them is right in one direction only."},
			"more memory, with headroom": {"a **higher** `--gpu-memory-utilization`", "graphs, communication and the largest step need some of the rest"},
			"replicas or GPUs":           {"add a replica or GPUs"},
			"no constant limit":          {"Do not conclude** that 90 %"},
		},
		"HTTP errors or cancellations increase": {
			"4xx and 5xx":                    {"VLLMGatewayErrors.md", "vllm_http_error_ratio", ": Gateway errors by code*", ": HTTP error ratio*"},
			"timeouts and disconnects":       {": Gateway request latency*", `vllm_wasted_tokens_ratio{reason="abandoned_prefill"}`},
			"completions":                    {": Finished requests by reason*"},
			"authentication, quota, invalid": {"authentication, quota, requests that are malformed"},
			"timeout of the gateway":         {"a timeout of the gateway"},
			"routing or admission":           {"upstream_starved.md", "VLLMGatewayNoReadyEndpoints.md"},
			"clients give up":                {"clients that give up while they wait"},
			"engine failures":                {"erroring.md", "failing.md", "stalled.md", "unreachable.md"},
			"begin at the boundary":          {"1. Which codes, at the gateway"},
			"correlate with waits":           {"vllm_time_to_first_token_quantile_seconds", ": Queue time*"},
			"logs of server and GPU":         {"log of the server and of the GPU", ": GPU errors*"},
			"not from request_success":       {"Do not conclude** the share of failed requests"},
		},
	} {
		text := section(t, page, title)
		flat := strings.Join(strings.Fields(text), " ")
		for point, answers := range points {
			for _, answer := range answers {
				assert.True(t, strings.Contains(text, answer) || strings.Contains(flat, answer), "%s: %s: %q is missing", title, point, answer)
			}
		}
	}
}

// The matrix has the four usual rows, each with causes that exist.
func TestTheMatrixLeadsToCauses(t *testing.T) {
	text := section(t, pages(t)["symptoms"], "Reading three numbers together")
	row := regexp.MustCompile(`(?m)^\| (later|as usual) \| (longer|short) \| (later|as usual) \| [^|]+ \| (.*) \|$`)
	cause := regexp.MustCompile("\\[`([a-z_]+)`\\]")
	var rows []string
	for _, match := range row.FindAllStringSubmatch(text, -1) {
		rows = append(rows, strings.Join(match[1:4], ", "))
		causes := cause.FindAllStringSubmatch(match[4], -1)
		assert.GreaterOrEqual(t, len(causes), 3, match[0])
		for _, c := range causes {
			_, known := catalog.CauseByName(c[1])
			assert.True(t, known, c[1])
		}
	}
	assert.Equal(t, []string{"later, longer, as usual", "later, short, as usual", "as usual, short, later", "later, longer, later"}, rows)
}

// Each alert that the page names exists.
func TestTheAlertsOfTheSymptomsExist(t *testing.T) {
	known := map[string]bool{}
	for _, g := range content.Groups() {
		for i := range g.Alerts {
			known[g.Alerts[i].Name] = true
		}
	}
	named := regexp.MustCompile(`\bVLLM[A-Z]\w+`).FindAllString(pages(t)["symptoms"], -1)
	assert.NotEmpty(t, named)
	for _, name := range named {
		assert.True(t, known[name], name)
	}
}
