package collect

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// evidence reads one gauge besides what add adds, so that there is a batch.
func evidence(t *testing.T, add func(*request), resource ...string) input.Evidence {
	t.Helper()
	in := newInput(resource...)
	in.gauge("vllm:num_requests_waiting", 1)
	add(in)
	batches, _ := Read(in.metrics)
	require.NotEmpty(t, batches)
	return batches[0].Evidence
}

// The versions are those of the catalogue's sources, see metadata.yaml.
func TestANameProvesTheVersionThatIntroducedIt(t *testing.T) {
	for name, c := range map[string]struct {
		metric string
		least  catalog.Release
	}{
		"a family":                               {"vllm:prompt_tokens_by_source_total", catalog.Release{0, 16}},
		"a family with another prefix":           {"ray_vllm_prompt_tokens_by_source_total", catalog.Release{0, 16}},
		"a family without its suffix":            {"vllm:prompt_tokens_by_source", catalog.Release{0, 16}},
		"a family that is not an input":          {"vllm:request_prefill_kv_computed_tokens", catalog.Release{0, 13}},
		"the catalogue's name":                   {"vllm.prompt_tokens_by_source", catalog.Release{0, 16}},
		"as Prometheus writes it":                {"vllm_prompt_tokens_by_source_total", catalog.Release{0, 16}},
		"the new family of an old metric":        {"vllm:inter_token_latency_seconds", catalog.Release{0, 10, 2}},
		"the catalogue's name of an old metric":  {"vllm.inter_token_latency", catalog.Release{0, 3}},
		"a name that the processor derives":      {"vllm.kv_cache.capacity", catalog.Release{0, 2}},
		"a family whose label is newer":          {"vllm:cache_config_info", catalog.Release{0, 2}},
		"the front end's, which is a library":    {"http_requests_total", catalog.Release{0, 2}},
		"a family of another namespace":          {"lmcache:num_retrieve_requests_total", catalog.Release{0, 2}},
		"a name that the catalogue has not seen": {"vllm:made_up_total", catalog.Release{0, 2}},
	} {
		got := evidence(t, func(in *request) { in.counter(c.metric, 1) })
		assert.Equal(t, c.least, got.Least, name)
	}
}

func TestTheSignsOfASetup(t *testing.T) {
	for name, c := range map[string]struct {
		add   func(*request)
		signs input.Sign
	}{
		"nothing":               {func(*request) {}, 0},
		"an engine":             {func(in *request) { in.counter("vllm:prompt_tokens_total", 1, "engine", "0", "model_name", "m") }, 0},
		"Ray's names":           {func(in *request) { in.counter("ray_vllm_prompt_tokens_total", 1) }, input.Ray},
		"Ray's labels":          {func(in *request) { in.counter("vllm.prompt_tokens", 1, "WorkerId", "a") }, input.Ray},
		"a replica of Ray":      {func(in *request) { in.counter("vllm.prompt_tokens", 1, "ReplicaId", "a") }, input.Ray},
		"a connector":           {func(in *request) { in.counter("vllm:nixl_num_failed_transfers_total", 1) }, input.Connector},
		"a connector's name":    {func(in *request) { in.counter("vllm.nixl.num_failed_transfers", 1) }, input.Connector},
		"adapters":              {func(in *request) { in.gauge("vllm:lora_requests_info", 1) }, input.LoRA},
		"adapters' name":        {func(in *request) { in.gauge("vllm.lora.max_adapters", 1) }, input.LoRA},
		"V0":                    {func(in *request) { in.gauge("vllm:num_requests_swapped", 1) }, input.V0},
		"V0's name":             {func(in *request) { in.gauge("vllm.cpu_cache.utilization", 1) }, input.V0},
		"processes":             {func(in *request) { in.gauge("vllm:num_requests_running", 1, "pid", "7") }, input.Processes},
		"a counter of a pid":    {func(in *request) { in.counter("vllm:prompt_tokens_total", 1, "pid", "7") }, 0},
		"the simulator's":       {func(in *request) { in.gauge("vllm:max_num_generation_tokens", 1) }, input.Imitator},
		"the router's":          {func(in *request) { in.gauge("vllm:current_qps", 1) }, input.Imitator},
		"an imitator's label":   {func(in *request) { in.counter("vllm:request_success_total", 1, "finish_reason", "stop") }, input.Imitator},
		"the external cache":    {func(in *request) { in.counter("vllm:external_prefix_cache_queries_total", 0) }, 0},
		"a server's draft, too": {func(in *request) { in.counter("vllm:spec_decode_num_drafts_total", 0) }, 0},
	} {
		assert.Equal(t, c.signs, evidence(t, c.add).Signs, name)
	}
	assert.Equal(t, input.Imitator, evidence(t, func(*request) {}, "vllm.server.kind", "simulator").Signs)
}

func TestTheEvidenceIsThatOfTheWholeResource(t *testing.T) {
	in := newInput("service.instance.id", "a", "service.version", "0.16.1")
	in.gauge("vllm:num_requests_waiting", 1)
	in.resource("service.instance.id", "a").counter("vllm:corrupted_requests_total", 1)
	in.resource("service.instance.id", "b").counter("vllm:prompt_tokens_total", 1)
	batches, _ := Read(in.metrics)
	require.Len(t, batches, 2)
	for _, b := range batches {
		if b.Samples[0].Input == input.PromptTokens {
			assert.Equal(t, input.Evidence{Least: catalog.Release{0, 3}}, b.Evidence)
		} else {
			assert.Equal(t, input.Evidence{Version: "0.16.1", Least: catalog.Release{0, 11, 1}}, b.Evidence)
		}
	}
}

func TestTheStartOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(*request)
		want float64
	}{
		"none":           {func(*request) {}, 0},
		"one":            {func(in *request) { in.gauge("process_start_time_seconds", 1.7e9) }, 1.7e9},
		"zero":           {func(in *request) { in.gauge("process_start_time_seconds", 0) }, 0},
		"not a number":   {func(in *request) { in.gauge("process_start_time_seconds", math.NaN()) }, 0},
		"an end":         {func(in *request) { end(in.gauge("process_start_time_seconds", 5)) }, 0},
		"a counter":      {func(in *request) { in.counter("process_start_time_seconds", 5) }, 0},
		"of two servers": {func(in *request) { twice(in) }, 0},
	} {
		assert.Equal(t, c.want, evidence(t, c.add).ProcessStart, name)
	}
}

// twice adds one metric with two points.
func twice(in *request) {
	in.gauge("process_start_time_seconds", 5, "instance", "a")
	last(in).Gauge().DataPoints().At(0).CopyTo(last(in).Gauge().DataPoints().AppendEmpty())
}
