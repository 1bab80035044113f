package collect

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// evidence reads one gauge besides what add adds, so that there is a batch.
func evidence(t *testing.T, add func(*input), resource ...string) Evidence {
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
		got := evidence(t, func(in *input) { in.counter(c.metric, 1) })
		assert.Equal(t, c.least, got.Least, name)
	}
}

func TestTheSignsOfASetup(t *testing.T) {
	for name, c := range map[string]struct {
		add   func(*input)
		signs Sign
	}{
		"nothing":               {func(*input) {}, 0},
		"an engine":             {func(in *input) { in.counter("vllm:prompt_tokens_total", 1, "engine", "0", "model_name", "m") }, 0},
		"Ray's names":           {func(in *input) { in.counter("ray_vllm_prompt_tokens_total", 1) }, Ray},
		"Ray's labels":          {func(in *input) { in.counter("vllm.prompt_tokens", 1, "WorkerId", "a") }, Ray},
		"a replica of Ray":      {func(in *input) { in.counter("vllm.prompt_tokens", 1, "ReplicaId", "a") }, Ray},
		"a connector":           {func(in *input) { in.counter("vllm:nixl_num_failed_transfers_total", 1) }, Connector},
		"a connector's name":    {func(in *input) { in.counter("vllm.nixl.num_failed_transfers", 1) }, Connector},
		"adapters":              {func(in *input) { in.gauge("vllm:lora_requests_info", 1) }, LoRA},
		"adapters' name":        {func(in *input) { in.gauge("vllm.lora.max_adapters", 1) }, LoRA},
		"V0":                    {func(in *input) { in.gauge("vllm:num_requests_swapped", 1) }, V0},
		"V0's name":             {func(in *input) { in.gauge("vllm.cpu_cache.utilization", 1) }, V0},
		"processes":             {func(in *input) { in.gauge("vllm:num_requests_running", 1, "pid", "7") }, Processes},
		"a counter of a pid":    {func(in *input) { in.counter("vllm:prompt_tokens_total", 1, "pid", "7") }, 0},
		"the simulator's":       {func(in *input) { in.gauge("vllm:max_num_generation_tokens", 1) }, Imitator},
		"the router's":          {func(in *input) { in.gauge("vllm:current_qps", 1) }, Imitator},
		"an imitator's label":   {func(in *input) { in.counter("vllm:request_success_total", 1, "finish_reason", "stop") }, Imitator},
		"the external cache":    {func(in *input) { in.counter("vllm:external_prefix_cache_queries_total", 0) }, 0},
		"a server's draft, too": {func(in *input) { in.counter("vllm:spec_decode_num_drafts_total", 0) }, 0},
	} {
		assert.Equal(t, c.signs, evidence(t, c.add).Signs, name)
	}
	assert.Equal(t, Imitator, evidence(t, func(*input) {}, "vllm.server.kind", "simulator").Signs)
}

func TestTheEvidenceIsThatOfTheWholeResource(t *testing.T) {
	in := newInput("service.instance.id", "a", "service.version", "0.16.1")
	in.gauge("vllm:num_requests_waiting", 1)
	in.resource("service.instance.id", "a").counter("vllm:corrupted_requests_total", 1)
	in.resource("service.instance.id", "b").counter("vllm:prompt_tokens_total", 1)
	batches, _ := Read(in.metrics)
	require.Len(t, batches, 2)
	for _, b := range batches {
		if b.Samples[0].Input == PromptTokens {
			assert.Equal(t, Evidence{Least: catalog.Release{0, 3}}, b.Evidence)
		} else {
			assert.Equal(t, Evidence{Version: "0.16.1", Least: catalog.Release{0, 11, 1}}, b.Evidence)
		}
	}
}

func TestTheStartOfTheProcess(t *testing.T) {
	for name, c := range map[string]struct {
		add  func(*input)
		want float64
	}{
		"none":           {func(*input) {}, 0},
		"one":            {func(in *input) { in.gauge("process_start_time_seconds", 1.7e9) }, 1.7e9},
		"zero":           {func(in *input) { in.gauge("process_start_time_seconds", 0) }, 0},
		"not a number":   {func(in *input) { in.gauge("process_start_time_seconds", math.NaN()) }, 0},
		"an end":         {func(in *input) { end(in.gauge("process_start_time_seconds", 5)) }, 0},
		"a counter":      {func(in *input) { in.counter("process_start_time_seconds", 5) }, 0},
		"of two servers": {func(in *input) { twice(in) }, 0},
	} {
		assert.Equal(t, c.want, evidence(t, c.add).ProcessStart, name)
	}
}

// twice adds one metric with two points.
func twice(in *input) {
	in.gauge("process_start_time_seconds", 5, "instance", "a")
	last(in).Gauge().DataPoints().At(0).CopyTo(last(in).Gauge().DataPoints().AppendEmpty())
}
