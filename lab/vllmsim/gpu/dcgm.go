package gpu

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The groups of families that dcgm-exporter has off by default.
const (
	// ThrottleTime are counters of the time in which a GPU was slowed down.
	ThrottleTime = "throttle_time"
	// ThrottleReasons is why the clock is low now.
	ThrottleReasons = "throttle_reasons"
	// Windows are counts over a sliding window.
	Windows = "windows"
	// ECC are errors of the memory, LinkErrors those of NVLink.
	ECC        = "ecc"
	LinkErrors = "link_errors"
	// Limits are the power limit and the greatest clock.
	Limits = "limits"
)

// Groups are all of them.
func Groups() []string {
	return []string{ThrottleTime, ThrottleReasons, Windows, ECC, LinkErrors, Limits}
}

// family is a family of dcgm-exporter with the number of a card.
type family struct {
	name, kind, help string
	// group is empty for those that are on by default.
	group string
	// whole is a number without decimal places.
	whole bool
	value func(e *Exporter, card int, s *engine.DeviceState) float64
}

func state(read func(s *engine.DeviceState) float64) func(*Exporter, int, *engine.DeviceState) float64 {
	return func(_ *Exporter, _ int, s *engine.DeviceState) float64 { return read(s) }
}

func constant(v float64) func(*Exporter, int, *engine.DeviceState) float64 {
	return func(*Exporter, int, *engine.DeviceState) float64 { return v }
}

func shareOf(seconds func(*engine.DeviceState) float64, scale float64) func(*Exporter, int, *engine.DeviceState) float64 {
	return func(e *Exporter, card int, _ *engine.DeviceState) float64 { return scale * e.share(card, seconds) }
}

const (
	gauge, counter = "gauge", "counter"
	nanoseconds    = 1e9
)

// families are those of the model, in the order of the names: dcgm-exporter's order is that of a
// Go map and changes.
var families = []family{
	{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", gauge, "Current clock event reasons (bitmask of DCGM_CLOCKS_EVENT_REASON_*)", ThrottleReasons, true, state(func(s *engine.DeviceState) float64 { return float64(s.Reasons) })},
	{"DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", counter, "Throttling duration due to board limit constraints (in ns).", ThrottleTime, true, constant(0)},
	{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", counter, "Number of remapped rows for correctable errors", "", true, state(func(s *engine.DeviceState) float64 { return s.CorrectableRows })},
	{"DCGM_FI_DEV_DEC_UTIL", gauge, "Decoder utilization (in %).", "", true, constant(0)},
	{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", counter, "Total number of double-bit volatile ECC errors.", ECC, true, state(func(s *engine.DeviceState) float64 { return s.Uncorrected })},
	{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", counter, "Total number of single-bit volatile ECC errors.", ECC, true, state(func(s *engine.DeviceState) float64 { return s.Corrected })},
	{"DCGM_FI_DEV_ENC_UTIL", gauge, "Encoder utilization (in %).", "", true, constant(0)},
	{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", gauge, "Effective power limit that the driver enforces (in W)", Limits, false, state(func(s *engine.DeviceState) float64 { return s.Limit })},
	{"DCGM_FI_DEV_FB_FREE", gauge, "Framebuffer memory free (in MiB).", "", true, func(e *Exporter, card int, _ *engine.DeviceState) float64 {
		c := &e.cards[card]
		return c.MemoryMiB - c.UsedMiB - reservedMiB
	}},
	{"DCGM_FI_DEV_FB_RESERVED", gauge, "Framebuffer memory reserved (in MiB).", "", true, constant(reservedMiB)},
	{"DCGM_FI_DEV_FB_USED", gauge, "Framebuffer memory used (in MiB).", "", true, func(e *Exporter, card int, _ *engine.DeviceState) float64 { return e.cards[card].UsedMiB }},
	{"DCGM_FI_DEV_GPU_TEMP", gauge, "GPU temperature (in C).", "", true, state(func(s *engine.DeviceState) float64 { return s.Degrees })},
	{"DCGM_FI_DEV_GPU_UTIL", gauge, "GPU utilization (in %).", "", true, shareOf(busy, 100)},
	{"DCGM_FI_DEV_LOW_UTIL_VIOLATION", counter, "Throttling duration due to low utilization (in ns).", ThrottleTime, true, constant(0)},
	{"DCGM_FI_DEV_MAX_SM_CLOCK", gauge, "Maximum supported SM clock (in MHz)", Limits, true, func(e *Exporter, card int, _ *engine.DeviceState) float64 { return e.cards[card].MaxMHz }},
	{"DCGM_FI_DEV_MEMORY_TEMP", gauge, "Memory temperature (in C).", "", true, state(func(s *engine.DeviceState) float64 { return s.MemoryDegrees })},
	{"DCGM_FI_DEV_MEM_CLOCK", gauge, "Memory clock frequency (in MHz).", "", true, state(func(s *engine.DeviceState) float64 { return s.MemoryMHz })},
	{"DCGM_FI_DEV_MEM_COPY_UTIL", gauge, "Memory utilization (in %).", "", true, shareOf(reading, 100)},
	{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", counter, "Total number of PCIe retries.", "", true, state(func(s *engine.DeviceState) float64 { return s.HostReplays })},
	{"DCGM_FI_DEV_POWER_USAGE", gauge, "Power draw (in W).", "", false, state(func(s *engine.DeviceState) float64 { return s.Watts })},
	{"DCGM_FI_DEV_POWER_VIOLATION", counter, "Throttling duration due to power constraints (in ns).", ThrottleTime, true, state(func(s *engine.DeviceState) float64 { return nanoseconds * s.PowerSlowed })},
	{"DCGM_FI_DEV_RELIABILITY_VIOLATION", counter, "Throttling duration due to reliability constraints (in ns).", ThrottleTime, true, constant(0)},
	{"DCGM_FI_DEV_ROW_REMAP_FAILURE", gauge, "Whether remapping of rows has failed", "", true, constant(0)},
	{"DCGM_FI_DEV_SM_CLOCK", gauge, "SM clock frequency (in MHz).", "", true, state(func(s *engine.DeviceState) float64 { return s.MHz })},
	{"DCGM_FI_DEV_SYNC_BOOST_VIOLATION", counter, "Throttling duration due to sync-boost constraints (in ns).", ThrottleTime, true, constant(0)},
	{"DCGM_FI_DEV_THERMAL_VIOLATION", counter, "Throttling duration due to thermal constraints (in ns).", ThrottleTime, true, state(func(s *engine.DeviceState) float64 { return nanoseconds * s.ThermalSlowed })},
	{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", counter, "Total energy consumption since boot (in mJ).", "", true, state(func(s *engine.DeviceState) float64 { return 1000 * (bootJoules + s.Joules) })},
	{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", counter, "Number of remapped rows for uncorrectable errors", "", true, state(func(s *engine.DeviceState) float64 { return s.UncorrectableRows })},
	{"DCGM_FI_DEV_VGPU_LICENSE_STATUS", gauge, "vGPU License status", "", true, constant(0)},
	{"DCGM_FI_DEV_XID_ERRORS", gauge, "Value of the last XID error encountered.", "", true, state(func(s *engine.DeviceState) float64 { return float64(s.LastXID) })},
	{"DCGM_FI_PROF_DRAM_ACTIVE", gauge, "Ratio of cycles the device memory interface is active sending or receiving data.", "", false, shareOf(reading, 1)},
	{"DCGM_FI_PROF_GR_ENGINE_ACTIVE", gauge, "Ratio of time the graphics engine is active.", "", false, shareOf(busy, 1)},
	{"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", gauge, "Ratio of cycles the tensor (HMMA) pipe is active.", "", false, shareOf(tensor, 1)},
}

// linkFamilies are of the link between GPUs, and absent on nodes without one.
var linkFamilies = []family{
	{"DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", counter, "Total number of NVLink bandwidth counters for all lanes", "", true, state(func(s *engine.DeviceState) float64 { return s.LinkBytes / 1024 })},
	{"DCGM_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL", counter, "Total number of NVLink data CRC errors.", LinkErrors, true, constant(0)},
	{"DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", counter, "Total number of NVLink flow-control CRC errors.", LinkErrors, true, state(func(s *engine.DeviceState) float64 { return s.LinkErrors })},
	{"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL", counter, "Total number of NVLink recovery errors.", LinkErrors, true, state(func(s *engine.DeviceState) float64 { return s.LinkRecoveries })},
	{"DCGM_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", counter, "Total number of NVLink retries.", LinkErrors, true, state(func(s *engine.DeviceState) float64 { return s.LinkReplays })},
}

const (
	reservedMiB = 600
	// bootJoules is what a card had used before the story: the counter is one since the driver
	// was loaded.
	bootJoules = 1.23e8
	driver     = "570.133.20"
	model      = "NVIDIA H100 80GB HBM3"
)

// dcgm writes the body of dcgm-exporter.
func (e *Exporter) dcgm() []byte {
	var out strings.Builder
	all := families
	if len(e.cards) > 1 {
		all = append(slices.Clone(families), linkFamilies...)
	}
	for i := range all {
		f := &all[i]
		if f.group != "" && !slices.Contains(e.cfg.Families, f.group) {
			continue
		}
		head(&out, f.name, f.kind, f.help)
		for card := range e.cards {
			s := e.latest(card)
			value := number(f.value(e, card, &s), f.whole)
			more := ""
			if f.name == "DCGM_FI_DEV_XID_ERRORS" && !e.cfg.OldLabels {
				more = xidLabels(s.LastXID)
			}
			e.lines(&out, f.name, card, more, value)
		}
	}
	if slices.Contains(e.cfg.Families, Windows) {
		e.clockEvents(&out)
		e.xids(&out)
	}
	return []byte(out.String())
}

func head(out *strings.Builder, name, kind, help string) {
	fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// number writes a value as the exporter does: integers plainly, all others with six places.
func number(v float64, whole bool) string {
	if whole {
		return strconv.FormatFloat(math.Floor(v), 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'f', 6, 64)
}

// lines writes the series of a card, of which there are two where it is shared.
func (e *Exporter) lines(out *strings.Builder, name string, card int, more, value string) {
	c := &e.cards[card]
	host := "hostname"
	if e.cfg.OldLabels {
		host = "Hostname"
	}
	common := fmt.Sprintf("gpu=\"%d\",UUID=%q,pci_bus_id=\"00000000:%02X:00.0\",device=\"nvidia%d\",modelName=%q",
		c.Index, c.UUID, 0x18+c.Index*0x10, c.Index, model)
	rest := fmt.Sprintf(",%s=%q,DCGM_FI_DRIVER_VERSION=%q%s", host, e.host, driver, more)
	other := Workload{Namespace: "batch", Pod: "embeddings-0", Container: "embeddings", UID: "e5a1c0de-0000-4000-8000-000000000001"}
	switch e.cfg.Sharing {
	case TimeSlicing:
		fmt.Fprintf(out, "%s{%s%s%s,vgpu=\"0\"} %s\n", name, common, rest, e.pod(c.Workload), value)
		fmt.Fprintf(out, "%s{%s%s%s,vgpu=\"1\"} %s\n", name, common, rest, e.pod(other), value)
	case MIG:
		fmt.Fprintf(out, "%s{%s,GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"1\"%s%s} %s\n", name, common, rest, e.pod(c.Workload), value)
		fmt.Fprintf(out, "%s{%s,GPU_I_PROFILE=\"3g.40gb\",GPU_I_ID=\"2\"%s%s} %s\n", name, common, rest, e.pod(other), value)
	default:
		fmt.Fprintf(out, "%s{%s%s%s} %s\n", name, common, rest, e.pod(c.Workload), value)
	}
}

func (e *Exporter) pod(w Workload) string {
	if e.cfg.Bare {
		return ""
	}
	out := fmt.Sprintf(",container=%q,namespace=%q,pod=%q", w.Container, w.Namespace, w.Pod)
	if e.cfg.PodUID {
		out += fmt.Sprintf(",pod_uid=%q", w.UID)
	}
	return out
}

func xidLabels(code int) string {
	text := "Unknown Error"
	switch code {
	case 0:
		text = "No Error"
	case 63:
		text = "ECC page retirement or row remapping recording event"
	}
	return fmt.Sprintf(",err_code=\"%d\",err_msg=%q", code, text)
}

// reasonNames are the bits of the reasons by their names in the windows.
var reasonNames = []struct {
	bit  int
	name string
}{
	{engine.ReasonIdle, "gpu_idle"},
	{engine.ReasonClocksSetting, "clocks_setting"},
	{engine.ReasonPowerCap, "power_cap"},
	{engine.ReasonThermal, "sw_thermal"},
}

const window = "window_size_in_ms=\"300000\""

// clockEvents are the numbers of samples in the window that show a reason. It is called a
// counter, and falls.
func (e *Exporter) clockEvents(out *strings.Builder) {
	const name = "DCGM_EXP_CLOCK_EVENTS_COUNT"
	head(out, name, counter, "reported clock events")
	for card := range e.cards {
		seen := false
		for _, reason := range reasonNames {
			n := 0
			for _, s := range e.windowed() {
				if s.cards[card].Reasons&reason.bit != 0 {
					n++
				}
			}
			if n > 0 {
				seen = true
				e.lines(out, name, card, fmt.Sprintf(",clock_event=%q,%s", reason.name, window), strconv.Itoa(n))
			}
		}
		if !seen {
			e.lines(out, name, card, ","+window, "0")
		}
	}
}

// xids are the errors of the driver in the window.
func (e *Exporter) xids(out *strings.Builder) {
	const name = "DCGM_EXP_XID_ERRORS_COUNT"
	head(out, name, counter, "reported XIDs during last window")
	for card := range e.cards {
		all := e.windowed()
		first, last := all[0].cards[card], e.latest(card)
		if n := last.XIDs - first.XIDs; n > 0 {
			e.lines(out, name, card, fmt.Sprintf(",%s,xid=\"%d\"", window, last.LastXID), number(n, true))
			continue
		}
		e.lines(out, name, card, ","+window, "0")
	}
}
