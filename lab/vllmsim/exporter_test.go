package vllmsim

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// cards is a server with simulated GPUs on its own clock.
func cards(t *testing.T, gpus gpu.Config, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{Hardware: "8b-h100", GPUs: &gpus, Workload: new(engine.Chat(6))}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

// named is a configuration with the names of pods and GPUs that it has by default.
var named = gpu.Config{Name: "vllm", Namespace: "chat"}

// exported reads a body with a parser that is not the project's.
func exported(t *testing.T, s *Server, i int) map[string]*dto.MetricFamily {
	t.Helper()
	body, contentType, err := s.Exporters()[i].Body()
	require.NoError(t, err)
	assert.Contains(t, contentType, "text/plain; version=0.0.4")
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(t, err)
	return families
}

// value is that of the first series of a family with all labels.
func value(t *testing.T, families map[string]*dto.MetricFamily, name string, labels ...string) float64 {
	t.Helper()
	f := families[name]
	require.NotNil(t, f, name)
	for _, m := range f.GetMetric() {
		have := map[string]string{}
		for _, l := range m.GetLabel() {
			have[l.GetName()] = l.GetValue()
		}
		all := true
		for i := 0; i < len(labels); i += 2 {
			all = all && have[labels[i]] == labels[i+1]
		}
		if !all {
			continue
		}
		if f.GetType() == dto.MetricType_COUNTER {
			return m.GetCounter().GetValue()
		}
		return m.GetGauge().GetValue()
	}
	t.Fatalf("%s has no series with %v", name, labels)
	return math.NaN()
}

// As shipped, dcgm-exporter has none of the families that would say why a GPU is slow.
func TestTheShippedExporterHasNoViolations(t *testing.T) {
	s := cards(t, gpu.Config{}, nil)
	s.Advance(2 * time.Minute)
	families := exported(t, s, 0)
	for _, off := range []string{
		"DCGM_FI_DEV_POWER_VIOLATION", "DCGM_FI_DEV_THERMAL_VIOLATION", "DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_EXP_CLOCK_EVENTS_COUNT",
		"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
	} {
		assert.NotContains(t, families, off)
	}
	assert.InDelta(t, 100, value(t, families, "DCGM_FI_DEV_GPU_UTIL", "gpu", "0"), 5)
	assert.InDelta(t, 1980, value(t, families, "DCGM_FI_DEV_SM_CLOCK", "hostname", "node-of-vllm-0", "pod", "vllm-0", "namespace", "chat"), 0)
	assert.Equal(t, dto.MetricType_COUNTER, families["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"].GetType())
	all := exported(t, cards(t, gpu.Config{Families: gpu.Groups()}, nil), 0)
	assert.Contains(t, all, "DCGM_FI_DEV_POWER_VIOLATION")
	assert.Equal(t, dto.MetricType_COUNTER, all["DCGM_EXP_CLOCK_EVENTS_COUNT"].GetType(), "it is called a counter")
}

// Values change with samples only, however often they are read.
func TestValuesChangeWithSamplesOnly(t *testing.T) {
	s := cards(t, gpu.Config{Families: gpu.Groups()}, nil)
	var bodies []string
	for range 13 { // Every 10 s, up to 120 s.
		body, _, err := s.Exporters()[0].Body()
		require.NoError(t, err)
		bodies = append(bodies, string(body))
		s.Advance(10 * time.Second)
	}
	for i := 1; i < len(bodies); i++ {
		if i%3 == 0 {
			assert.NotEqual(t, bodies[i-1], bodies[i], "at %d s", 10*i)
		} else {
			assert.Equal(t, bodies[i-1], bodies[i], "at %d s", 10*i)
		}
	}
	once := cards(t, gpu.Config{Families: gpu.Groups()}, nil)
	once.Advance(120 * time.Second)
	body, _, err := once.Exporters()[0].Body()
	require.NoError(t, err)
	assert.Equal(t, bodies[12], string(body))
}

// An energy counter is in millijoules, and agrees with the mean of the power.
func TestTheEnergyIsThatOfTheEngine(t *testing.T) {
	s := cards(t, gpu.Config{}, func(c *Config) { c.Workload = new(engine.Chat(0)) })
	s.Advance(60 * time.Second)
	before := value(t, exported(t, s, 0), "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")
	s.Advance(600 * time.Second)
	after := exported(t, s, 0)
	assert.InDelta(t, 70, (value(t, after, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION")-before)/1000/600, 0.01, "a GPU without work")
	assert.InDelta(t, 70, value(t, after, "DCGM_FI_DEV_POWER_USAGE"), 0.01)
	assert.Zero(t, value(t, after, "DCGM_FI_DEV_GPU_UTIL"))
}

// The counters of the driver are the time in which the GPU was slowed down; the window falls
// again, and the last XID stays.
func TestWhatGoesOnAndWhatStays(t *testing.T) {
	s := cards(t, gpu.Config{Families: gpu.Groups()}, func(c *Config) {
		c.Changes = []engine.Change{
			{At: 60, Parameter: engine.ParamPowerLimit, Value: 0.25},
			{At: 60, Parameter: engine.ParamMemoryErrors, Value: 0.3},
			{At: 245, Parameter: engine.ParamPowerLimit, Value: 1},
			{At: 245, Parameter: engine.ParamMemoryErrors, Value: 0},
		}
	})
	s.Advance(time.Minute)
	assert.Zero(t, value(t, exported(t, s, 0), "DCGM_FI_DEV_POWER_VIOLATION"))
	assert.Zero(t, value(t, exported(t, s, 0), "DCGM_FI_DEV_XID_ERRORS"))
	s.Advance(3 * time.Minute)
	during := exported(t, s, 0)
	slowed := value(t, during, "DCGM_FI_DEV_POWER_VIOLATION") / 1e9
	assert.InDelta(t, 180, slowed, 20, "nearly all the time")
	assert.InDelta(t, 6, value(t, during, "DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event", "power_cap"), 1, "in samples of 30 s")
	assert.InDelta(t, 63, value(t, during, "DCGM_FI_DEV_XID_ERRORS", "err_code", "63"), 0)
	assert.Positive(t, value(t, during, "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS"))
	assert.InDelta(t, 175, value(t, during, "DCGM_FI_DEV_ENFORCED_POWER_LIMIT"), 1e-6)
	s.Advance(10 * time.Minute)
	after := exported(t, s, 0)
	assert.InDelta(t, slowed+5, value(t, after, "DCGM_FI_DEV_POWER_VIOLATION")/1e9, 1)
	assert.Zero(t, value(t, after, "DCGM_EXP_CLOCK_EVENTS_COUNT"))
	assert.InDelta(t, 63, value(t, after, "DCGM_FI_DEV_XID_ERRORS"), 0, "it never resets")
	assert.Zero(t, value(t, after, "DCGM_EXP_XID_ERRORS_COUNT"))
}

// A process that starts again, and an exporter that does, leave the counters of the driver as they
// are.
func TestCountersOutliveRestarts(t *testing.T) {
	s := cards(t, gpu.Config{Families: gpu.Groups(), Away: []gpu.Span{{At: 200, Until: 245}}}, func(c *Config) {
		c.Changes = []engine.Change{{At: 30, Parameter: engine.ParamPowerLimit, Value: 0.25}, {At: 120, Parameter: engine.ParamPowerLimit, Value: 1}}
		c.Faults = []Fault{{Kind: FaultRestart, At: 180, Until: 300}}
	})
	s.Advance(170 * time.Second)
	before := exported(t, s, 0)
	s.Advance(50 * time.Second)
	_, _, err := s.Exporters()[0].Body()
	require.ErrorIs(t, err, errAway)
	s.Advance(40 * time.Second)
	idle := exported(t, s, 0)
	assert.Equal(t, value(t, before, "DCGM_FI_DEV_POWER_VIOLATION"), value(t, idle, "DCGM_FI_DEV_POWER_VIOLATION"))
	assert.InDelta(t, 70, value(t, idle, "DCGM_FI_DEV_POWER_USAGE"), 0.01, "there is no process")
	assert.InDelta(t, 1, value(t, idle, "DCGM_EXP_CLOCK_EVENTS_COUNT", "clock_event", "gpu_idle"), 0, "the window began anew")
	s.Advance(100 * time.Second)
	after := exported(t, s, 0)
	assert.Equal(t, value(t, before, "DCGM_FI_DEV_POWER_VIOLATION"), value(t, after, "DCGM_FI_DEV_POWER_VIOLATION"))
	assert.Greater(t, value(t, after, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), value(t, idle, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"))
}

func TestLabelsByVersionAndSharing(t *testing.T) {
	body := func(c gpu.Config, change func(*Config)) string {
		text, _, err := cards(t, c, change).Exporters()[0].Body()
		require.NoError(t, err)
		return string(text)
	}
	now := body(gpu.Config{PodUID: true}, nil)
	assert.Contains(t, now, `DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="`+named.UUID(0, 0)+`",pci_bus_id="00000000:18:00.0",device="nvidia0",`+
		`modelName="NVIDIA H100 80GB HBM3",hostname="node-of-vllm-0",DCGM_FI_DRIVER_VERSION="570.133.20",err_code="0",err_msg="No Error",`+
		`container="vllm",namespace="chat",pod="vllm-0",pod_uid="`+named.Workload(0).UID+`"} 0`)
	old := body(gpu.Config{OldLabels: true, Bare: true}, nil)
	assert.Contains(t, old, `,Hostname="node-of-vllm-0",`)
	assert.NotContains(t, old, "hostname=")
	assert.NotContains(t, old, "pod=")
	assert.NotContains(t, old, "err_code")
	for sharing, label := range map[string]string{gpu.MIG: `GPU_I_ID="2"`, gpu.TimeSlicing: `vgpu="1"`} {
		shared := body(gpu.Config{Sharing: sharing}, nil)
		assert.Contains(t, shared, label)
		assert.Equal(t, 2*strings.Count(now, "DCGM_FI_DEV_SM_CLOCK{"), strings.Count(shared, "DCGM_FI_DEV_SM_CLOCK{"))
	}
	four := body(gpu.Config{}, func(c *Config) { c.Hardware = "70b-tp4-h100" })
	assert.Equal(t, 4, strings.Count(four, "DCGM_FI_DEV_SM_CLOCK{"))
	assert.Contains(t, four, "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL{")
}

// AMD's exporter has gauges only, also for what only grows, and shows the present.
func TestAMD(t *testing.T) {
	s := cards(t, gpu.Config{Kind: gpu.AMD, PodUID: true}, func(c *Config) {
		c.Changes = []engine.Change{{At: 60, Parameter: engine.ParamPowerLimit, Value: 0.25}}
	})
	s.Advance(55 * time.Second)
	before := exported(t, s, 0)
	s.Advance(65 * time.Second)
	after := exported(t, s, 0)
	for name, f := range after {
		assert.Equal(t, dto.MetricType_GAUGE, f.GetType(), name)
	}
	increase := func(name string) float64 { return value(t, after, name) - value(t, before, name) }
	assert.InDelta(t, 60.0/65, increase("amd_gpu_violation_ppt_residency_accumulated")/increase("amd_gpu_violation_current_accumulated_counter"), 0.1)
	assert.InDelta(t, 100*60.0/65, value(t, after, "amd_gpu_violation_ppt_residency_percentage", "pod", "vllm-0", "pod_uuid", named.Workload(0).UID), 10)
	assert.Zero(t, value(t, before, "amd_gpu_violation_ppt_residency_percentage"))
	assert.LessOrEqual(t, value(t, after, "amd_gpu_package_power"), 175.1)
}

func TestTheExporterAnswersLikeOne(t *testing.T) {
	s := cards(t, gpu.Config{Away: []gpu.Span{{At: 30, Until: 60}}}, func(c *Config) { c.Targets = 2 })
	require.Len(t, s.Exporters(), 2)
	get := func(path string) int {
		w := httptest.NewRecorder()
		s.Exporters()[1].ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
		return w.Code
	}
	assert.Equal(t, http.StatusOK, get("/metrics"))
	assert.Equal(t, http.StatusOK, get("/health"))
	assert.Equal(t, http.StatusNotFound, get("/"))
	s.Advance(40 * time.Second)
	assert.Panics(t, func() { get("/metrics") })
	for want, wrong := range map[string]gpu.Config{
		"unknown exporter": {Kind: "intel"}, "unknown sharing": {Sharing: "mps"}, "unknown families": {Families: []string{"all"}},
		"below 1s": {Interval: time.Millisecond}, "do not overlap": {Away: []gpu.Span{{At: 5, Until: 5}}}, "simulated for dcgm only": {Kind: "amd", Sharing: "mig"},
	} {
		_, err := New(Config{GPUs: &wrong})
		assert.ErrorContains(t, err, want)
	}
	_, err := New(Config{Hardware: "8b-h100", Changes: []engine.Change{{At: 1, Parameter: engine.ParamCooling, Value: 0.5}}})
	assert.ErrorContains(t, err, "none that are simulated")
}
