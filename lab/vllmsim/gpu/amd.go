package gpu

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// amdFamilies are those of AMD's exporter that the model has, by their names without a prefix.
// All are gauges on the wire, also what only ever grows.
var amdFamilies = []struct {
	name, help, labels string
	value              func(e *Exporter, card int, s *engine.DeviceState) float64
}{
	{"gpu_clock", "List of current GPU clock frequencies in MHz", `clock_index="0",clock_type="system",`, state(func(s *engine.DeviceState) float64 { return s.MHz })},
	{"gpu_ecc_correct_total", "Total Correctable error count", "", state(func(s *engine.DeviceState) float64 { return s.Corrected })},
	{"gpu_ecc_uncorrect_total", "Total Uncorrectable error count", "", state(func(s *engine.DeviceState) float64 { return s.Uncorrected })},
	{"gpu_energy_consumed", "Accumulated energy consumed by the GPU in uJ", "", state(func(s *engine.DeviceState) float64 { return 1e6 * (bootJoules + s.Joules) })},
	{"gpu_gfx_activity", "Graphics engine usage in Percentage (0-100)", "", shareOf(busy, 100)},
	{"gpu_junction_temperature", "Current junction/hotspot temperature in Celsius", "", state(func(s *engine.DeviceState) float64 { return s.Degrees })},
	{"gpu_max_clock", "Maximum clock frequency in MHz", `clock_index="0",clock_type="system",`, func(e *Exporter, card int, _ *engine.DeviceState) float64 { return e.cards[card].MaxMHz }},
	{"gpu_memory_temperature", "Current memory temperature in Celsius", "", state(func(s *engine.DeviceState) float64 { return s.MemoryDegrees })},
	{"gpu_package_power", "Current socket power in Watts", "", state(func(s *engine.DeviceState) float64 { return s.Watts })},
	{"gpu_total_vram", "Total VRAM memory of the GPU (in MB)", "", func(e *Exporter, card int, _ *engine.DeviceState) float64 { return e.cards[card].MemoryMiB }},
	{"gpu_umc_activity", "Memory engine usage in Percentage (0-100)", "", shareOf(reading, 100)},
	{"gpu_used_vram", "Used VRAM memory of the GPU (in MB)", "", func(e *Exporter, card int, _ *engine.DeviceState) float64 { return e.cards[card].UsedMiB }},
	{"gpu_violation_current_accumulated_counter", "current accumulated violation counter", "", func(e *Exporter, _ int, _ *engine.DeviceState) float64 {
		return amdTicks * e.samples[len(e.samples)-1].at
	}},
	{"gpu_violation_ppt_residency_accumulated", "package power tracking accumulated violation counter", "", state(func(s *engine.DeviceState) float64 { return amdTicks * s.PowerSlowed })},
	{"gpu_violation_ppt_residency_percentage", "package power tracking percentage violation counter", "", shareOf(func(s *engine.DeviceState) float64 { return s.PowerSlowed }, 100)},
	{"gpu_violation_socket_thermal_residency_accumulated", "socket thermal accumulated violation counter", "", state(func(s *engine.DeviceState) float64 { return amdTicks * s.ThermalSlowed })},
	{"gpu_violation_socket_thermal_residency_percentage", "socket thermal percentage violation counter", "", shareOf(func(s *engine.DeviceState) float64 { return s.ThermalSlowed }, 100)},
	{"pcie_replay_count", "Total number of PCIe replays", "", state(func(s *engine.DeviceState) float64 { return s.HostReplays })},
}

// amdTicks is how often in a second the firmware looks whether it slows the GPU down.
const amdTicks = 1000

// amd writes the body of AMD's device metrics exporter.
func (e *Exporter) amd() []byte {
	var out strings.Builder
	for _, f := range amdFamilies {
		name := "amd_" + f.name
		head(&out, name, gauge, f.help)
		for card := range e.cards {
			c, s := &e.cards[card], e.latest(card)
			w := c.Workload
			if e.cfg.Bare {
				w = Workload{}
			}
			uid := ""
			if e.cfg.PodUID {
				uid = fmt.Sprintf(",pod_uuid=%q", w.UID)
			}
			fmt.Fprintf(&out, "%s{%scard_model=\"MI300X\",container=%q,deployment_mode=\"baremetal\",gpu_compute_partition_type=\"spx\","+
				"gpu_id=\"%d\",gpu_memory_partition_type=\"nps1\",gpu_partition_id=\"0\",gpu_uuid=%q,hostname=%q,job_id=\"\",job_partition=\"\",job_user=\"\","+
				"namespace=%q,pod=%q%s,serial_number=\"6923000%d\"} %s\n",
				name, f.labels, w.Container, c.Index, c.UUID, e.host, w.Namespace, w.Pod, uid, c.Index,
				strconv.FormatFloat(f.value(e, card, &s), 'g', -1, 64))
		}
	}
	return []byte(out.String())
}
