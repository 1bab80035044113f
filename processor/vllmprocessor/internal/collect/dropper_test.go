package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// left removes metrics that are not essential from resources with metrics of these names, and returns the names that
// are left of each resource.
func left(unknown bool, resources ...[]string) (out [][]string) {
	metrics := pmetric.NewMetrics()
	for _, names := range resources {
		to := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
		for _, name := range names {
			to.AppendEmpty().SetName(name)
		}
	}
	NewDropper(func(m *catalog.Metric) bool { return !m.In(catalog.Essential) }, unknown).Remove(metrics)
	for _, rm := range metrics.ResourceMetrics().All() {
		var names []string
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			names = append(names, m.Name())
		}
		out = append(out, names)
	}
	return out
}

// A metric is known under each of its names: the catalogue's, those of Prometheus, and those of the wire.
func TestDroppedUnderAnyName(t *testing.T) {
	for _, names := range [][]string{
		{"vllm.num_requests.running", "vllm.time_to_first_token", "vllm.generation_tokens"},
		{"vllm_num_requests_running", "vllm_time_to_first_token_seconds", "vllm_generation_tokens_total"},
		{"vllm:num_requests_running", "vllm:time_to_first_token_seconds", "vllm:generation_tokens_total"},
		{"ray_vllm_num_requests_running", "ray_vllm_time_to_first_token_seconds", "ray_vllm_generation_tokens_total"},
		{"vllm.up", "vllm.time_to_first_token", "http_requests_total"},
		{"vllm:num_requests_running", "http_requests_created", "http_request_duration_highr_seconds_created", "vllm:generation_tokens_created"},
		{"inference_pool_ready_pods", "inference_objective_request_total", "inference_objective_request_sizes"},
	} {
		want := names[:1]
		if names[0] == "inference_pool_ready_pods" {
			want = names[:2]
		}
		assert.Equal(t, [][]string{want}, left(false, names))
	}
}

func TestWhatTheCatalogueDoesNotHave(t *testing.T) {
	names := []string{"vllm:num_requests_running", "vllm:of_tomorrow", "python_new", "up", "scrape_duration_seconds"}
	assert.Equal(t, [][]string{names}, left(false, names))
	assert.Equal(t, [][]string{{names[0], "up", "scrape_duration_seconds"}}, left(true, names))
	gateway := []string{"lora_syncer_adapter_status", "lora_syncer_new", "bbr_new", "kvcache_index_new", "go_goroutines"}
	assert.Equal(t, [][]string{gateway[:1]}, left(true, gateway))
}

// Other programs have names that vLLM has, too.
func TestOtherProgramsKeepTheirMetrics(t *testing.T) {
	other := []string{"http_requests_total", "process_open_fds", "hw.energy", "python_new", "inference_requests_total"}
	assert.Equal(t, [][]string{other}, left(true, other))
	assert.Empty(t, left(true, []string{"vllm.iteration_tokens", "process_open_fds"}), "an empty resource is removed")
}
