package vllmprocessor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

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
	var seconds, hot float64
	read := receiving(t, "", func(config *vllmreceiver.Config) { config.Source = "dcgm" })
	p := run(t, createDefaultConfig().(*Config))
	server := steady("vllm-0:8000", noon)
	server.every = 30 * time.Second
	var out pmetric.Metrics
	pass := func(scrapes int, heat float64) {
		for range scrapes {
			seconds += 30
			hot += heat
			metrics := inPod(server.scrape(), "k8s.namespace.name", "chat", "k8s.pod.name", "chat-0")
			p.at = server.at
			_, err := p.process(t.Context(), read(answer{at: server.at, body: []byte(exporterBody(seconds, hot))}))
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
