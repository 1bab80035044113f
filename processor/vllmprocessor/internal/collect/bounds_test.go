package collect

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// gauges is a payload with one gauge and no points yet.
func gauges(name string) (pmetric.Metrics, pmetric.NumberDataPointSlice) {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName(name)
	return metrics, metric.SetEmptyGauge().DataPoints()
}

func TestFairnessIDsAreSummed(t *testing.T) {
	metrics, points := gauges("inference_gateway.epp.flow_control.queue.size")
	for i := range 1000 {
		p := points.AppendEmpty()
		p.SetTimestamp(1)
		p.Attributes().PutStr("fairness_id", fmt.Sprint("client-", i))
		p.Attributes().PutStr("priority", fmt.Sprint(i%2))
		if i < 10 {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			continue
		}
		p.SetIntValue(3)
	}
	batches, report := Read(metrics)
	require.Len(t, batches, 1)
	assert.Zero(t, report)
	require.Len(t, batches[0].Groups, 1)
	require.Len(t, batches[0].Samples, 2)
	for i, s := range batches[0].Samples {
		assert.Equal(t, 3.0*495, s.Value)
		assert.False(t, s.Gone)
		assert.Equal(t, input.NewLabel(fmt.Sprint(i), ""), s.Label)
	}
}

func TestAGatewayThatEndsItsQueuesHasOneEnd(t *testing.T) {
	metrics, points := gauges("inference_gateway.epp.flow_control.queue.size")
	for i := range 5 {
		p := points.AppendEmpty()
		p.SetTimestamp(1)
		p.Attributes().PutStr("fairness_id", fmt.Sprint("client-", i))
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	batches, _ := Read(metrics)
	require.Len(t, batches[0].Samples, 1)
	assert.True(t, batches[0].Samples[0].Gone)
}

func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	metrics, points := gauges("vllm.num_requests.running")
	for _, length := range []int{maxPointBytes - 100, maxPointBytes + 1} {
		p := points.AppendEmpty()
		p.SetTimestamp(1)
		p.Attributes().PutStr("model_name", strings.Repeat("m", length))
	}
	batches, report := Read(metrics)
	assert.Len(t, batches[0].Samples, 1)
	assert.Equal(t, 1, report[TooLarge])

	attributes := metrics.ResourceMetrics().At(0).Resource().Attributes()
	attributes.PutStr("annotation", strings.Repeat("a", maxResourceBytes))
	batches, report = Read(metrics)
	assert.Empty(t, batches)
	assert.Equal(t, 2, report[TooLarge])
}

// 100,000 attributes cost no more than to pass them by.
func TestAResourceWithManyAttributesCostsLittle(t *testing.T) {
	metrics, points := gauges("vllm.num_requests.running")
	points.AppendEmpty().SetTimestamp(1)
	// Put looks for the name first, so it takes long by itself.
	raw := map[string]any{}
	for i := range 100_000 {
		raw[fmt.Sprint("attribute-", i)] = "v"
	}
	require.NoError(t, metrics.ResourceMetrics().At(0).Resource().Attributes().FromRaw(raw))
	began := time.Now()
	batches, report := Read(metrics)
	assert.Less(t, time.Since(began), 5*time.Second)
	assert.Empty(t, batches)
	assert.Equal(t, 1, report[TooLarge])
}

// Many points at one time, and then as many times: memory is in proportion to the
// points.
func TestManyTimesAfterManyPointsTakeMemoryInProportion(t *testing.T) {
	metrics, points := gauges("vllm.num_requests.running")
	for i := range 20_000 {
		p := points.AppendEmpty()
		p.SetTimestamp(1)
		p.Attributes().PutStr("engine", fmt.Sprint(i))
	}
	for i := range 3000 {
		points.AppendEmpty().SetTimestamp(pcommon.Timestamp(i + 2))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	batches, _ := Read(metrics)
	runtime.ReadMemStats(&after)
	assert.Len(t, batches, 3001)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100<<20))
}

// nested is the value of an attribute whose text cannot be rendered on the stack that a test sets.
func nested(to pcommon.Value) {
	for range 75_000 {
		to = to.SetEmptySlice().AppendEmpty()
	}
}

// Nothing renders a nested value, wherever a sender puts it. A stack of 1 GB overflows with 800,000 levels, and that of
// this test with less.
func TestNestedValuesAreNotRendered(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(8 << 20))
	for _, name := range []string{"vllm.num_requests.running", "vllm.unknown", "vllm:cache_config_info", "hw.power"} {
		for _, attribute := range []string{"service.instance.id", "service.version", "note"} {
			metrics, points := gauges(name)
			points.AppendEmpty().SetTimestamp(1)
			nested(metrics.ResourceMetrics().At(0).Resource().Attributes().PutEmpty(attribute))
			batches, _ := Read(metrics)
			assert.Empty(t, batches)
			metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr(kindAttribute, kindAccelerator)
			batches, _ = Read(metrics)
			assert.Empty(t, batches)
		}
		for _, attribute := range []string{"engine", "block_size", "num_gpu_blocks", "mamba_block_size", "hw.id", "hw.name", "note"} {
			metrics, points := gauges(name)
			point := points.AppendEmpty()
			point.SetTimestamp(1)
			point.Attributes().PutStr("hw.id", "0")
			nested(point.Attributes().PutEmpty(attribute))
			batches, report := Read(metrics)
			assert.Empty(t, batches)
			if name == "vllm.num_requests.running" || name == "vllm:cache_config_info" {
				assert.Equal(t, 1, report[TooLarge], "%s %s", name, attribute)
			}
			metrics.ResourceMetrics().At(0).Resource().Attributes().PutStr(kindAttribute, kindAccelerator)
			Read(metrics)
		}
	}
}
