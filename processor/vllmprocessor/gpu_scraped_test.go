package vllmprocessor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// exporterBody is what dcgm-exporter shows of one GPU of a pod: after so many seconds, of which heat
// limited the clock for hot.
func exporterBody(seconds, hot float64) string {
	labels := `gpu="0",UUID="GPU-1",pci_bus_id="00000000:01:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",hostname="node-1",container="vllm",namespace="chat",pod="chat-0"`
	var b strings.Builder
	for _, family := range []struct {
		name, kind string
		value      float64
	}{
		{"DCGM_FI_DEV_SM_CLOCK", "gauge", 1980},
		{"DCGM_FI_DEV_POWER_USAGE", "gauge", 500},
		{"DCGM_FI_DEV_GPU_UTIL", "gauge", 90},
		{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", 1e9 + 500e3*seconds},
		{"DCGM_FI_DEV_FB_USED", "gauge", 71680},
		{"DCGM_FI_DEV_XID_ERRORS", "gauge", 0},
		{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", 0},
		{"DCGM_FI_DEV_POWER_VIOLATION", "counter", 4e12},
		{"DCGM_FI_DEV_THERMAL_VIOLATION", "counter", 7e12 + 1e9*hot},
		{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "gauge", 0},
	} {
		fmt.Fprintf(&b, "# HELP %s help\n# TYPE %s %s\n%s{%s} %f\n", family.name, family.name, family.kind, family.name, labels, family.value)
	}
	return b.String()
}

// What the receiver makes of the bodies of dcgm-exporter is what the processor understands: the
// GPU joins its pod, heat is the detail, and the energy is that of the tokens.
func TestTheProcessorUnderstandsTheReceiver(t *testing.T) {
	t.Parallel()
	var seconds, hot atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(exporterBody(float64(seconds.Load()), float64(hot.Load()))))
	}))
	t.Cleanup(web.Close)
	factory := vllmreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"endpoint": web.URL, "collection_interval": "50ms", "timeout": "20s", "initial_delay": "0s", "source": "dcgm",
	}).Unmarshal(config))
	sink := new(consumertest.MetricsSink)
	receiver, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), config, sink)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, receiver.Shutdown(t.Context())) })
	// scrape returns a scrape that began after the body changed, as of a time.
	scrape := func(at time.Time) pmetric.Metrics {
		seen := len(sink.AllMetrics())
		var newest pmetric.Metrics
		require.Eventually(t, func() bool {
			all := sink.AllMetrics()
			if len(all) < seen+2 {
				return false
			}
			newest = pmetric.NewMetrics()
			all[len(all)-1].CopyTo(newest)
			return newest.DataPointCount() > 15
		}, time.Minute, 10*time.Millisecond)
		setTimes(newest, at)
		return newest
	}
	p := run(t, createDefaultConfig().(*Config))
	server := steady("vllm-0:8000", noon)
	server.every = 30 * time.Second
	var out pmetric.Metrics
	pass := func(scrapes int, heat int64) {
		for range scrapes {
			seconds.Add(30)
			hot.Add(heat)
			metrics := inPod(server.scrape(), "k8s.namespace.name", "chat", "k8s.pod.name", "chat-0")
			p.at = server.at
			_, err := p.process(t.Context(), scrape(server.at))
			require.NoError(t, err)
			out, err = p.process(t.Context(), metrics)
			require.NoError(t, err)
		}
	}
	pass(40, 0)
	got := pointsByName(out)
	for metric, want := range map[string]float64{
		"vllm.gpu.utilization": 0.9, "vllm.gpu.memory_usage": 70 << 30, "vllm.gpu.power": 500, "vllm.energy_per_generated_token": 5,
	} {
		if assert.Len(t, got[metric], 1, metric) {
			assert.InDelta(t, want, got[metric][0].DoubleValue(), 1e-6*want, metric)
		}
	}
	server.gap = 0.05
	pass(16, 27)
	assert.Equal(t, []string{"thermal"}, detailsOf(out))
}

// setTimes sets the times of all points.
func setTimes(metrics pmetric.Metrics, at time.Time) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				points := pmetric.NewNumberDataPointSlice()
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				default:
				}
				for _, p := range points.All() {
					p.SetTimestamp(pcommon.NewTimestampFromTime(at))
					p.SetStartTimestamp(0)
				}
			}
		}
	}
}
