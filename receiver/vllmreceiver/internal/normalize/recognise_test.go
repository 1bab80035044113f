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

func TestAGatewayKeepsTheNamesOfTheConventions(t *testing.T) {
	const model = `gen_ai_request_model="m"`
	isGateway := "resource vllm.server.kind=gateway"
	runPlanCases(t, []planCase{
		{
			name: "of all spellings the one with a unit counts",
			body: histogram("gen_ai_server_request_duration", model, 1, "1") + histogram("agentgateway_gen_ai_server_request_duration", model, 2, "1") +
				histogram("gen_ai_server_request_duration_seconds", model, 3, "1"),
			want: []string{"gen_ai.server.request.duration histogram s {gen_ai.request.model=m} = 3", "dropped alias 2", isGateway},
		},
		{
			name: "what it alone has keeps its name, and is not a picker's",
			body: counter("agentgateway_mcp_requests_total", `route="r",namespace="n"`, 1) + gauge("kong_nodes", "", 2) + gauge("gen_ai_new", "", 3),
			want: []string{
				"agentgateway.mcp_requests sum no-unit {exported_namespace=n,route=r} = 1", "kong_nodes gauge no-unit {} = 2",
				"gen_ai.new gauge no-unit {} = 3", "unknown kong_nodes", isGateway,
			},
		},
		{
			name: "the label of old is the provider, unless there is the new one",
			body: counter("agentgateway_requests_total", `gen_ai_system="a"`, 1) + sampleOf("agentgateway_requests_total", `gen_ai_provider_name="b",gen_ai_system="c"`, 2),
			want: []string{
				"agentgateway.requests sum {request} {gen_ai.provider.name=a} = 1",
				"agentgateway.requests sum {request} {gen_ai.provider.name=b,gen_ai_system=c} = 2", isGateway,
			},
		},
		{
			name: "a server that has them too is no gateway, and is not mirrored", options: Options{GenAI: true},
			body: histogram("vllm:e2e_request_latency_seconds", `model_name="m"`, 1, "1") + histogram("gen_ai_server_request_duration_seconds", model, 2, "1"),
			want: []string{
				"vllm.e2e_request_latency histogram s {model_name=m} = 1", "gen_ai.server.request.duration histogram s {gen_ai.request.model=m} = 2",
			},
		},
		{
			name: "Envoy's own statistics are none of a gateway's", options: Options{Source: SourceGateway}, body: gauge("envoy_server_live", "", 1),
			want: []string{"envoy_server_live gauge no-unit {} = 1", "unknown envoy_server_live", isGateway},
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

func TestDynamoIsAGatewayWithoutAnEngine(t *testing.T) {
	const of = `dynamo_component="backend",endpoint="chat_completions",name="a",namespace="b",port="1"`
	requests := counter("dynamo_component_requests_total", of, 4)
	asked := "dynamo.component.requests sum {request} {dynamo_component=backend,endpoint=chat_completions,exported_namespace=b,name=a,port=1} = 4"
	runPlanCases(t, []planCase{
		{
			name: "the standalone router, whose labels are not those of a picker", body: requests + counter("dynamo_component_router_requests_total", "", 5),
			want: []string{asked, "dynamo.component.router.requests sum {request} {} = 5", isEPP},
		},
		{
			name: "a frontend with families of a later release", body: gauge("dynamo_frontend_news_ms", "", 1) + gauge("dynamo_tokio_tasks", "", 2),
			want: []string{"dynamo.frontend.news gauge ms {} = 1", "dropped disabled 1", isEPP},
		},
		{
			name: "the deprecated copy of a family", body: gauge("dynamo_frontend_inflight_requests", "", 1) + gauge("dynamo_frontend_active_requests", "", 1),
			want: []string{"dynamo.frontend.active_requests gauge {request} {} = 1", "dropped alias 1", isEPP},
		},
		{
			name: "a worker with vLLM is a server", body: requests + gauge("vllm:num_requests_running", `dynamo_namespace="d",engine="0",model="m"`, 3),
			want: []string{asked, "vllm.num_requests.running gauge {request} {dynamo_namespace=d,engine=0,model=m} = 3"},
		},
		{name: "a worker without vLLM is none", body: requests, want: []string{asked}},
	})
}
