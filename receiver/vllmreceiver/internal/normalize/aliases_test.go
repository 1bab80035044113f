package normalize

import "testing"

// Families that vLLM renamed, by vllm-metrics: deprecated names that newer
// versions still show when asked to.
var renamed = []struct {
	old, latest string
	family      func(name string, count int) string
	want        string
}{
	{"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", plainGauge, "vllm.kv_cache.utilization gauge 1 {}"},
	{"vllm:time_per_output_token_seconds", "vllm:inter_token_latency_seconds", plainHistogram, "vllm.inter_token_latency histogram s {}"},
	{"vllm:time_in_queue_requests", "vllm:request_queue_time_seconds", plainHistogram, "vllm.request.queue_time histogram s {}"},
	{"vllm:max_num_generation_tokens", "vllm:request_max_num_generation_tokens", plainHistogram, "vllm.request.max_num_generation_tokens histogram {token} {}"},
	{"vllm:kv_offload_tiering_block_hits_total", "vllm:kv_offload_tiering_chunk_hits_total", plainCounter, "vllm.kv_offload.tiering_chunk_hits sum {chunk} {}"},
	{"vllm:kv_offload_tiering_block_queries_total", "vllm:kv_offload_tiering_chunk_queries_total", plainCounter, "vllm.kv_offload.tiering_chunk_queries sum {chunk} {}"},
}

func plainGauge(name string, value int) string     { return gauge(name, "", value) }
func plainCounter(name string, value int) string   { return counter(name, "", value) }
func plainHistogram(name string, count int) string { return histogram(name, "", count, "1") }

func TestOfAnOldAndANewFamilyTheNewOneWins(t *testing.T) {
	for _, r := range renamed {
		t.Run(r.latest, func(t *testing.T) {
			alone, both := []string{r.want + " = 1"}, []string{r.want + " = 2", "dropped alias 1"}
			if r.old == "vllm:max_num_generation_tokens" {
				// Only the simulator has it.
				alone, both = append(alone, "resource vllm.server.kind=simulator"), append(both, "resource vllm.server.kind=simulator")
			}
			options := Options{Enabled: map[string]bool{"vllm.request.max_num_generation_tokens": true}} // off by default
			runPlanCases(t, []planCase{
				{name: "old alone", options: options, body: r.family(r.old, 1), want: alone},
				{name: "new alone", options: options, body: r.family(r.latest, 2), want: []string{r.want + " = 2"}},
				{name: "old first", options: options, body: r.family(r.old, 1) + r.family(r.latest, 2), want: both},
				{name: "new first", options: options, body: r.family(r.latest, 2) + r.family(r.old, 1), want: both},
			})
		})
	}
}

func TestTheNewFamilyWinsAsAWhole(t *testing.T) {
	const bare = "# HELP vllm:kv_cache_usage_perc Share in use.\n# TYPE vllm:kv_cache_usage_perc gauge\n"
	old := "# TYPE vllm:gpu_cache_usage_perc gauge\nvllm:gpu_cache_usage_perc{engine=\"0\"} 1\nvllm:gpu_cache_usage_perc{engine=\"1\"} 2\n"
	runPlanCases(t, []planCase{
		{
			name: "series that only the old family has are not mixed in",
			body: old + gauge("vllm:kv_cache_usage_perc", `engine="0"`, 3),
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 3", "dropped alias 2"},
		},
		{
			name: "a new family without samples does not hide the old one",
			body: bare + old,
			want: []string{"vllm.kv_cache.utilization gauge 1 {engine=0} = 1", "vllm.kv_cache.utilization gauge 1 {engine=1} = 2"},
		},
		{
			name: "a bare family alone is nothing",
			body: bare,
		},
		{
			name: "the two may have different prefixes",
			body: gauge("ray_vllm:gpu_cache_usage_perc", "", 1) + gauge("ray_vllm_kv_cache_usage_perc", "", 2),
			want: []string{"vllm.kv_cache.utilization gauge 1 {} = 2", "dropped alias 1"},
		},
		{
			name: "a new family of another type hides nothing",
			body: gauge("vllm:gpu_cache_usage_perc", "", 1) + counter("vllm:kv_cache_usage_perc", "", 2),
			want: []string{
				"vllm.kv_cache.utilization gauge 1 {} = 1", "vllm.kv_cache.utilization_counter sum no-unit {} = 2",
				"conflict vllm:kv_cache_usage_perc",
			},
		},
		{
			name:    "a new metric that is switched off does not bring the old family back",
			body:    gauge("vllm:gpu_cache_usage_perc", "", 1) + gauge("vllm:kv_cache_usage_perc", "", 2),
			options: Options{Enabled: map[string]bool{"vllm.kv_cache.utilization": false}},
			want:    []string{"dropped alias 1", "dropped disabled 1"},
		},
		{
			name: "the mean per request is another thing than the gap between tokens",
			body: histogram("vllm:time_per_output_token_seconds", "", 1, "1") + histogram("vllm:request_time_per_output_token_seconds", "", 2, "1"),
			want: []string{"vllm.inter_token_latency histogram s {} = 1", "vllm.request.time_per_output_token histogram s {} = 2"},
		},
	})
}

// The prefix cache counted blocks before v0.9.0 and counts tokens since, under
// the same wire name until v0.9.2 renamed it.
func TestPrefixCacheCountersBelongToTheVersion(t *testing.T) {
	old := counter("vllm:gpu_prefix_cache_hits_total", "", 1) + counter("vllm:gpu_prefix_cache_queries_total", "", 2)
	latest := counter("vllm:prefix_cache_hits_total", "", 3) + counter("vllm:prefix_cache_queries_total", "", 4)
	blocks := []string{"vllm.gpu_prefix_cache.hits sum {block} {} = 1", "vllm.gpu_prefix_cache.queries sum {block} {} = 2"}
	tokens := []string{"vllm.prefix_cache.hits sum {token} {} = 1", "vllm.prefix_cache.queries sum {token} {} = 2"}
	twins := []string{"vllm.prefix_cache.hits sum {token} {} = 3", "vllm.prefix_cache.queries sum {token} {} = 4", "dropped alias 2"}
	const bare = "# TYPE vllm:prefix_cache_hits_total counter\n# TYPE vllm:prefix_cache_queries_total counter\n"
	runPlanCases(t, []planCase{
		{name: "0.8.5 counts blocks", options: Options{Version: "0.8.5"}, body: old, want: blocks},
		{name: "0.8.5.post1 counts blocks", options: Options{Version: "0.8.5.post1"}, body: old, want: blocks},
		{name: "0.9.0 counts tokens", options: Options{Version: "0.9.0"}, body: old, want: tokens},
		{name: "0.9.1 counts tokens", options: Options{Version: "0.9.1"}, body: old, want: tokens},
		{name: "a version with a v counts the same", options: Options{Version: "v0.9.1"}, body: old, want: tokens},
		{name: "0.10.2 has both, the new ones win", options: Options{Version: "0.10.2"}, body: old + latest, want: twins},
		{name: "0.10.2 with the old ones alone", options: Options{Version: "0.10.2"}, body: old, want: tokens},
		{name: "0.12.0 shows the old ones next to the new ones", options: Options{Version: "0.12.0"}, body: old + latest, want: twins},
		{name: "of an unknown version, blocks are assumed", body: old, want: blocks},
		{name: "a version without a number is unknown", options: Options{Version: "dev"}, body: old, want: blocks},
		{name: "of an unknown version, the twin proves tokens", body: latest + old, want: twins},
		{name: "the twin may be later in the body", body: old + latest, want: twins},
		{name: "a twin without samples proves nothing", body: bare + old, want: blocks},
		{
			name: "a twin under Ray's prefix proves it, too",
			body: counter("ray_vllm_gpu_prefix_cache_hits_total", "", 1) + counter("ray_vllm_prefix_cache_hits_total", "", 3),
			want: []string{"vllm.prefix_cache.hits sum {token} {} = 3", "dropped alias 1"},
		},
		{
			name: "a twin under a user's prefix proves it, too", options: Options{Prefixes: []string{"acme_"}},
			body: counter("acme_vllm_gpu_prefix_cache_hits_total", "", 1) + counter("acme_vllm_prefix_cache_hits_total", "", 3),
			want: []string{"vllm.prefix_cache.hits sum {token} {} = 3", "dropped alias 1"},
		},
		{
			name: "the V0 hit rate is a metric of its own",
			body: gauge("vllm:gpu_prefix_cache_hit_rate", "", -1),
			want: []string{"vllm.gpu_prefix_cache.hit_rate gauge 1 {} = -1"},
		},
	})
}

func TestTheV0HitRatesHaveASentinel(t *testing.T) {
	plan := planOf(gauge("vllm:gpu_prefix_cache_hit_rate", "", -1)+gauge("vllm:cpu_prefix_cache_hit_rate", "", -1)+
		gauge("vllm:num_requests_running", "", 1), Options{})
	sentinels := map[string]bool{}
	for _, m := range plan.Metrics {
		sentinels[m.Name] = m.Sentinel
	}
	want := map[string]bool{
		"vllm.gpu_prefix_cache.hit_rate": true, "vllm.cpu_prefix_cache.hit_rate": true, "vllm.num_requests.running": false,
	}
	if len(sentinels) != len(want) {
		t.Fatalf("metrics %v", sentinels)
	}
	for name, sentinel := range want {
		if sentinels[name] != sentinel {
			t.Errorf("%s has Sentinel %v", name, sentinels[name])
		}
	}
}
