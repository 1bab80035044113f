package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheSettingThatAMetricNeeds(t *testing.T) {
	for name, want := range map[string]string{
		"vllm.kv_block.lifetime":             "--kv-cache-metrics",
		"vllm.lora.adapter.running":          "--enable-lora",
		"vllm.estimated_flops_per_gpu":       "--enable-mfu-metrics",
		"vllm.spec_decode.num_drafts":        "--speculative-config",
		"vllm.spec_decode.acceptance_ratio":  "--speculative-config",
		"vllm.model_flops_utilization":       "--enable-mfu-metrics",
		"vllm.num_requests.running":          "",
		"vllm.time_to_first_token_quantile":  "",
		"vllm.diagnosis.severity":            "",
		"inference_gateway.epp.requests":     "",
		"vllm.diffusion.num_denoising_steps": "",
	} {
		m, known := ByName(name)
		if !assert.True(t, known, name) {
			continue
		}
		assert.Equal(t, want, m.Setting(), name)
	}
}
