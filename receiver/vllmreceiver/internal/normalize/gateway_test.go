package normalize

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	isGAIE = "resource inference_gateway.epp.flavor=gaie"
	isLLMD = "resource inference_gateway.epp.flavor=llm-d"
	isEPP  = "resource vllm.server.kind=gateway"
)

func TestTheGenerationsOfAPickerShareOneName(t *testing.T) {
	const models = `model_name="m",target_model_name="t"`
	want := "inference_gateway.epp.requests sum {request} {model_name=m,target_model_name=t} = "
	runPlanCases(t, []planCase{
		{
			name: "the first", body: counter("inference_model_request_total", models, 1), want: []string{want + "1", isEPP, isGAIE},
		},
		{
			name: "the second", body: counter("inference_objective_request_total", models, 2), want: []string{want + "2", isEPP, isGAIE},
		},
		{
			name: "the third", body: counter("llm_d_epp_request_total", models, 3), want: []string{want + "3", isEPP, isLLMD},
		},
		{
			name: "of twins the newer counts, and nothing is added up",
			body: counter("inference_objective_request_total", models, 189) + counter("llm_d_epp_request_total", models, 189),
			want: []string{want + "189", "dropped alias 1", isEPP, isLLMD},
		},
		{
			name: "an index of KV caches has three spellings",
			body: counter("kvcache_index_evictions_total", "", 1) + counter("llm_d_router_epp_kv_cache_index_evictions_total", "", 2) +
				counter("llm_d_epp_kv_cache_index_evictions_total", "", 3),
			want: []string{"inference_gateway.epp.kv_cache_index_evictions sum {block} {} = 3", "dropped alias 2", isEPP, isLLMD},
		},
	})
}

func TestLabelsOfAPickerMeanTheSameInEveryGeneration(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "the pool", body: gauge("inference_pool_ready_pods", `name="p"`, 4),
			want: []string{"inference_gateway.pool.endpoint.ready gauge {endpoint} {pool=p} = 4", isEPP, isGAIE},
		},
		{
			name: "the endpoint of old", body: gauge("inference_pool_per_pod_queue_size", `model_server_pod="e",name="p"`, 4),
			want: []string{"inference_gateway.pool.endpoint.queue_size gauge {request} {endpoint=e,pool=p} = 4", isEPP, isGAIE},
		},
		{
			name: "the endpoint of now", body: gauge("llm_d_epp_per_endpoint_queue_size", `model_server_endpoint="e",name="p"`, 4),
			want: []string{"inference_gateway.pool.endpoint.queue_size gauge {request} {endpoint=e,pool=p} = 4", isEPP, isLLMD},
		},
		{
			name: "a namespace, which a backend reserves",
			body: counter("inference_extension_scheduler_attempts_total", `namespace="n",pod_name="e",port="80",status="success"`, 4),
			want: []string{
				"inference_gateway.epp.scheduler.attempts sum {attempt} {endpoint=e,endpoint_namespace=n,endpoint_port=80,status=success} = 4",
				isEPP, isGAIE,
			},
		},
		{
			name: "two labels that claim one attribute", body: gauge("llm_d_epp_ready_endpoints", `inference_pool="a",name="b"`, 4),
			want: []string{"inference_gateway.pool.endpoint.ready gauge {endpoint} {name=b,pool=a} = 4", isEPP, isLLMD},
		},
		{
			name: "the label name of a model server is not a pool", body: gauge("vllm:num_requests_running", `name="m"`, 4),
			want: []string{"vllm.num_requests.running gauge {request} {name=m} = 4"},
		},
	})
}

func TestALabelWithoutLimitIsAddedUp(t *testing.T) {
	two := func(family func(string, string, int) string, name string) string {
		return family(name, `fairness_id="a",model_name="m"`, 3) + sampleOf(name, `fairness_id="b",model_name="m"`, 4)
	}
	runPlanCases(t, []planCase{
		{
			name: "in a counter", body: two(counter, "llm_d_epp_request_total"),
			want: []string{"inference_gateway.epp.requests sum {request} {model_name=m} = 7", isEPP, isLLMD},
		},
		{
			name: "in a gauge that counts", body: two(gauge, "llm_d_epp_request_running"),
			want: []string{"inference_gateway.epp.request.running gauge {request} {model_name=m} = 7", isEPP, isLLMD},
		},
		{
			name: "not in a gauge that may be a mean", body: two(gauge, "llm_d_epp_new_share"),
			want: []string{
				"inference_gateway.epp.new_share gauge no-unit {fairness_id=a,model_name=m} = 3",
				"inference_gateway.epp.new_share gauge no-unit {fairness_id=b,model_name=m} = 4",
				"unknown llm_d_epp_new_share", isEPP, isLLMD,
			},
		},
		{
			name: "unless it is wanted", body: two(counter, "llm_d_epp_request_total"), options: Options{KeepFairness: true},
			want: []string{
				"inference_gateway.epp.requests sum {request} {fairness_id=a,model_name=m} = 3",
				"inference_gateway.epp.requests sum {request} {fairness_id=b,model_name=m} = 4", isEPP, isLLMD,
			},
		},
		{
			name: "not in another server's metric", body: two(counter, "vllm:prompt_tokens_total"),
			want: []string{
				"vllm.prompt_tokens sum {token} {fairness_id=a,model_name=m} = 3",
				"vllm.prompt_tokens sum {token} {fairness_id=b,model_name=m} = 4",
			},
		},
	})
}

// Two releases of a library in one body, or a hostile one: only what both
// counted in the same buckets can be added up by bucket.
func TestHistogramsOfDifferentBucketsKeepTheCommonOnes(t *testing.T) {
	plan := planOf(histogram("llm_d_epp_request_duration_seconds", `fairness_id="a"`, 3, "1", "2", "4")+
		histogramSeries("llm_d_epp_request_duration_seconds", `fairness_id="b"`, 4, "1", "3", "4"), Options{})
	require.Len(t, plan.Metrics, 1)
	require.Len(t, plan.Metrics[0].Points, 1)
	assert.Equal(t, []float64{1, 4}, plan.Metrics[0].Points[0].Bounds)
	assert.Len(t, plan.Metrics[0].Points[0].Parts, 2)
}

func TestUnknownFamiliesOfAPicker(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "keep what follows the generation", body: counter("inference_extension_new_things_total", `pod_name="e"`, 1),
			want: []string{
				"inference_gateway.epp.new_things sum no-unit {endpoint=e} = 1", "unknown inference_extension_new_things_total", isEPP, isGAIE,
			},
		},
		{
			name: "of twins the newer counts",
			body: histogram("llm_d_epp_new_seconds", "", 2, "1") + histogram("inference_extension_new_seconds", "", 1, "1"),
			want: []string{
				"inference_gateway.epp.new histogram s {} = 2", "dropped alias 1", "unknown llm_d_epp_new_seconds", isEPP, isLLMD,
			},
		},
		{
			name: "a plug-in's own are the picker's",
			body: gauge("inference_pool_ready_pods", "", 1) + gauge("acme_plugin_depth", "", 2),
			want: []string{
				"inference_gateway.pool.endpoint.ready gauge {endpoint} {} = 1", "inference_gateway.epp.acme_plugin_depth gauge no-unit {} = 2",
				"unknown acme_plugin_depth", isEPP, isGAIE,
			},
		},
		{
			name: "a name that would be a group gets out of the way", body: gauge("llm_d_epp_request", "", 1),
			want: []string{"inference_gateway.epp.request_gauge gauge no-unit {} = 1", "unknown llm_d_epp_request", isEPP, isLLMD},
		},
		{
			name: "what any program has is off", body: gauge("inference_pool_ready_pods", "", 1) + gauge("workqueue_depth", `name="q"`, 2) +
				gauge("controller_runtime_max_concurrent_reconciles", "", 3) + gauge("go_goroutines", "", 4),
			want: []string{"inference_gateway.pool.endpoint.ready gauge {endpoint} {} = 1", "dropped disabled 3", isEPP, isGAIE},
		},
	})
}

func TestFamiliesOfAPickerThatAreNotEmitted(t *testing.T) {
	runPlanCases(t, []planCase{
		{
			name: "mixed units are off", body: gauge("llm_d_epp_inference_request_metric", `type="ttft"`, 1),
			want: []string{"dropped disabled 1", isEPP, isLLMD},
		},
		{
			name: "the build is the version", body: gauge("inference_extension_info", `build_ref="v1.5.0",commit="abc"`, 1),
			want: []string{"resource service.version=v1.5.0", "resource service.version=abc", "dropped info 1", isEPP, isGAIE},
		},
		{
			name: "a build without names gives no version", body: gauge("inference_extension_info", `build_ref="",commit=""`, 1),
			want: []string{"dropped info 1", isEPP, isGAIE},
		},
		{
			name: "the body-based router has no flavor", body: counter("bbr_success_total", "", 5),
			want: []string{"inference_gateway.bbr.success sum {request} {} = 5", isEPP},
		},
	})
}

func TestRemarksLeaveDescriptions(t *testing.T) {
	for help, want := range map[string]string{
		"[ALPHA] Depth.": "Depth.",
		"[ALPHA] [Deprecated: Use llm_d_epp_x] Depth [in requests].": "Depth [in requests].",
		"Deprecated: use llm_d_epp_x. Depth of it.":                  "Depth of it.",
		"Depth.":                    "Depth.",
		"[never closed":             "[never closed",
		"Deprecated: for no reason": "Deprecated: for no reason",
		"":                          "",
	} {
		plan := planOf("# HELP llm_d_epp_new_depth "+help+"\n"+gauge("llm_d_epp_new_depth", "", 1), Options{})
		require.Len(t, plan.Metrics, 1)
		assert.Equal(t, want, plan.Metrics[0].Description)
	}
}

func TestAdaptersOfTheSyncerAreBounded(t *testing.T) {
	body := gauge("lora_syncer_adapter_status", `adapter_name="a"`, 1) + sampleOf("lora_syncer_adapter_status", `adapter_name="b"`, 0)
	runPlanCases(t, []planCase{
		{
			name: "one series for each", body: body,
			want: []string{
				"inference_gateway.lora.adapter.status gauge {adapter} {adapter_name=a} = 1",
				"inference_gateway.lora.adapter.status gauge {adapter} {adapter_name=b} = 0", "resource vllm.server.kind=lora_syncer",
			},
		},
		{
			name: "up to the limit", body: body, options: Options{MaxAdapters: 1},
			want: []string{
				"inference_gateway.lora.adapter.status gauge {adapter} {adapter_name=a} = 1", "dropped adapter_limit 1",
				"resource vllm.server.kind=lora_syncer",
			},
		},
	})
}

// sampleOf is one more sample of a family.
func sampleOf(name, labels string, value int) string {
	return fmt.Sprintf("%s{%s} %d\n", name, labels, value)
}
