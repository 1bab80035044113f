package normalize

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

func TestWhatABodyShowsOfServing(t *testing.T) {
	const generated = "# TYPE vllm:generation_tokens_total counter\n" +
		"vllm:generation_tokens_total{engine=\"0\"} 10\nvllm:generation_tokens_total{engine=\"1\"} 20\n"
	sleep := func(awake, weights, all string) string {
		return "# TYPE vllm:engine_sleep_state gauge\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} " + awake +
			"\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} " + weights +
			"\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"discard_all\"} " + all + "\n"
	}
	for name, tc := range map[string]struct {
		body   string
		prefix string
		want   Serving
	}{
		"nothing":              {"# TYPE vllm:x gauge\nvllm:x 1\n", "", Serving{Tokens: -1}},
		"all engines":          {generated, "", Serving{Tokens: 30}},
		"no number":            {"# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total NaN\n", "", Serving{Tokens: -1}},
		"a prefix":             {"# TYPE corp_generation_tokens_total counter\ncorp_generation_tokens_total 5\n", "corp_", Serving{Tokens: 5}},
		"a name of others":     {"# TYPE corp_generation_tokens_total counter\ncorp_generation_tokens_total 5\n", "", Serving{Tokens: -1}},
		"awake":                {sleep("1", "0", "0"), "", Serving{Tokens: -1}},
		"weights offloaded":    {sleep("0", "1", "0"), "", Serving{Tokens: -1, Asleep: true}},
		"all discarded":        {sleep("1", "0", "1"), "", Serving{Tokens: -1, Asleep: true}},
		"not awake":            {sleep("0", "0", "0"), "", Serving{Tokens: -1, Asleep: true}},
		"one engine is asleep": {sleep("1", "0", "0") + "vllm:engine_sleep_state{engine=\"1\",sleep_state=\"awake\"} 0\n", "", Serving{Tokens: -1, Asleep: true}},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := exposition.NewReader(exposition.NewMemory(0)).Read([]byte(tc.body), exposition.DialectText)
			options := Options{}
			if tc.prefix != "" {
				options.Prefixes = []string{tc.prefix}
			}
			assert.Equal(t, tc.want, options.Serving(snapshot))
		})
	}
}

func TestWhoAnswersRequests(t *testing.T) {
	const server = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\n"
	counter := func(name string) string { return "# TYPE " + name + " counter\n" + name + " 1\n" }
	for name, tc := range map[string]struct {
		body                         string
		source                       Source
		answers, transfers, parallel bool
	}{
		"a server":        {server, SourceAuto, true, false, false},
		"two engines":     {server + "vllm:num_requests_running{engine=\"1\",model_name=\"m\"} 1\n", SourceAuto, true, false, true},
		"NIXL":            {server + counter("vllm:nixl_num_failed_transfers_total"), SourceAuto, true, true, false},
		"mooncake":        {server + counter("vllm:mooncake_num_failed_recvs_total"), SourceAuto, true, true, false},
		"offloading":      {server + counter("vllm:kv_offload_total_bytes_total"), SourceAuto, true, false, false},
		"an imitator":     {server + "# TYPE vllm:request_success_total counter\nvllm:request_success_total{finish_reason=\"stop\"} 1\n", SourceAuto, false, false, false},
		"something else":  {"# TYPE node_load1 gauge\nnode_load1 1\n", SourceAuto, false, false, false},
		"a router":        {"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{server=\"http://a\"} 1\n", SourceAuto, false, false, false},
		"a gateway":       {server, SourceGateway, false, false, false},
		"a LoRA syncer":   {server, SourceLoRA, false, false, false},
		"an exporter":     {server, SourceDCGM, false, false, false},
		"the gateway's":   {"# TYPE inference_extension_scheduler_attempts_total counter\ninference_extension_scheduler_attempts_total 1\n", SourceAuto, false, false, false},
		"an agent of Ray": {"# TYPE ray_vllm_num_requests_running gauge\nray_vllm_num_requests_running{engine=\"0\",model_name=\"m\",WorkerId=\"w\",ReplicaId=\"r\"} 1\n", SourceAuto, false, false, false},
		"vLLM, as set":    {server, SourceVLLM, true, false, false},
		"nothing, as set": {"# TYPE node_load1 gauge\nnode_load1 1\n", SourceVLLM, false, false, false},
		"the llm-d simulator": {
			server + "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1\"} 1\n",
			SourceAuto, true, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := exposition.NewReader(exposition.NewMemory(0)).Read([]byte(tc.body), exposition.DialectText)
			plan := Make(snapshot.Layout, Options{Source: tc.source})
			assert.Equal(t, tc.answers, plan.Answers(), plan.Server)
			assert.Equal(t, tc.transfers, plan.Transfers())
			assert.Equal(t, tc.parallel, plan.Parallel())
		})
	}
}
