package vllmsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
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

// shownByServers are the defects of gauges, labels, settings and caches.
var shownByServers = []demonstration{
	{
		"negative-durations",
		"the change `unscheduled_errors`, or `sleep`; off by `host_uptime`",
		func(t *testing.T) {
			t.Helper()
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
		"client-aborts-uncounted",
		"clients that leave: `timeout`, `clients_leave`, and a few of every chat workload",
		func(t *testing.T) {
			t.Helper()
			leaving := workload(func(w *engine.Workload) { w.LeaveLate = 0.3 })
			python, rusty := run(t, v1, "0.20.0", time.Minute, leaving), run(t, rust, "0.24.0", time.Minute, leaving)
			require.Greater(t, python.ended(engine.EndLeft), 10.0)
			assert.InDelta(t, python.ended(engine.EndStop, engine.EndLength), python.sum(success), 0)
			assert.InDelta(t, rusty.ended(engine.EndStop, engine.EndLength, engine.EndLeft), rusty.sum(success), 0)
		},
	},
	{
		"gauges-freeze-on-abort",
		"`clients_leave: 1`",
		func(t *testing.T) {
			t.Helper()
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
		"gauges-trail-steps",
		"always",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", 5*time.Second, both(set(engine.ParamClock, 0.01), workload(func(w *engine.Workload) {
				w.Prompt = engine.Lengths{Median: 4000}
			})))
			assert.Positive(t, p.states[0].Running, "the first step is under way")
			assert.Zero(t, p.sum(running))
			assert.Zero(t, p.sum(usage))
		},
	},
	{
		"arrival-time-moved",
		"always",
		func(t *testing.T) {
			t.Helper()
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
		"first-token-without-token",
		"the change `unscheduled_errors`, or `sleep` in a prefill",
		func(t *testing.T) {
			t.Helper()
			failing := set(engine.ParamUnscheduled, 1)
			p := run(t, v1, "0.20.0", time.Minute, failing)
			assert.InDelta(t, p.ended(engine.EndError), p.sum(first+"_count"), 0)
			assert.Positive(t, p.sum(first+"_count"))
			assert.Zero(t, p.sum("vllm:generation_tokens_total"))
			assert.Zero(t, run(t, rust, "0.24.0", time.Minute, failing).sum(first+"_count"))
		},
	},
	{
		"blocks-summed-over-engines",
		"several `engines`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.20.0", time.Second, engines(3))
			assert.Len(t, p.values(cache, `num_gpu_blocks="7680"`), 3)
			assert.Equal(t, 2559, p.states[0].Blocks, "without the null block")
		},
	},
	{
		"block-size-of-hybrid-models",
		"`hybrid_model`",
		func(t *testing.T) {
			t.Helper()
			hybrid := func(c *Config) { c.Hybrid = true }
			old, fresh := run(t, v1, "0.20.0", time.Second, hybrid), run(t, v1, "0.24.0", time.Second, hybrid)
			assert.Equal(t, 512, old.states[0].BlockSize)
			assert.Len(t, old.values(cache, `block_size="16"`, `num_gpu_blocks="80"`), 1)
			assert.Len(t, fresh.values(cache, `block_size="4"`, `kv_cache_size_tokens="40960"`), 1)
		},
	},
	{
		"blocks-not-a-number",
		"always",
		func(t *testing.T) {
			t.Helper()
			assert.Len(t, run(t, v1, "0.8.5", time.Second, nil).values(cache, `num_gpu_blocks="None"`), 1)
			assert.Len(t, run(t, v1, "0.9.0", time.Second, nil).values(cache, `num_gpu_blocks="2560"`), 1)
		},
	},
	{
		"blocks-unknown-to-api-servers",
		"dialect `v1-multiproc` with several API servers",
		func(t *testing.T) {
			t.Helper()
			assert.Len(t, run(t, multi, "0.19.1", time.Second, both(engines(2), apiServers(2))).values(cache, `num_gpu_blocks="None"`), 2)
			assert.Len(t, run(t, multi, "0.20.0", time.Second, both(engines(2), apiServers(2))).values(cache, `num_gpu_blocks="5120"`), 2)
			assert.Len(t, run(t, multi, "0.19.1", time.Second, nil).values(cache, `num_gpu_blocks="2560"`), 1)
		},
	},
	{
		"ray-last-label",
		"dialect `ray-new`",
		func(t *testing.T) {
			t.Helper()
			broken, fixed := run(t, ray, "0.20.0", time.Minute, nil), run(t, ray, "0.21.0", time.Minute, nil)
			assert.Len(t, broken.values("ray_vllm_request_success_total"), 1)
			assert.InDelta(t, broken.ended(engine.EndStop, engine.EndLength), broken.sum("ray_vllm_request_success_total", `finished_reason="repetition"`), 0)
			assert.InDelta(t, fixed.ended(engine.EndStop), fixed.sum("ray_vllm_request_success_total", `finished_reason="stop"`), 0)
			assert.InDelta(t, broken.sum("ray_vllm_prompt_tokens_total"), broken.sum("ray_vllm_prompt_tokens_by_source_total", `source="external_kv_transfer"`), 0)
		},
	},
	{
		"ray-last-engine",
		"dialect `ray-new` with several `engines`",
		func(t *testing.T) {
			t.Helper()
			broken, fixed := run(t, ray, "0.20.0", time.Minute, engines(2)), run(t, ray, "0.21.0", time.Minute, engines(2))
			assert.Len(t, fixed.values("ray_vllm_generation_tokens_total"), 2)
			assert.Len(t, broken.values("ray_vllm_generation_tokens_total"), 1)
			assert.InDelta(t, fixed.sum("ray_vllm_generation_tokens_total"), broken.sum("ray_vllm_generation_tokens_total", `engine="1"`), 0)
			assert.InDelta(t, fixed.sum("ray_vllm_time_to_first_token_seconds_count"), broken.sum("ray_vllm_time_to_first_token_seconds_count"), 0)
			assert.Len(t, broken.values("ray_vllm_num_requests_running"), 1)
		},
	},
	{
		"only-last-engine",
		"several `engines`",
		func(t *testing.T) {
			t.Helper()
			p := run(t, v1, "0.9.2", time.Minute, engines(3))
			assert.Len(t, p.values(running), 1)
			assert.Len(t, p.values(running, `engine="2"`), 1)
			assert.Len(t, run(t, v1, "0.10.0", time.Minute, engines(3)).values(running), 3)
		},
	},
	{
		"mm-cache-under-any-engine",
		"`image_share`, `images` and several `engines`",
		func(t *testing.T) {
			t.Helper()
			images := map[int]float64{}
			p := run(t, v1, "0.20.0", 5*time.Minute, both(engines(2), workload(func(w *engine.Workload) { w.MediaShare, w.Media = 1, 5 }), func(c *Config) {
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
		"steps-split-over-api-servers",
		"dialect `v1-multiproc` with several API servers",
		func(t *testing.T) {
			t.Helper()
			one, four := run(t, multi, "0.10.2", time.Minute, nil), run(t, multi, "0.10.2", time.Minute, apiServers(4))
			assert.LessOrEqual(t, one.sum(steps+"_count"), float64(one.states[0].Steps))
			assert.Greater(t, four.sum(steps+"_count"), 1.5*float64(four.states[0].Steps))
			assert.InEpsilon(t, one.sum(steps+"_sum"), four.sum(steps+"_sum"), 0.02)
		},
	},
	{
		"steps-without-outputs",
		"prompts in several chunks",
		func(t *testing.T) {
			t.Helper()
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
		"step-tokens-with-cached",
		"always",
		func(t *testing.T) {
			t.Helper()
			old, fresh := run(t, v1, "0.22.0", time.Minute, nil), run(t, v1, "0.23.0", time.Minute, nil)
			require.Positive(t, old.sum("vllm:prompt_tokens_cached_total"))
			all := old.sum("vllm:prompt_tokens_total") + old.sum("vllm:generation_tokens_total")
			assert.InDelta(t, all, old.sum(steps+"_sum"), 0)
			assert.InDelta(t, all-old.sum("vllm:prompt_tokens_cached_total"), fresh.sum(steps+"_sum"), 0)
		},
	},
	{
		"cache-queries-recounted",
		"requests that wait for room: a small `kv_cache_tokens`",
		func(t *testing.T) {
			t.Helper()
			old, fresh := run(t, v1, "0.20.0", time.Minute, crowded), run(t, v1, "0.27.0", time.Minute, crowded)
			assert.Greater(t, old.sum(queries), 3*float64(old.states[0].LookedUp))
			assert.LessOrEqual(t, fresh.sum(queries), float64(fresh.states[0].LookedUp))
			assert.Greater(t, run(t, rust, "0.24.0", time.Minute, crowded).sum(queries), 3*float64(old.states[0].LookedUp))
		},
	},
	{
		"own-blocks-found",
		"preemptions",
		func(t *testing.T) {
			t.Helper()
			old, fresh := run(t, v1, "0.11.0", time.Minute, crowded), run(t, v1, "0.11.1", time.Minute, crowded)
			require.Positive(t, fresh.states[0].Preemptions)
			assert.Greater(t, old.sum("vllm:prefix_cache_hits_total"), fresh.sum("vllm:prefix_cache_hits_total"))
			assert.Greater(t, old.sum(queries), fresh.sum(queries))
		},
	},
	{"decode-side-finds-nothing", "the counter is right there, and the simulated cache has no layers with a state.", nil},
	{
		"external-hits-wrong",
		"`transfer`",
		func(t *testing.T) {
			t.Helper()
			remote := func(c *Config) { c.Transfer = engine.Transfer{Share: 1, Latency: 0.01, BytesPerSecond: 1e10} }
			const asked, found = "vllm:external_prefix_cache_queries_total", "vllm:external_prefix_cache_hits_total"
			old, fresh := run(t, v1, "0.15.0", time.Minute, remote), run(t, v1, "0.16.0", time.Minute, remote)
			assert.InDelta(t, old.sum(found), fresh.sum(found), 0)
			assert.Greater(t, old.sum(asked), fresh.sum(asked)*1.01)
			assert.Positive(t, fresh.sum(found))
			assert.Zero(t, run(t, v1, "0.11.1", time.Minute, remote).sum(found))
		},
	},
	{"hits-uncounted", "a simulated cache has no layers with a state.", nil},
	{"connector-unregistered", "a simulated server has one connector.", nil},
	{"refused-after-rendering", "no simulated server refuses requests.", nil},
	{"negative-token-counts", "it ends the server. The fault `unreachable` looks the same from outside.", nil},
	{"negative-connector-tokens", "as the one before.", nil},
	{"negative-accepted-tokens", "as the one before.", nil},
}
