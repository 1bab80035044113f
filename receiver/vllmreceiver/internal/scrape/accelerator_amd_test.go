package scrape

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// amdBody is a body of AMD's exporter: everything is a gauge, and empty labels mean that
// there is no workload.
func amdBody(prefix string, values map[string]float64) string {
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "# HELP %s%s Words.\n# TYPE %s%s gauge\n", prefix, family, prefix, family)
		for i, pod := range []string{"llama-0", ""} {
			namespace, container := "", ""
			if pod != "" {
				namespace, container = "serving", "vllm"
			}
			fmt.Fprintf(&b, `%s%s{card_model="MI300X",container="%s",deployment_mode="baremetal",gpu_compute_partition_type="spx",gpu_id="%d",gpu_memory_partition_type="nps1",gpu_partition_id="0",hostname="node-2",job_id="",job_partition="",job_user="",namespace="%s",pod="%s",serial_number="SN%d"} %v`+"\n",
				prefix, family, container, i, namespace, pod, i, values[family]+float64(i))
		}
	}
	return b.String()
}

func TestTheNumbersOfAMDsExporter(t *testing.T) {
	values := map[string]float64{
		"gpu_package_power": 500, "gpu_power_usage": 510, "gpu_average_package_power": 490, "gpu_energy_consumed": 8e6,
		"gpu_gfx_activity": 57, "gpu_umc_activity": 35, "gpu_used_vram": 1000, "gpu_total_vram": 196608, "gpu_junction_temperature": 71,
		"gpu_ecc_uncorrect_total": 2, "pcie_replay_count": 4, "pcie_bandwidth": 8, "gpu_health": 0,
		"gpu_violation_ppt_residency_accumulated": 100, "gpu_violation_ppt_residency_percentage": 14, "gpu_violation_current_accumulated_counter": 900,
	}
	mib := float64(1 << 20)
	want := func(id string, i float64) map[string]float64 {
		return map[string]float64{
			"hw.power " + id:  510 + i,
			"hw.energy " + id: (8e6 + i) / 1e6,
			"hw.gpu.utilization " + id + " hw.gpu.task=general":                   (57 + i) / 100,
			"vllm.accelerator.activity " + id + " component=memory_copy":          (35 + i) / 100,
			"hw.gpu.memory.usage " + id:                                           (1000 + i) * mib,
			"hw.gpu.memory.limit " + id:                                           (196608 + i) * mib,
			"hw.temperature " + id + " hw.sensor_location=junction":               71 + i,
			"hw.errors " + id + " error.type=uncorrected":                         2 + i,
			"vllm.accelerator.link.errors " + id + " error.type=replay link=pcie": 4 + i,
			"vllm.accelerator.bandwidth " + id + " link=pcie":                     (8 + i) * 1e6 / 8,
			"vllm.accelerator.healthy " + id:                                      i,
			"vllm.accelerator.throttle.residency " + id + " reason=power":         100 + i,
			"vllm.accelerator.throttle.ratio " + id + " reason=power":             (14 + i) / 100,
			"vllm.accelerator.throttle.reference " + id:                           900 + i,
		}
	}
	for _, prefix := range []string{"", "amd_"} {
		r := newRig(t)
		got := pointsByResource(t, r.scrape(amdBody(prefix, values)))
		assert.Len(t, got, 2)
		for pod, w := range map[string]map[string]float64{"llama-0": want("SN0", 0), "": want("SN1", 1)} {
			values := map[string]float64{}
			for key, p := range got[pod] {
				if !strings.HasPrefix(key, "vllm.up") && !strings.HasPrefix(key, "vllm.scrape.") && !strings.HasPrefix(key, "vllm.accelerator.workloads") {
					values[key] = p.DoubleValue()
				}
			}
			assert.Equal(t, w, values, "pod %q", pod)
		}
		assert.Equal(t, "AMD", textOf(got["llama-0"]["hw.power SN0"].Attributes(), "hw.vendor"))
		assert.Equal(t, "MI300X", textOf(got["llama-0"]["hw.power SN0"].Attributes(), "hw.model"))
	}
}

// limits::series counts the points of all resources together.
func TestTheSeriesOfAnExporterAreLimited(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Limits.Series = 80 })
	points := 0
	for _, of := range pointsByResource(t, r.scrape(nvidia(fourGPUs, numberFor))) {
		for key := range of {
			if !strings.HasPrefix(key, "vllm.up") && !strings.HasPrefix(key, "vllm.scrape.") {
				points++
			}
		}
	}
	assert.LessOrEqual(t, points, 80)
	assert.Positive(t, points)
	assert.NotEmpty(t, r.logged("warn"))
}

// A hostile exporter cannot make more resources than the limit.
func TestTheWorkloadsOfAHostileExporter(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "DCGM_FI_DEV_POWER_USAGE{UUID=\"GPU-%d\",pod=\"p%d\",namespace=\"n\"} NaN\n", i, i)
	}
	r := newRig(t)
	for range 3 {
		assert.LessOrEqual(t, r.scrape(b.String()).ResourceMetrics().Len(), 257)
	}
	assert.Len(t, r.logged("warn"), 1)
}

// A family that the catalogue does not have can be switched on by its name.
func TestAFamilyOfAnExporterThatIsSwitchedOn(t *testing.T) {
	on := true
	r := newRig(t, func(c *Config) {
		c.Metrics = map[string]MetricConfig{"vllm.accelerator.dcgm.fi_dev_fan_speed": {Enabled: &on}, "hw.power": {Enabled: new(bool)}}
	})
	body := "# TYPE DCGM_FI_DEV_FAN_SPEED gauge\n" + `DCGM_FI_DEV_FAN_SPEED{gpu="0",UUID="GPU-a",pod="p"} 30` + "\n" +
		`DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",pod="p"} 30` + "\n"
	got := pointsByResource(t, r.scrape(body))["p"]
	assert.Equal(t, 30.0, got["vllm.accelerator.dcgm.fi_dev_fan_speed GPU-a"].DoubleValue())
	assert.NotContains(t, got, "hw.power GPU-a")
}

// With the names of the wire, the labels stay and nothing is split.
func TestAnExporterUnderItsOwnNames(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Naming = NamingWire })
	metrics := r.scrape(energies("p", "5000"))
	require.Equal(t, 1, metrics.ResourceMetrics().Len())
	assert.Equal(t, 5e6, totalOf(metrics, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "pod", "p").value)
}

// Numbers that no GPU has pass, or are dropped; none of them breaks a batch.
func TestNumbersThatNoGPUHas(t *testing.T) {
	for _, value := range []string{"NaN", "+Inf", "-Inf", "-1", "1e308", "18446744073709551615"} {
		r := newRig(t)
		metrics := r.scrape(nvidia(fourGPUs, func(string, int) string { return value }))
		require.Positive(t, metrics.DataPointCount(), value)
		for _, of := range pointsByResource(t, metrics) {
			for key, p := range of {
				assert.False(t, strings.HasPrefix(key, energy) && math.IsNaN(p.DoubleValue()), "a counter is never NaN")
			}
		}
	}
}

// The end of a target ends the series of its workloads.
func TestTheEndOfAnExporterEndsItsWorkloads(t *testing.T) {
	r := newRig(t)
	points := r.scrape(nvidia(fourGPUs, numberFor)).DataPointCount()
	ends := pmetric.NewMetrics()
	r.scraper.emitter.End(r.now, ends)
	assert.Equal(t, points, ends.DataPointCount())
	again := pmetric.NewMetrics()
	r.scraper.emitter.End(r.now, again)
	assert.Zero(t, again.DataPointCount())
}
