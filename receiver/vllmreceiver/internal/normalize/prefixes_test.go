package normalize

import "testing"

// Rule 4: whatever a deployment puts before a family's name, it is the same
// metric.
func TestEveryPrefixFoldsIntoTheCanonicalName(t *testing.T) {
	running := []string{"vllm.num_requests.running gauge {request} {engine=0} = 3"}
	runPlanCases(t, []planCase{
		{name: "vLLM's own", body: gauge("vllm:num_requests_running", `engine="0"`, 3), want: running},
		{name: "a colon turned into an underscore", body: gauge("vllm_num_requests_running", `engine="0"`, 3), want: running},
		{name: "Ray from v0.11 on", body: gauge("ray_vllm_num_requests_running", `engine="0"`, 3), want: running},
		{name: "Ray before v0.11", body: gauge("ray_vllm:num_requests_running", `engine="0"`, 3), want: running},
		{name: "KServe", body: gauge("kserve_vllm:num_requests_running", `engine="0"`, 3), want: running},
		{
			name: "a user's prefix before vLLM's", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("acme_vllm:num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "a user's prefix before the underscore style", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("acme_vllm_num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "a user's prefix before Ray's", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("acme_ray_vllm_num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "a user's prefix in the place of vLLM's", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("acme_num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "the second of two prefixes of a user", options: Options{Prefixes: []string{"other_", "acme:"}},
			body: gauge("acme:num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "of two prefixes that both fit, the longer one", options: Options{Prefixes: []string{"acme_", "acme_prod_"}},
			body: gauge("acme_prod_num_requests_running", `engine="0"`, 3), want: running,
		},
		{
			name: "a prefix that is not configured is not removed",
			body: gauge("acme_vllm:num_requests_running", `engine="0"`, 3),
			want: []string{"acme_vllm.num_requests_running gauge no-unit {engine=0} = 3", "unknown acme_vllm:num_requests_running"},
		},
		{
			name: "vLLM's own prefix is known next to a configured one", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("vllm:num_requests_running", `engine="0"`, 3), want: running,
		},
	})
}

func TestPrefixesFoldForCountersHistogramsAndUnknownFamiliesToo(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a counter of Ray",
			body: counter("ray_vllm_prompt_tokens_total", `model_name="m"`, 7),
			want: []string{"vllm.prompt_tokens sum {token} {model_name=m} = 7"},
		},
		{
			name: "a histogram of Ray",
			body: histogram("ray_vllm:time_to_first_token_seconds", "", 4, "1"),
			want: []string{"vllm.time_to_first_token histogram s {} = 4"},
		},
		{
			name: "an unknown family",
			body: gauge("ray_vllm_new_depth", "", 1),
			want: []string{"vllm.new_depth gauge no-unit {} = 1", "unknown ray_vllm_new_depth"},
		},
		{
			name: "an info family", options: Options{Prefixes: []string{"acme_"}},
			body: gauge("acme_vllm:cache_config_info", `block_size="16",engine="0"`, 1),
			want: []string{"vllm.kv_cache.block_size gauge {token} {engine=0} = 16", "dropped info 1"},
		},
		{
			name: "one metric under two prefixes: one of them counts",
			body: gauge("vllm:num_requests_running", `engine="0"`, 3) + gauge("vllm_num_requests_running", `engine="0"`, 4),
			want: []string{"vllm.num_requests.running gauge {request} {engine=0} = 3", "dropped alias 1"},
		},
	})
}

// The LMCache namespaces are not vLLM's and have names of their own.
func TestOtherNamespaces(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "LMCache inside vLLM",
			body: gauge("lmcache:new_depth", "", 1),
			want: []string{"lmcache.new_depth gauge no-unit {} = 1", "unknown lmcache:new_depth"},
		},
		{
			name: "LMCache on its own",
			body: counter("lmcache_mp_new_things_total", "", 1),
			want: []string{"lmcache_mp.new_things sum no-unit {} = 1", "unknown lmcache_mp_new_things_total"},
		},
		{
			name: "the web server keeps flat names",
			body: counter("http_requests_total", `handler="/v1",method="POST",status="2xx"`, 1),
			want: []string{"http_requests sum {request} {handler=/v1,method=POST,status=2xx} = 1"},
		},
	})
}
