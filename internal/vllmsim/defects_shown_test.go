package vllmsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

const (
	v1, multi, ray, rust, v0 = "v1", "v1-multiproc", "ray-new", "rust", "v0"

	success = "vllm:request_success_total"
	first   = "vllm:time_to_first_token_seconds"
	queue   = "vllm:request_queue_time_seconds"
	steps   = "vllm:iteration_tokens_total"
	cache   = "vllm:cache_config_info"
	waiting = "vllm:num_requests_waiting"
	running = "vllm:num_requests_running"
	usage   = "vllm:kv_cache_usage_perc"
	queries = "vllm:prefix_cache_queries_total"
)

// demonstrations have an entry for each defect of the catalogue.
var demonstrations = []demonstration{
	{
		catalog.DefectNegativeDurations,
		"The change `unscheduled_errors` lets requests end with an error before they are scheduled, and `sleep` aborts requests before their first token. Their durations are off by the uptime of the host (`host_uptime`, ten days by default).",
		func(t *testing.T) {
			const day = 86400.0
			unscheduled := both(set(engine.ParamUnscheduled, 0.2), func(c *Config) { c.HostUptime = 24 * time.Hour })
			p := run(t, v1, "0.20.0", time.Minute, unscheduled)
			n := p.ended(engine.EndError)
			require.Greater(t, n, 10.0)
			assert.InDelta(t, n, p.sum(success, `finished_reason="error"`), 0)
			assert.InDelta(t, -n*day, p.sum(queue+"_sum"), n*120)
			assert.InDelta(t, n*day, p.sum("vllm:request_inference_time_seconds_sum"), n*120+5000)
			assert.InDelta(t, n*day, p.sum("vllm:request_prefill_time_seconds_sum"), n*120)
			assert.Less(t, p.sum("vllm:request_decode_time_seconds_sum"), 5000.0)
			assert.Positive(t, run(t, rust, "0.24.0", time.Minute, unscheduled).sum(queue+"_sum"))
			asleep := run(t, v1, "0.20.0", time.Minute, func(c *Config) {
				c.HostUptime = 24 * time.Hour
				c.Changes = []engine.Change{{At: 10, Parameter: engine.ParamClock, Value: 0.01}, {At: 20, Parameter: engine.ParamSleep, Value: 1}}
			})
			assert.InDelta(t, asleep.ended(engine.EndAborted), asleep.sum(success, `finished_reason="abort"`), 0)
			assert.Greater(t, asleep.sum("vllm:request_prefill_time_seconds_sum"), day)
		},
	},
	{
		catalog.DefectClientAbortsUncounted,
		"Always, where clients leave: `timeout`, the change `clients_leave`, and a few of every chat workload.",
		func(t *testing.T) {
			leaving := workload(func(w *engine.Workload) { w.LeaveLate = 0.3 })
			python, rusty := run(t, v1, "0.20.0", time.Minute, leaving), run(t, rust, "0.24.0", time.Minute, leaving)
			require.Greater(t, python.ended(engine.EndLeft), 10.0)
			assert.InDelta(t, python.ended(engine.EndStop, engine.EndLength), python.sum(success), 0)
			assert.InDelta(t, rusty.ended(engine.EndStop, engine.EndLength, engine.EndLeft), rusty.sum(success), 0)
		},
	},
	{
		catalog.DefectGaugesFreezeOnAbort,
		"Always, when the last requests are aborted: `clients_leave: 1`.",
		func(t *testing.T) {
			abort := func(c *Config) {
				c.Changes = []engine.Change{
					{At: 60, Parameter: engine.ParamArrivalRate, Value: 0},
					{At: 60, Parameter: engine.ParamClientsLeave, Value: 1},
				}
			}
			frozen, fresh := run(t, v1, "0.10.1", 70*time.Second, abort), run(t, v1, "0.10.2", 70*time.Second, abort)
			assert.Positive(t, frozen.sum(running))
			assert.Greater(t, frozen.sum(usage), 0.01)
			assert.Zero(t, frozen.states[0].Running)
			assert.Zero(t, frozen.states[0].UsedBlocks)
			assert.Zero(t, fresh.sum(running))
			assert.Zero(t, fresh.sum(usage))
		},
	},
	{
		catalog.DefectGaugesTrailSteps,
		"Always.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", 5*time.Second, both(set(engine.ParamClock, 0.01), workload(func(w *engine.Workload) {
				w.Prompt = engine.Lengths{Median: 4000}
			})))
			assert.Positive(t, p.states[0].Running, "the first step is under way")
			assert.Zero(t, p.sum(running))
			assert.Zero(t, p.sum(usage))
		},
	},
	{
		catalog.DefectArrivalTimeMoved,
		"Always: before 0.17 the time of the front end before the engine has the request is in no latency.",
		func(t *testing.T) {
			slow := both(set(engine.ParamFrontEnd, 100), workload(func(w *engine.Workload) { w.Rate = 1 }))
			before, after := run(t, v1, "0.16.0", time.Minute, slow), run(t, v1, "0.17.0", time.Minute, slow)
			n := before.sum(first + "_count")
			require.InDelta(t, n, after.sum(first+"_count"), 0)
			assert.Greater(t, after.sum(first+"_sum")-before.sum(first+"_sum"), 0.05*n, "0.05 s for a request without its prompt")
			n = before.sum("vllm:e2e_request_latency_seconds_count")
			assert.Greater(t, after.sum("vllm:e2e_request_latency_seconds_sum")-before.sum("vllm:e2e_request_latency_seconds_sum"), 0.05*n)
		},
	},
	{
		catalog.DefectFirstTokenWithoutToken,
		"With the change `unscheduled_errors`, and where `sleep` aborts a request in its prefill.",
		func(t *testing.T) {
			failing := set(engine.ParamUnscheduled, 1)
			p := run(t, v1, "0.20.0", time.Minute, failing)
			assert.InDelta(t, p.ended(engine.EndError), p.sum(first+"_count"), 0)
			assert.Positive(t, p.sum(first+"_count"))
			assert.Zero(t, p.sum("vllm:generation_tokens_total"))
			assert.Zero(t, run(t, rust, "0.24.0", time.Minute, failing).sum(first+"_count"))
		},
	},
	{
		catalog.DefectBlocksSummedOverEngines,
		"Always, with several `engines`.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", time.Second, engines(3))
			assert.Len(t, p.values(cache, `num_gpu_blocks="7680"`), 3)
			assert.Equal(t, 2559, p.states[0].Blocks, "without the null block")
		},
	},
	{
		catalog.DefectBlockSizeOfHybridModels,
		"With `hybrid_model`, whose blocks are of 512 tokens.",
		func(t *testing.T) {
			hybrid := func(c *Config) { c.Hybrid = true }
			old, fresh := run(t, v1, "0.20.0", time.Second, hybrid), run(t, v1, "0.24.0", time.Second, hybrid)
			assert.Equal(t, 512, old.states[0].BlockSize)
			assert.Len(t, old.values(cache, `block_size="16"`, `num_gpu_blocks="80"`), 1)
			assert.Len(t, fresh.values(cache, `block_size="4"`, `kv_cache_size_tokens="40960"`), 1)
		},
	},
	{
		catalog.DefectBlocksNotANumber,
		"Always.",
		func(t *testing.T) {
			assert.Len(t, run(t, v1, "0.8.5", time.Second, nil).values(cache, `num_gpu_blocks="None"`), 1)
			assert.Len(t, run(t, v1, "0.9.0", time.Second, nil).values(cache, `num_gpu_blocks="2560"`), 1)
		},
	},
	{
		catalog.DefectBlocksUnknownToApiServers,
		"Always, in the dialect `v1-multiproc` with several API servers.",
		func(t *testing.T) {
			assert.Len(t, run(t, multi, "0.19.1", time.Second, both(engines(2), apiServers(2))).values(cache, `num_gpu_blocks="None"`), 2)
			assert.Len(t, run(t, multi, "0.20.0", time.Second, both(engines(2), apiServers(2))).values(cache, `num_gpu_blocks="5120"`), 2)
			assert.Len(t, run(t, multi, "0.19.1", time.Second, nil).values(cache, `num_gpu_blocks="2560"`), 1)
		},
	},
	{
		catalog.DefectRayLastLabel,
		"Always, in the dialect `ray-new`.",
		func(t *testing.T) {
			broken, fixed := run(t, ray, "0.20.0", time.Minute, nil), run(t, ray, "0.21.0", time.Minute, nil)
			assert.Len(t, broken.values("ray_vllm_request_success_total"), 1)
			assert.InDelta(t, broken.ended(engine.EndStop, engine.EndLength), broken.sum("ray_vllm_request_success_total", `finished_reason="repetition"`), 0)
			assert.InDelta(t, fixed.ended(engine.EndStop), fixed.sum("ray_vllm_request_success_total", `finished_reason="stop"`), 0)
			assert.InDelta(t, broken.sum("ray_vllm_prompt_tokens_total"), broken.sum("ray_vllm_prompt_tokens_by_source_total", `source="external_kv_transfer"`), 0)
		},
	},
	{
		catalog.DefectRayLastEngine,
		"Always, in the dialect `ray-new` with several `engines`.",
		func(t *testing.T) {
			broken, fixed := run(t, ray, "0.20.0", time.Minute, engines(2)), run(t, ray, "0.21.0", time.Minute, engines(2))
			assert.Len(t, fixed.values("ray_vllm_generation_tokens_total"), 2)
			assert.Len(t, broken.values("ray_vllm_generation_tokens_total"), 1)
			assert.InDelta(t, fixed.sum("ray_vllm_generation_tokens_total"), broken.sum("ray_vllm_generation_tokens_total", `engine="1"`), 0)
			assert.InDelta(t, fixed.sum("ray_vllm_time_to_first_token_seconds_count"), broken.sum("ray_vllm_time_to_first_token_seconds_count"), 0)
			assert.Len(t, broken.values("ray_vllm_num_requests_running"), 1)
		},
	},
	{
		catalog.DefectOnlyLastEngine,
		"Always, with several `engines`.",
		func(t *testing.T) {
			p := run(t, v1, "0.9.2", time.Minute, engines(3))
			assert.Len(t, p.values(running), 1)
			assert.Len(t, p.values(running, `engine="2"`), 1)
			assert.Len(t, run(t, v1, "0.10.0", time.Minute, engines(3)).values(running), 3)
		},
	},
	{
		catalog.DefectMmCacheUnderAnyEngine,
		"With images (`image_share`, `images`) and several `engines`.",
		func(t *testing.T) {
			images := map[int]float64{}
			p := run(t, v1, "0.20.0", time.Minute, both(engines(2), workload(func(w *engine.Workload) { w.MediaShare, w.Media = 1, 5 }), func(c *Config) {
				c.Weights = []float64{0.9, 0.1}
				c.Journal = func(_ int, e engine.Event) {
					if e.Kind == engine.EventSent {
						images[e.Engine] += float64(e.Media)
					}
				}
			}))
			assert.InDelta(t, images[0]+images[1], p.sum("vllm:mm_cache_queries_total"), 2, "those without a report yet are missing")
			assert.Greater(t, p.sum("vllm:mm_cache_queries_total", `engine="1"`), 2*images[1])
			assert.InDelta(t, p.sum("vllm:mm_cache_queries_total")-5, p.sum("vllm:mm_cache_hits_total"), 0)
		},
	},
	{
		catalog.DefectStepsSplitOverApiServers,
		"Always, in the dialect `v1-multiproc` with several API servers.",
		func(t *testing.T) {
			one, four := run(t, multi, "0.10.2", time.Minute, nil), run(t, multi, "0.10.2", time.Minute, apiServers(4))
			assert.LessOrEqual(t, one.sum(steps+"_count"), float64(one.states[0].Steps))
			assert.Greater(t, four.sum(steps+"_count"), 1.5*float64(four.states[0].Steps))
			assert.InEpsilon(t, one.sum(steps+"_sum"), four.sum(steps+"_sum"), 0.02)
		},
	},
	{
		catalog.DefectStepsWithoutOutputs,
		"Always, with prompts that are computed in several chunks.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", time.Minute, func(c *Config) {
				c.MaxModelLen, c.KVCacheTokens = 30000, 1<<17
				c.Workload.Rate, c.Workload.Prompt, c.Workload.Output = 0.2, engine.Lengths{Median: 20000}, engine.Lengths{Median: 1}
				c.Workload.MaxTokens, c.Workload.PrefixShare = nil, 0
			})
			n := p.sum(steps + "_count")
			require.Positive(t, n)
			assert.GreaterOrEqual(t, p.states[0].Steps, 3*int(n), "8192 tokens each")
			assert.InDelta(t, 20001*n, p.sum(steps+"_sum"), 0)
		},
	},
	{
		catalog.DefectStepTokensWithCached,
		"Always.",
		func(t *testing.T) {
			old, fresh := run(t, v1, "0.22.0", time.Minute, nil), run(t, v1, "0.23.0", time.Minute, nil)
			require.Positive(t, old.sum("vllm:prompt_tokens_cached_total"))
			all := old.sum("vllm:prompt_tokens_total") + old.sum("vllm:generation_tokens_total")
			assert.InDelta(t, all, old.sum(steps+"_sum"), 0)
			assert.InDelta(t, all-old.sum("vllm:prompt_tokens_cached_total"), fresh.sum(steps+"_sum"), 0)
		},
	},
	{
		catalog.DefectCacheQueriesRecounted,
		"Always, where requests wait for room: a small `kv_cache_tokens`.",
		func(t *testing.T) {
			old, fresh := run(t, v1, "0.20.0", time.Minute, crowded), run(t, v1, "0.27.0", time.Minute, crowded)
			assert.Greater(t, old.sum(queries), 3*float64(old.states[0].LookedUp))
			assert.LessOrEqual(t, fresh.sum(queries), float64(fresh.states[0].LookedUp))
			assert.Greater(t, run(t, rust, "0.24.0", time.Minute, crowded).sum(queries), 3*float64(old.states[0].LookedUp))
		},
	},
	{
		catalog.DefectOwnBlocksFound,
		"Always, where requests are preempted.",
		func(t *testing.T) {
			old, fresh := run(t, v1, "0.11.0", time.Minute, crowded), run(t, v1, "0.11.1", time.Minute, crowded)
			require.Positive(t, fresh.states[0].Preemptions)
			assert.Greater(t, old.sum("vllm:prefix_cache_hits_total"), fresh.sum("vllm:prefix_cache_hits_total"))
			assert.Greater(t, old.sum(queries), fresh.sum(queries))
		},
	},
	{catalog.DefectDecodeSideFindsNothing, "the counter is right there, and the simulated cache has no layers with a state.", nil},
	{
		catalog.DefectExternalHitsWrong,
		"Always, with `transfer`. Its transfers are asynchronous.",
		func(t *testing.T) {
			remote := func(c *Config) { c.Transfer = engine.Transfer{Share: 1, Latency: 0.01, BytesPerSecond: 1e10} }
			const asked, found = "vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total"
			old, fresh := run(t, v1, "0.15.0", time.Minute, remote), run(t, v1, "0.16.0", time.Minute, remote)
			assert.InDelta(t, old.sum(found), fresh.sum(found), 0)
			assert.Greater(t, old.sum(asked), fresh.sum(asked)*1.01)
			assert.Positive(t, fresh.sum(found))
			assert.Zero(t, run(t, v1, "0.11.1", time.Minute, remote).sum(found))
		},
	},
	{catalog.DefectNegativeTokenCounts, "it ends the server. The fault `unreachable` looks the same from outside.", nil},
	{catalog.DefectNegativeAcceptedTokens, "as the one before.", nil},
	{
		catalog.DefectChoicesCountedSingly,
		"With `choices_share` and `choices` of a workload.",
		func(t *testing.T) {
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
		catalog.DefectBeamStepsCounted,
		"With `beam_share` and `beams` of a workload.",
		func(t *testing.T) {
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
		catalog.DefectGapPerOutput,
		"Always, with `speculation`.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", time.Minute, func(c *Config) { c.SpecDecode = true })
			gaps, tokens := p.sum("vllm:inter_token_latency_seconds_count"), p.sum("vllm:generation_tokens_total")
			assert.Less(t, gaps, 0.8*(tokens-p.sum(first+"_count")))
		},
	},
	{
		catalog.DefectRequeuedSessions,
		"With `session_share`, `session_chunks` and `session_pause` of a workload.",
		func(t *testing.T) {
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
		catalog.DefectSessionsPerChunk,
		"As the one before.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", 2*time.Minute, sessions)
			n := p.ended(engine.EndStop, engine.EndLength)
			assert.Greater(t, p.sum(first+"_count"), 3*n)
			whole := 0.0
			for _, o := range p.outcomes {
				whole += o.Ended - o.Arrived
			}
			assert.Less(t, p.sum("vllm:e2e_request_latency_seconds_sum"), whole-4*n)
		},
	},
	{
		catalog.DefectPreemptionsCountedLate,
		"Always, where requests are preempted.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", time.Minute, both(crowded, func(c *Config) {
				c.Changes = []engine.Change{{At: 50, Parameter: engine.ParamClientsLeave, Value: 1}}
			}))
			assert.Positive(t, p.sum("vllm:num_preemptions_total"))
			assert.Less(t, p.sum("vllm:num_preemptions_total"), float64(p.states[0].Preemptions))
		},
	},
	{
		catalog.DefectFirstWaitOnly,
		"Always, where requests are preempted.",
		func(t *testing.T) {
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
		catalog.DefectClientErrorsAsServerErrors,
		"With the change `client_errors`, a share of requests that clients get 400 for.",
		func(t *testing.T) {
			wrong := set(engine.ParamClientErrors, 0.3)
			old, fresh := run(t, v1, "0.24.0", time.Minute, wrong), run(t, v1, "0.25.0", time.Minute, wrong)
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
		catalog.DefectHandlerLost,
		"With `lost_handlers`.",
		func(t *testing.T) {
			lost := func(c *Config) { c.LostHandlers = true }
			p := run(t, v1, "0.24.0", time.Minute, lost)
			assert.InDelta(t, p.sum("http_requests_total"), p.sum("http_requests_total", `handler="none"`), 0)
			assert.Empty(t, run(t, v1, "0.23.0", time.Minute, lost).values("http_requests_total", `handler="none"`))
		},
	},
	{
		catalog.DefectDeferredInWaiting,
		"Always, where requests wait for an adapter (`lora_slots`) or for a `transfer`.",
		func(t *testing.T) {
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
		catalog.DefectFlopsOfQuantizedModels,
		"With `quantized_model` and `estimate_flops`: a twentieth is counted, which is a guess.",
		func(t *testing.T) {
			old, fresh := run(t, v1, "0.17.0", time.Minute, quantized), run(t, v1, "0.18.0", time.Minute, quantized)
			assert.Less(t, old.sum(flops), 0.1*old.states[0].Flops)
			assert.InEpsilon(t, fresh.states[0].Flops, fresh.sum(flops), 1e-9)
		},
	},
	{
		catalog.DefectBytesOfQuantizedModels,
		"With `quantized_model` and `estimate_flops`: half of the bytes of the weights are counted.",
		func(t *testing.T) {
			p := run(t, v1, "0.20.0", time.Minute, quantized)
			assert.Less(t, p.sum(readBytes), 0.6*p.states[0].ReadBytes)
			assert.Greater(t, p.sum(readBytes), 0.4*p.states[0].ReadBytes)
		},
	},
	{
		catalog.DefectBytesOfMlaModels,
		"With `latent_attention` and `estimate_flops`: 57 times the bytes of the KV cache are counted, the most that was reported.",
		func(t *testing.T) {
			latent := func(c *Config) { c.Latent, c.FlopsCounters = true, true }
			old, fresh := run(t, v1, "0.23.0", time.Minute, latent), run(t, v1, "0.24.0", time.Minute, latent)
			assert.InEpsilon(t, 57*old.states[0].WrittenBytes, old.sum(writtenBytes), 1e-9)
			assert.InEpsilon(t, fresh.states[0].WrittenBytes, fresh.sum(writtenBytes), 1e-9)
			assert.Greater(t, old.sum(readBytes), old.states[0].ReadBytes)
		},
	},
	{
		catalog.DefectFlopsOfHybridModels,
		"With `hybrid_model` and `estimate_flops`: two fifths of the work are counted, which is a guess.",
		func(t *testing.T) {
			p := run(t, v1, "0.24.0", time.Minute, func(c *Config) { c.Hybrid, c.FlopsCounters = true, true })
			assert.InEpsilon(t, 0.4*p.states[0].Flops, p.sum(flops), 1e-9)
		},
	},
	{
		catalog.DefectUsagePerProcess,
		"Always, in the dialect `v1-multiproc`: each process shows what it was told last, and each step tells the process of its first request.",
		func(t *testing.T) {
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
		catalog.DefectNullBlockUsed,
		"Always.",
		func(t *testing.T) {
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
		catalog.DefectScaleUpResets,
		"With the change `scale_up`, the number of engines that are added.",
		func(t *testing.T) {
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
	{catalog.DefectConnectorsOverwrite, "a simulated server has one connector.", nil},
	{catalog.DefectNixlPerRank, "of NIXL only failed transfers are simulated, which are counted once.", nil},
	{catalog.DefectRequestsOnBothSides, "the other side of a transfer is no server of its own.", nil},
	{
		catalog.DefectAdaptersInFlightOnly,
		"Always, with `lora_slots`.",
		func(t *testing.T) {
			const info = "vllm:lora_requests_info"
			adapters := func(c *Config) { c.LoRA, c.MaxLoRAs, c.Workload.AdapterShare, c.Workload.Adapters = true, 2, 0.5, 3 }
			quiet := both(adapters, func(c *Config) { c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamArrivalRate, Value: 0}} })
			assert.Greater(t, len(run(t, v1, "0.20.0", 5*time.Minute, quiet).values(info)), 1, "stale ones stay")
			assert.Empty(t, run(t, rust, "0.24.0", 5*time.Minute, quiet).values(info))
		},
	},
	{
		catalog.DefectCorruptedMiscounted,
		"Always, where clients leave with the change `corruption`. Speculation is counted correctly.",
		func(t *testing.T) {
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
		catalog.DefectErrorsUncounted,
		"Always, where the front end refuses requests (a few of every chat workload, and `client_errors`); before 0.13 also with `error_rate`. An engine that dies is not simulated.",
		func(t *testing.T) {
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
		catalog.DefectRustServedName,
		"With the flag `--served-model-name`, in the dialect `rust`.",
		func(t *testing.T) {
			served := func(c *Config) { c.ServedModel = "chat" }
			assert.Empty(t, run(t, rust, "0.23.0", time.Second, served).values(running, `model_name="chat"`))
			assert.Len(t, run(t, rust, "0.24.0", time.Second, served).values(running, `model_name="chat"`), 1)
			assert.Len(t, run(t, v1, "0.20.0", time.Second, served).values(running, `model_name="chat"`), 1)
		},
	},
	{
		catalog.DefectPrefillDecodeSwapped,
		"Always, in the dialect `v0`.",
		func(t *testing.T) {
			const prefill, decode = "vllm:request_prefill_time_seconds_sum", "vllm:request_decode_time_seconds_sum"
			old, fresh := run(t, v0, "0.6.4", time.Minute, nil), run(t, v0, "0.6.5", time.Minute, nil)
			assert.InDelta(t, old.sum(prefill), fresh.sum(decode), 1e-9)
			assert.InDelta(t, old.sum(decode), fresh.sum(prefill), 1e-9)
			assert.Greater(t, old.sum(prefill), old.sum(decode))
		},
	},
	{
		catalog.DefectLatenciesNearZero,
		"Always, in the dialect `v0`.",
		func(t *testing.T) {
			old, fresh := run(t, v0, "0.5.3", time.Minute, nil), run(t, v0, "0.5.4", time.Minute, nil)
			assert.InDelta(t, fresh.sum(first+"_count"), old.sum(first+"_count"), 0)
			assert.Less(t, old.sum(first+"_sum"), 1e-3)
			assert.Greater(t, fresh.sum(first+"_sum"), 1.0)
			assert.Less(t, old.sum("vllm:time_per_output_token_seconds_sum"), 1.0)
		},
	},
	{catalog.DefectMultiStepMiscounts, "the engine plans one step at a time.", nil},
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
