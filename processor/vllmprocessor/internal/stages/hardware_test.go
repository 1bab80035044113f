package stages

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
)

func TestPeaksGoByTheResource(t *testing.T) {
	rules, err := rulesOf([]Hardware{
		{Match: map[string]string{"k8s.node.name": "gpu-a-*"}, GPU: "H100-SXM", DType: "fp8"},
		{Match: map[string]string{"k8s.node.name": "gpu-old-*"}, GPU: "V100-SXM"},
		{FLOPS: 989e12, MemoryBandwidth: 3.35e12},
	})
	require.NoError(t, err)
	of := func(name, value string) derive.Peak {
		attributes := pcommon.NewMap()
		attributes.PutStr(name, value)
		return peak(rules, attributes)
	}
	h100, _ := gpu.Lookup("H100-SXM")
	assert.Equal(t, derive.Peak{FLOPS: h100.FP8, Bandwidth: h100.MemoryBandwidth}, of("k8s.node.name", "gpu-a-7"))
	assert.Equal(t, derive.Peak{FLOPS: 125e12, Bandwidth: 0.9e12}, of("k8s.node.name", "gpu-old-1"), "fp16 where there is no bf16")
	assert.Equal(t, derive.Peak{FLOPS: 989e12, Bandwidth: 3.35e12}, of("host.name", "gpu-a-7"), "the last rule matches every resource")
	assert.Equal(t, derive.Peak{}, peak(rules[:1], pcommon.NewMap()), "no rule, no peak")
	assert.Equal(t, derive.Peak{}, peak(nil, pcommon.NewMap()))
}

// The default dtype of an entry must be one that its GPU has.
func TestEveryGPUHasADefaultType(t *testing.T) {
	for _, name := range gpu.Names() {
		rule, err := (&Hardware{GPU: name}).rule()
		require.NoError(t, err, name)
		assert.GreaterOrEqual(t, rule.FLOPS, float64(minFLOPS), name)
		assert.GreaterOrEqual(t, rule.MemoryBandwidth, float64(minBandwidth), name)
	}
}
