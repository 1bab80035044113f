package collect

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// cacheConfigNumbers are the labels of vLLM's cache configuration that are read.
var cacheConfigNumbers = [...]struct {
	label string
	input input.Metric
}{
	{"block_size", input.KVCacheBlockSize},
	{"num_gpu_blocks", input.KVCacheBlocks},
	{"kv_cache_size_tokens", input.CacheConfigTokens},
}

// readCacheConfig reads the numbers in the labels of vLLM's cache configuration. It is for
// input that is not from our receiver.
func (c *collector) readCacheConfig(metric pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		points = metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = metric.Sum().DataPoints()
	default:
		return
	}
	for i := range points.Len() {
		point := points.At(i)
		if point.Flags().NoRecordedValue() {
			continue
		}
		if identity.Size(point.Attributes()) > maxPointBytes {
			c.report[TooLarge]++
			continue
		}
		engine := pcommon.NewMap()
		if value, ok := point.Attributes().Get("engine"); ok {
			engine.PutStr("engine", value.AsString())
		}
		for _, number := range cacheConfigNumbers {
			value, ok := point.Attributes().Get(number.label)
			if !ok {
				continue
			}
			parsed, err := strconv.ParseFloat(value.AsString(), 64)
			if err != nil || !finite(parsed) || parsed < 0 {
				continue // "None" means: not set
			}
			c.origin = origin{rank: rankWire}
			c.add(point.Timestamp(), engine, &input.Sample{Input: number.input, Value: parsed})
		}
		if hybrid(point.Attributes()) {
			c.origin = origin{rank: rankWire}
			c.add(point.Timestamp(), engine, &input.Sample{Input: input.CacheConfigHybrid, Value: 1})
		}
	}
}

// hybridLabels are numbers only where the model has layers with a state besides those
// with attention.
var hybridLabels = [...]string{"mamba_block_size", "mamba_page_size_padded"}

// hybrid reports whether the labels of the cache configuration show such a model. Its
// blocks have several sizes, of which block_size is one.
func hybrid(labels pcommon.Map) bool {
	for _, name := range hybridLabels {
		if value, ok := labels.Get(name); ok {
			if n, err := strconv.ParseFloat(value.AsString(), 64); err == nil && n > 0 {
				return true
			}
		}
	}
	return false
}
