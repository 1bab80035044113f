package collect

import (
	"math"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
)

// gpuPoint is a point of an exporter.
type gpuPoint struct {
	name    string
	counter bool
	value   float64
	labels  []string
}

// exported is a resource with points of one GPU, unless a label says otherwise.
func exported(points ...gpuPoint) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("vllm.server.kind", "accelerator")
	rm.Resource().Attributes().PutStr("service.instance.id", "node-1:9400")
	rm.Resource().Attributes().PutStr("k8s.pod.uid", "u")
	to := rm.ScopeMetrics().AppendEmpty().Metrics()
	for _, p := range points {
		metric := to.AppendEmpty()
		metric.SetName(p.name)
		var point pmetric.NumberDataPoint
		if p.counter {
			metric.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point = metric.Sum().DataPoints().AppendEmpty()
		} else {
			point = metric.SetEmptyGauge().DataPoints().AppendEmpty()
		}
		point.SetDoubleValue(p.value)
		point.SetTimestamp(pcommon.Timestamp(1000))
		point.Attributes().PutStr("hw.id", "GPU-1")
		for i := 0; i < len(p.labels); i += 2 {
			point.Attributes().PutStr(p.labels[i], p.labels[i+1])
		}
	}
	return metrics
}

func TestWhatExportersSayOfAGPU(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		points []gpuPoint
		field  gpu.Field
		want   float64
	}{
		"the power brake belongs to the power": {[]gpuPoint{
			{"vllm.accelerator.throttle.active", false, 0, []string{"reason", "power_cap"}},
			{"vllm.accelerator.throttle.active", false, 1, []string{"reason", "hw_power_brake"}},
		}, gpu.PowerActive, 1},
		"and not of the heat": {[]gpuPoint{
			{"vllm.accelerator.throttle.active", false, 0, []string{"reason", "sw_thermal"}},
			{"vllm.accelerator.throttle.active", false, 1, []string{"reason", "hw_power_brake"}},
		}, gpu.ThermalActive, 0},
		"an idle GPU is not limited": {[]gpuPoint{{"vllm.accelerator.throttle.active", false, 1, []string{"reason", "gpu_idle"}}}, gpu.PowerActive, math.NaN()},
		"a sliding count is not a counter": {[]gpuPoint{
			{"vllm.accelerator.throttle.recent", false, 9, []string{"reason", "power_cap"}},
			{"vllm.accelerator.xid.recent", false, 9, []string{"xid", "48"}},
		}, gpu.PowerActive, math.NaN()},
		"errors of the memory are added up": {[]gpuPoint{
			{"hw.errors", true, 2, []string{"error.type", "uncorrected"}},
			{"hw.errors", true, 100, []string{"error.type", "corrected"}},
			{"vllm.accelerator.row_remap.rows", true, 3, []string{"error.type", "corrected"}},
			{"vllm.accelerator.retired_pages", true, 4, []string{"error.type", "uncorrected"}},
		}, gpu.MemoryErrors, 9},
		"links are added up, by their kind": {[]gpuPoint{
			{"vllm.accelerator.link.errors", true, 2, []string{"link", "nvlink", "error.type", "replay", "link_index", "0"}},
			{"vllm.accelerator.link.errors", true, 3, []string{"link", "nvlink", "error.type", "replay", "link_index", "1"}},
			{"vllm.accelerator.link.errors", true, 50, []string{"link", "pcie", "error.type", "replay"}},
		}, gpu.LinkErrors, 5},
		"the clock of the compute units": {[]gpuPoint{
			{"vllm.accelerator.clock.frequency", false, 1e9, []string{"clock_domain", "compute", "clock_index", "0"}},
			{"vllm.accelerator.clock.frequency", false, 2e9, []string{"clock_domain", "compute", "clock_index", "1"}},
			{"vllm.accelerator.clock.frequency", false, 9e9, []string{"clock_domain", "memory"}},
		}, gpu.Clock, 1.5e9},
		"a counter that is a gauge":   {[]gpuPoint{{"hw.energy", false, 1, nil}}, gpu.Energy, math.NaN()},
		"what is not a number":        {[]gpuPoint{{"hw.power", false, math.NaN(), nil}}, gpu.Power, math.NaN()},
		"a number that is impossible": {[]gpuPoint{{"hw.power", false, -1, nil}}, gpu.Power, math.NaN()},
	} {
		reader := new(Reader)
		batches, _ := reader.Read(exported(append(test.points, gpuPoint{"hw.gpu.memory.usage", false, 1, nil})...))
		assert.Empty(t, batches, "GPUs are no servers")
		all := reader.Accelerators().Batches
		require.Len(t, all, 1, name)
		require.Len(t, all[0].Readings, 1, name)
		if math.IsNaN(test.want) {
			assert.True(t, math.IsNaN(all[0].Readings[0].Values[test.field]), name)
			continue
		}
		assert.InDelta(t, test.want, all[0].Readings[0].Values[test.field], 1e-9*test.want, name)
	}
}

// Each metric that is read is in the catalogue, with the kind and the attributes that are expected.
func TestTheMetricsOfGPUsAreThoseOfTheCatalogue(t *testing.T) {
	t.Parallel()
	for name, meanings := range devices {
		metric, known := catalog.ByName(name)
		require.True(t, known, name)
		for _, m := range meanings {
			assert.Equal(t, m.counter, metric.Kind == catalog.KindSum, name)
			for _, attribute := range []string{m.attribute, m.second} {
				if attribute != "" {
					assert.Contains(t, metric.Attributes, attribute, name)
				}
			}
		}
	}
	_, known := catalog.ByName(workloads)
	assert.True(t, known)
}

func TestPartitionsAndSharedGPUsAreMarked(t *testing.T) {
	t.Parallel()
	for sharing, want := range map[string]gpu.Sharing{
		"none": gpu.Unused, "exclusive": gpu.Exclusive, "shared": gpu.Shared, "partition": gpu.Partitioned, "partitioned": gpu.Partitioned,
	} {
		reader := new(Reader)
		reader.Read(exported(gpuPoint{workloads, false, 1, []string{"vllm.accelerator.sharing", sharing}}))
		assert.Equal(t, want, reader.Accelerators().Batches[0].Readings[0].Sharing, sharing)
	}
	reader := new(Reader)
	reader.Read(exported(gpuPoint{"hw.gpu.memory.usage", false, 1, []string{"hw.parent", "GPU-0"}}))
	assert.Equal(t, gpu.Partitioned, reader.Accelerators().Batches[0].Readings[0].Sharing)
	reader.Read(pmetric.NewMetrics())
	assert.Empty(t, reader.Accelerators().Sources, "nothing is left of the request before")
}

// A resource has at most 128 GPUs, and they have at most 128 times in a request; points of more are counted.
func TestManyGPUsOfAResource(t *testing.T) {
	t.Parallel()
	var points []gpuPoint
	for i := range 1000 {
		points = append(points, gpuPoint{"hw.power", false, 1, []string{"hw.id", strconv.Itoa(i)}})
	}
	reader := new(Reader)
	reader.Read(exported(points...))
	all := reader.Accelerators()
	require.Len(t, all.Batches, 1)
	assert.Len(t, all.Batches[0].Readings, 128)
	assert.Equal(t, 872, all.Excess)
	metrics := exported(points...)
	for i, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		m.Gauge().DataPoints().At(0).SetTimestamp(pcommon.Timestamp(1 + i))
	}
	reader.Read(metrics)
	assert.Equal(t, 872, reader.Accelerators().Excess)
}
