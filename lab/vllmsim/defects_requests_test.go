package vllmsim

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// shownByRequests are the defects of what is counted for each request, of HTTP, of estimates,
// and of the first engine.
var shownByRequests = []demonstration{
	{
		"first-tokens-at-end", "with `Config.Priority`, which no file has", func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.27.0", time.Minute, func(c *Config) { c.Priority = true })
			timed := p.sum("vllm:time_to_first_token_seconds_count")
			assert.InDelta(t, p.sum("vllm:request_success_total"), timed, 0)
			assert.Greater(t, p.sum("vllm:generation_tokens_total")-p.sum("vllm:inter_token_latency_seconds_count"), timed)
			assert.Positive(t, p.sum("vllm:time_to_first_token_seconds_count", `priority="<-1"`))
		},
	},
	{
		"choices-counted-singly",
		"`choices_share`, `choices`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, workload(func(w *engine.Workload) { w.ChoicesShare, w.Choices = 1, 3 }))
			n := p.ended(engine.EndStop, engine.EndLength)
			require.Greater(t, n, 50.0)
			assert.InDelta(t, n, p.sum("vllm:request_params_n_count"), 0)
			assert.InDelta(t, 3*n, p.sum("vllm:request_params_n_sum"), 0)
			assert.InDelta(t, 3*n, p.sum(success), 20, "some of a request are complete before the others")
			assert.InDelta(t, n, p.sum("http_requests_total"), 0)
			assert.InDelta(t, n, p.sum("vllm:request_max_num_generation_tokens_count"), 0)
		},
	},
	{
		"beam-steps-counted",
		"`beam_share`, `beams`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, workload(func(w *engine.Workload) { w.Rate, w.BeamShare, w.Beams = 0.3, 1, 4 }))
			n := p.ended(engine.EndLength)
			require.Greater(t, n, 5.0)
			assert.Greater(t, p.sum(success, `finished_reason="length"`), 50*n)
			assert.Greater(t, p.sum(first+"_count"), 50*n)
			assert.InDelta(t, n, p.sum("http_requests_total"), 0)
			assert.InDelta(t, p.sum("vllm:request_generation_tokens_count"), p.sum("vllm:request_generation_tokens_sum"), 0)
		},
	},
	{
		"gap-per-output",
		"`speculation`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, func(c *Config) { c.SpecDecode = true })
			gaps, tokens := p.sum("vllm:inter_token_latency_seconds_count"), p.sum("vllm:generation_tokens_total")
			assert.Less(t, gaps, 0.8*(tokens-p.sum(first+"_count")))
		},
	},
	{
		"requeued-sessions",
		"`session_share`, `session_chunks`, `session_pause`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", 2*time.Minute, sessions)
			n := p.ended(engine.EndStop, engine.EndLength)
			require.Greater(t, n, 10.0)
			assert.InDelta(t, n, p.sum(queue+"_count"), 0)
			assert.Less(t, p.sum(queue+"_sum"), -4*n, "three pauses of two seconds, unless a session ends early")
			for _, o := range p.outcomes {
				assert.GreaterOrEqual(t, o.Queue, 0.0)
			}
		},
	},
	{
		"sessions-per-chunk",
		"`session_share`, `session_chunks`, `session_pause`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", 2*time.Minute, sessions)
			n := p.ended(engine.EndStop, engine.EndLength)
			assert.Greater(t, p.sum(first+"_count"), 3*n)
			assert.InDelta(t, run(t, rust, "0.24.0", 2*time.Minute, sessions).sum(first+"_count"), n, 60, "one for each, and of those under way")
			assert.Greater(t, run(t, v1, "0.19.1", 2*time.Minute, sessions).sum("vllm:prompt_tokens_total"), 3*p.sum("vllm:prompt_tokens_total"))
			whole := 0.0
			for _, o := range p.outcomes {
				whole += o.Ended - o.Arrived
			}
			assert.Less(t, p.sum("vllm:e2e_request_latency_seconds_sum"), whole-4*n)
		},
	},
	{
		"preemptions-counted-late",
		"preemptions",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, both(crowded, func(c *Config) {
				c.Changes = []engine.Change{{At: 50, Parameter: engine.ParamClientsLeave, Value: 1}}
			}))
			assert.Positive(t, p.sum("vllm:num_preemptions_total"))
			assert.Less(t, p.sum("vllm:num_preemptions_total"), float64(p.states[0].Preemptions))
		},
	},
	{
		"first-wait-only",
		"preemptions",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, crowded)
			waited, preempted := 0.0, 0
			for _, o := range p.outcomes {
				waited += o.Queue
				preempted += o.Preemptions
			}
			require.Positive(t, preempted)
			assert.InEpsilon(t, waited, p.sum(queue+"_sum"), 1e-9, "up to the first admission")
		},
	},
	{
		"client-errors-as-server-errors",
		"the change `client_errors`",
		func(t *testing.T) {
			t.Helper()
			wrong := set(engine.ParamClientErrors, 0.3)
			old, fresh := run(t, v1, "0.25.0", time.Minute, wrong), run(t, v1, "0.26.0", time.Minute, wrong)
			n := old.ended(engine.EndRefused)
			require.Greater(t, n, 10.0)
			assert.InDelta(t, n, old.sum("http_requests_total", `status="5xx"`), 0)
			assert.Empty(t, old.values("http_requests_total", `status="4xx"`))
			assert.InDelta(t, n, fresh.sum("http_requests_total", `status="4xx"`), 0)
			assert.Empty(t, fresh.values("http_requests_total", `status="5xx"`))
			assert.Zero(t, old.sum(success, `finished_reason="error"`))
		},
	},
	{
		"handler-lost",
		"`lost_handlers`",
		func(t *testing.T) {
			t.Helper()
			lost := func(c *Config) { c.LostHandlers = true }
			p := run(t, v1, "0.24.0", time.Minute, lost)
			assert.InDelta(t, p.sum("http_requests_total"), p.sum("http_requests_total", `handler="none"`), 0)
			assert.Empty(t, run(t, v1, "0.23.0", time.Minute, lost).values("http_requests_total", `handler="none"`))
		},
	},
	{
		"deferred-in-waiting",
		"requests that wait for an adapter (`lora_slots`) or a `transfer`",
		func(t *testing.T) {
			t.Helper()
			deferred := both(crowded, func(c *Config) {
				c.LoRA, c.MaxLoRAs = true, 1
				c.Workload.AdapterShare, c.Workload.Adapters = 1, 8
			})
			old, fresh := run(t, v1, "0.19.1", time.Minute, deferred), run(t, v1, "0.20.0", time.Minute, deferred)
			n := fresh.sum("vllm:num_requests_waiting_by_reason", `reason="deferred"`)
			require.Positive(t, n)
			assert.InDelta(t, n+fresh.sum("vllm:num_requests_waiting_by_reason", `reason="capacity"`), fresh.sum(waiting), 0)
			assert.InDelta(t, fresh.sum(waiting), old.sum(waiting), 0)
		},
	},
	{
		"flops-of-quantized-models",
		"`quantized_model` and `estimate_flops`",
		func(t *testing.T) {
			t.Helper()
			old, fresh := run(t, v1, "0.17.0", time.Minute, quantized), run(t, v1, "0.18.0", time.Minute, quantized)
			assert.Less(t, old.sum(flops), 0.1*old.states[0].Flops)
			assert.InEpsilon(t, fresh.states[0].Flops, fresh.sum(flops), 1e-9)
		},
	},
	{
		"bytes-of-quantized-models",
		"`quantized_model` and `estimate_flops`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, quantized)
			assert.Less(t, p.sum(readBytes), 0.6*p.states[0].ReadBytes)
			assert.Greater(t, p.sum(readBytes), 0.4*p.states[0].ReadBytes)
		},
	},
	{
		"bytes-of-mla-models",
		"`latent_attention` and `estimate_flops`",
		func(t *testing.T) {
			t.Helper()
			latent := func(c *Config) { c.Latent, c.FlopsCounters = true, true }
			old, fresh := run(t, v1, "0.23.0", time.Minute, latent), run(t, v1, "0.24.0", time.Minute, latent)
			assert.InEpsilon(t, 57*old.states[0].WrittenBytes, old.sum(writtenBytes), 1e-9)
			assert.InEpsilon(t, fresh.states[0].WrittenBytes, fresh.sum(writtenBytes), 1e-9)
			assert.Greater(t, old.sum(readBytes), old.states[0].ReadBytes)
		},
	},
	{
		"flops-of-hybrid-models",
		"`hybrid_model` and `estimate_flops`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.24.0", time.Minute, func(c *Config) { c.Hybrid, c.FlopsCounters = true, true })
			assert.InEpsilon(t, 0.4*p.states[0].Flops, p.sum(flops), 1e-9)
		},
	},
	{"flops-of-draft-models", "drafting takes a fixed time, and no operations.", nil},
	{
		"usage-per-process",
		"dialect `v1-multiproc`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, multi, "0.10.2", time.Minute, apiServers(4))
			values := p.values(usage)
			assert.Len(t, values, 4)
			current := float64(p.states[0].UsedBlocks) / float64(p.states[0].Blocks)
			near := 0
			for _, v := range values {
				if v-current < 0.01 && current-v < 0.01 {
					near++
				}
			}
			assert.Positive(t, near)
			assert.Less(t, near, 4)
			assert.Len(t, run(t, multi, "0.12.0", time.Minute, apiServers(4)).values(usage), 1)
		},
	},
	{
		"null-block-used",
		"always",
		func(t *testing.T) {
			t.Helper()
			rest := workload(func(w *engine.Workload) { w.Rate = 0.1 })
			quiet := both(rest, func(c *Config) {
				c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamArrivalRate, Value: 0}}
			})
			old, fresh := run(t, v1, "0.10.1", 5*time.Minute, quiet), run(t, v1, "0.10.2", 5*time.Minute, quiet)
			assert.InDelta(t, 1.0/2560, old.sum(usage), 1e-9)
			assert.Zero(t, fresh.sum(usage))
		},
	},
	{
		"scale-up-resets",
		"the change `scale_up`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", 2*time.Minute, both(engines(2), func(c *Config) {
				c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamScaleUp, Value: 1}}
			}))
			finished := p.ended(engine.EndStop, engine.EndLength)
			assert.Len(t, p.values(running), 3)
			assert.Less(t, p.sum(success), 0.7*finished)
			assert.Greater(t, p.sum(success), 0.3*finished)
			assert.InDelta(t, finished, p.sum("http_requests_total"), 0, "HTTP goes on")
			same := run(t, v1, "0.20.0", 2*time.Minute, engines(2))
			assert.Contains(t, p.body, "process_start_time_seconds ")
			assert.Equal(t, line(same.body, "process_start_time_seconds "), line(p.body, "process_start_time_seconds "))
		},
	},
	{"connectors-overwrite", "a simulated server has one connector.", nil},
	{"nixl-per-rank", "of NIXL only failed transfers are simulated, which are counted once.", nil},
	{"requests-on-both-sides", "the other side of a transfer is no server of its own.", nil},
	{
		"adapters-in-flight-only",
		"`lora_slots`",
		func(t *testing.T) {
			t.Helper()
			const info = "vllm:lora_requests_info"
			adapters := func(c *Config) { c.LoRA, c.MaxLoRAs, c.Workload.AdapterShare, c.Workload.Adapters = true, 2, 0.5, 3 }
			quiet := both(adapters, func(c *Config) { c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamArrivalRate, Value: 0}} })
			assert.Greater(t, len(run(t, v1, "0.20.0", 5*time.Minute, quiet).values(info)), 1, "stale ones stay")
			assert.Empty(t, run(t, rust, "0.24.0", 5*time.Minute, quiet).values(info))
		},
	},
	{
		"adapters-listed-twice",
		"`lora_slots`",
		func(t *testing.T) {
			t.Helper()
			lora := func(c *Config) {
				c.LoRA, c.MaxLoRAs, c.Workload.AdapterShare, c.Workload.Adapters = true, 1, 0.9, 3
			}
			differ := func(version string) int {
				n := 0
				for text := range strings.Lines(run(t, v1, version, time.Minute, lora).body) {
					_, lists, there := strings.Cut(text, `running_lora_adapters="`)
					running, lists, _ := strings.Cut(lists, `"`)
					_, lists, _ = strings.Cut(lists, `waiting_lora_adapters="`)
					waiting, _, _ := strings.Cut(lists, `"`)
					if there && running != waiting {
						n++
					}
				}
				return n
			}
			assert.Positive(t, differ("0.11.0"))
			assert.Zero(t, differ("0.11.1"))
		},
	},
	{
		"corrupted-miscounted",
		"clients that leave, with the change `corruption`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Minute, both(set(engine.ParamCorruption, 1), workload(func(w *engine.Workload) { w.LeaveLate = 0.5 }), func(c *Config) { c.NaNCounter = true }))
			corrupted := 0.0
			for _, o := range p.outcomes {
				if o.Corrupted {
					corrupted++
				}
			}
			assert.InDelta(t, corrupted-p.ended(engine.EndLeft), p.sum("vllm:corrupted_requests_total"), 0)
			assert.Positive(t, p.ended(engine.EndLeft))
		},
	},
	{
		"errors-uncounted",
		"`client_errors`, or a chat workload; before 0.13 also `error_rate`",
		func(t *testing.T) {
			t.Helper()
			refused := run(t, v1, "0.20.0", time.Minute, workload(func(w *engine.Workload) { w.Refused = 1 }))
			assert.Zero(t, refused.sum(success))
			assert.Positive(t, refused.sum("http_requests_total", `status="4xx"`))
			failing := set(engine.ParamErrorRate, 0.3)
			old, fresh := run(t, v1, "0.12.0", time.Minute, failing), run(t, v1, "0.13.0", time.Minute, failing)
			require.Positive(t, old.ended(engine.EndError))
			assert.InDelta(t, old.ended(engine.EndStop, engine.EndLength), old.sum("vllm:e2e_request_latency_seconds_count"), 0)
			assert.InDelta(t, fresh.ended(engine.EndError), fresh.sum(success, `finished_reason="error"`), 0)
			assert.Positive(t, old.sum("http_requests_total", `status="5xx"`))
		},
	},
	{
		"rust-served-name",
		"`--served-model-name`, dialect `rust`",
		func(t *testing.T) {
			t.Helper()
			served := func(c *Config) { c.ServedModel = "chat" }
			assert.Empty(t, run(t, rust, "0.23.0", time.Second, served).values(running, `model_name="chat"`))
			assert.Len(t, run(t, rust, "0.24.0", time.Second, served).values(running, `model_name="chat"`), 1)
			assert.Len(t, run(t, v1, "0.20.0", time.Second, served).values(running, `model_name="chat"`), 1)
		},
	},
	{
		"prefill-decode-swapped",
		"dialect `v0`",
		func(t *testing.T) {
			t.Helper()
			const prefill, decode = "vllm:request_prefill_time_seconds_sum", "vllm:request_decode_time_seconds_sum"
			old, fresh := run(t, v0, "0.6.4", time.Minute, nil), run(t, v0, "0.6.5", time.Minute, nil)
			assert.InDelta(t, old.sum(prefill), fresh.sum(decode), 1e-9)
			assert.InDelta(t, old.sum(decode), fresh.sum(prefill), 1e-9)
			assert.Greater(t, old.sum(prefill), old.sum(decode))
		},
	},
	{
		"latencies-near-zero",
		"dialect `v0`",
		func(t *testing.T) {
			t.Helper()
			old, fresh := run(t, v0, "0.5.3", time.Minute, nil), run(t, v0, "0.5.4", time.Minute, nil)
			assert.InDelta(t, fresh.sum(first+"_count"), old.sum(first+"_count"), 0)
			assert.Less(t, old.sum(first+"_sum"), 1e-3)
			assert.Greater(t, fresh.sum(first+"_sum"), 1.0)
			assert.Less(t, old.sum("vllm:time_per_output_token_seconds_sum"), 1.0)
		},
	},
	{"multi-step-miscounts", "the engine plans one step at a time.", nil},
	{"multi-step-gaps", "as the one before.", nil},
}

const (
	flops        = "vllm:estimated_flops_per_gpu_total"
	readBytes    = "vllm:estimated_read_bytes_per_gpu_total"
	writtenBytes = "vllm:estimated_write_bytes_per_gpu_total"
)

func quantized(c *Config) { c.Quantized, c.FlopsCounters = true, true }

func apiServers(n int) func(*Config) { return func(c *Config) { c.APIServers = n } }

func sessions(c *Config) {
	c.Workload.SessionShare, c.Workload.Chunks, c.Workload.ChunkPause = 1, 4, 2
	c.Workload.Prompt, c.Workload.Output = engine.Lengths{Median: 200}, engine.Lengths{Median: 50}
	c.Workload.MaxTokens = nil
}
