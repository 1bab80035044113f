package normalize

import "testing"

func TestTheMetricsOfARouterHaveOtherNames(t *testing.T) {
	const server = `server="http://a"`
	isRouter := "resource vllm.server.kind=router"
	runPlanCases(t, []planCase{
		{
			name: "a gauge per server marks the body", body: gauge("vllm:num_requests_running", server, 3),
			want: []string{"vllm_router.num_requests.running gauge {request} {server=http://a} = 3", isRouter},
		},
		{
			name: "a family of its own marks the body", body: gauge("vllm:current_qps", "", 3) + gauge("vllm:num_requests_waiting", "", 4),
			want: []string{
				"vllm_router.current_qps gauge {request}/s {} = 3", "vllm_router.num_requests.waiting gauge {request} {} = 4", isRouter,
			},
		},
		{
			name: "it does so before there is a server", body: "# TYPE vllm:healthy_pods_total gauge\n" + gauge("router_cpu_usage_percent", "", 4),
			want: []string{"vllm_router.cpu_usage_percent gauge % {} = 4", isRouter},
		},
		{
			name: "a gauge keeps the ending of a counter, a counter loses it",
			body: gauge("vllm:gpu_prefix_cache_hits_total", server, 3) + counter("vllm:request_errors_total", server, 4),
			want: []string{
				"vllm_router.gpu_prefix_cache.hits_total gauge {token} {server=http://a} = 3",
				"vllm_router.request.errors sum {error} {server=http://a} = 4", isRouter,
			},
		},
		{
			name: "a router's metric can be switched off", options: Options{Enabled: map[string]bool{"vllm_router.num_requests.running": false}},
			body: gauge("vllm:num_requests_running", server, 3), want: []string{"dropped disabled 1", isRouter},
		},
		{
			name: "a server's gauge with such a label added is the server's",
			body: gauge("vllm:num_requests_running", `engine="0",model_name="m",`+server, 3),
			want: []string{"vllm.num_requests.running gauge {request} {engine=0,model_name=m,server=http://a} = 3"},
		},
		{
			name: "one such gauge in a server's body does not make it a router",
			body: gauge("vllm:num_requests_waiting", server, 3) + gauge("vllm:num_requests_running", `engine="0"`, 4),
			want: []string{
				"vllm.num_requests.waiting gauge {request} {server=http://a} = 3", "vllm.num_requests.running gauge {request} {engine=0} = 4",
			},
		},
		{
			name: "a server that the user knows to be one", options: Options{Source: SourceVLLM},
			body: gauge("vllm:num_requests_running", server, 3),
			want: []string{"vllm.num_requests.running gauge {request} {server=http://a} = 3"},
		},
	})
}

func TestASimulatorIsMarkedBeforeItsFirstRequest(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "by the few labels of its configuration",
			body: gauge("vllm:cache_config_info", `block_size="16",num_gpu_blocks="5"`, 1),
			want: []string{
				"vllm.kv_cache.block_size gauge {token} {} = 16", "vllm.kv_cache.num_gpu_blocks gauge {block} {} = 5", "dropped info 1",
				"resource vllm.server.kind=simulator",
			},
		},
		{
			name: "a server has more of them",
			body: gauge("vllm:cache_config_info", `block_size="16",engine="0",num_gpu_blocks="5"`, 1),
			want: []string{
				"vllm.kv_cache.block_size gauge {token} {engine=0} = 16", "vllm.kv_cache.num_gpu_blocks gauge {block} {engine=0} = 5",
				"dropped info 1",
			},
		},
	})
}

func TestTheConfiguredSourceOverridesTheBody(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "a gateway whose families are all unknown", options: Options{Source: SourceGateway}, body: gauge("acme_depth", "", 1),
			want: []string{"inference_gateway.epp.acme_depth gauge no-unit {} = 1", "unknown acme_depth", isEPP},
		},
		{
			name: "a syncer", options: Options{Source: SourceLoRA}, body: gauge("acme_depth", "", 1),
			want: []string{"acme_depth gauge no-unit {} = 1", "unknown acme_depth", "resource vllm.server.kind=lora_syncer"},
		},
		{
			name: "a body of both is the server's", body: gauge("vllm:num_requests_running", "", 1) + gauge("inference_pool_ready_pods", "", 2),
			want: []string{
				"vllm.num_requests.running gauge {request} {} = 1", "inference_gateway.pool.endpoint.ready gauge {endpoint} {} = 2",
			},
		},
	})
}
