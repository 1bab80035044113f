package runbooks

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

const root = "../../.."

// blocks returns what a runbook gives to paste in a language.
func blocks(t *testing.T, name, language string) (all []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "runbooks", name+".md"))
	require.NoError(t, err)
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		all = append(all, match[1])
	}
	return all
}

// queries returns the queries of a runbook, each on one line.
func queries(t *testing.T, name string) (all []string) {
	t.Helper()
	for _, query := range blocks(t, name, "promql") {
		all = append(all, strings.Join(strings.Fields(query), " "))
	}
	return all
}

// seen is what a query must show in an incident, compared with the time before.
type seen struct {
	query string
	// factor is by how much the sum of its values grows at least; below 1, to what it falls
	// at most. 0 is for a sum of 0 before.
	factor float64
}

// appears is the factor of a query that has no series before.
const appears = -1

// An incident is simulated, its runbook is opened, and its queries are pasted. What they
// must show follows from what the scenario does and from the words of the page, not from
// what was measured.
var incidents = map[string]struct {
	runbook string
	// during is when the incident is looked at; 0 is minute 16.
	during time.Duration
	seen   []seen
}{
	"overload": {"demand_exceeds_capacity", 0, []seen{
		{"vllm_request_queue_wait_estimate_seconds", 5},
		{"max_over_time(vllm_num_requests_running[5m])", 2},
		{"max_over_time(vllm_kv_cache_utilization_ratio[5m])", 2},
		{"sum by (model_name) (vllm_arrival_rate_per_second) / quantile_over_time(0.5, (sum by (model_name) (vllm_arrival_rate_per_second))[1d:5m])", 1.5},
	}},
	"fewer-kv-blocks": {"kv_pressure", 0, []seen{
		{"vllm_kv_cache_utilization_ratio", 3},
		{"vllm_preemptions_per_first_token", 0},
	}},
	"long-prompts": {"prefill_heavy", 0, []seen{
		{"vllm_request_prompt_tokens_mean", 2},
		{"vllm_request_prefill_time_mean_seconds", 2},
		{"vllm_prefill_compute_throughput_per_second", 2},
	}},
	"prefix-reuse-fell": {"prefill_heavy", 0, []seen{
		{"vllm_prefix_cache_hit_ratio", 0.5},
		{"vllm_prompt_tokens_cached_ratio", 0.5},
	}},
	"longer-outputs": {"decode_load", 0, []seen{
		{"vllm_num_requests_running", 2},
		{"vllm_request_generation_tokens_mean", 1.5},
	}},
	"bandwidth-loss":    {"slow_steps", 0, []seen{{"vllm_inter_token_latency_mean_seconds", 1.5}}},
	"front-end-starved": {"frontend_bound", 0, []seen{{`vllm_frontend_overhead_mean_seconds / ignoring (quantile) vllm_time_to_first_token_quantile_seconds{quantile="0.5"}`, 1.3}}},
	"cache-thrash": {"cache_thrash", 0, []seen{
		{"vllm_prefix_cache_hit_ratio", 0.8},
	}},
	"admission-deferred": {"admission_deferred", 0, []seen{
		{`vllm_num_requests_waiting_by_reason{reason="deferred"} > 0`, appears},
	}},
	"kv-transfer-failing": {"kv_transfer_failing", 0, []seen{
		{"rate(vllm_nixl_num_failed_transfers_total[5m])", 0},
		{"vllm_request_prefill_time_mean_seconds", 1.3},
	}},
	"speculation-useless": {"speculation_wasteful", 0, []seen{
		{"vllm_spec_decode_mean_acceptance_length", 0.7},
		{"vllm_spec_decode_acceptance_ratio", 0.3},
	}},
	"erroring": {"erroring", 0, []seen{
		{`sum by (job, instance, engine) (rate(vllm_request_success_total{finished_reason="error"}[5m]))`, 0},
	}},
	"corrupted-logits": {"corrupted_output", 0, []seen{
		{"increase(vllm_corrupted_requests_total[15m])", 0},
	}},
	"stalled": {"stalled", 12*time.Minute + 30*time.Second, []seen{
		{"rate(vllm_generation_tokens_total[2m]) + rate(vllm_prompt_tokens_total[2m]) == 0 and vllm_num_requests_running > 0", appears},
		{"time() - max_over_time(timestamp(rate(vllm_generation_tokens_total[1m]) > 0)[1h:15s])", 3},
	}},
	"unreachable": {"unreachable", 12 * time.Minute, []seen{
		{"vllm_scrape_failure == 1", appears},
		{"vllm_up == 0", appears},
	}},
	"restart":       {"starting", 13 * time.Minute, nil},
	"asleep":        {"asleep", 13 * time.Minute, nil},
	"frozen-gauges": {"frozen_gauges", 14 * time.Minute, []seen{{"vllm_kv_cache_utilization_ratio > 0.5 and vllm_num_requests_running == 0", appears}}},
	"replica-imbalance": {"imbalanced", 0, []seen{
		{"vllm_num_requests_waiting", 0},
	}},
}

func TestTheQueriesOfTheRunbooksShowTheIncident(t *testing.T) {
	race.SkipSequential(t)
	for name, incident := range incidents {
		t.Run(name, func(t *testing.T) {
			s, err := scenario.Load(filepath.Join(root, "examples", "scenarios", name+".yaml"))
			require.NoError(t, err)
			story := history.FromScenario(&s)
			// Without objectives, every latency is compared with what is usual.
			story.Processor = map[string]any{"objectives": []any{}}
			during := incident.during
			if during == 0 {
				during = 16 * time.Minute
			}
			story.Length = during
			h := history.Play(t, story, history.Suffixed)
			all := queries(t, incident.runbook)
			require.NotEmpty(t, all)
			// sum adds up what a query shows at a time.
			sum := func(query string, at time.Duration) (total float64, series int) {
				vector, err := h.Stores[0].Instant(t.Context(), query, h.Begin.Add(at))
				require.NoError(t, err, query)
				for _, sample := range vector {
					total += sample.F
				}
				return total, len(vector)
			}
			const before = 9 * time.Minute
			for _, want := range incident.seen {
				require.True(t, slices.Contains(all, want.query), "the runbook has no query %s", want.query)
				was, seriesBefore := sum(want.query, before)
				is, seriesNow := sum(want.query, during)
				switch {
				case want.factor == appears:
					assert.Zero(t, seriesBefore, "%s before the incident", want.query)
					assert.Positive(t, seriesNow, want.query)
				case want.factor == 0:
					assert.Zero(t, was, "%s before the incident", want.query)
					assert.Positive(t, is, want.query)
				case want.factor > 1:
					assert.Greater(t, is, want.factor*was, want.query)
				default:
					assert.Less(t, is, want.factor*was, want.query)
				}
			}
		})
	}
}
