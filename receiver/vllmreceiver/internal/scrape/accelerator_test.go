package scrape

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// gpu is one GPU as dcgm-exporter labels it.
type gpu struct{ uuid, index, pod, more string }

// nvidia writes the body of dcgm-exporter: two GPUs of one pod, one of another, one idle.
func nvidia(gpus []gpu, value func(family string, i int) string) string {
	var b strings.Builder
	for _, family := range slices.Sorted(maps.Keys(nvidiaFamilies)) {
		fmt.Fprintf(&b, "# HELP %s Some words.\n# TYPE %s %s\n", family, family, nvidiaFamilies[family].wire)
		for i, g := range gpus {
			more := g.more
			if g.pod != "" {
				more += `,container="vllm",namespace="serving",pod="` + g.pod + `"`
			}
			fmt.Fprintf(&b, `%s{gpu="%s",UUID="%s",pci_bus_id="0000:0%d:00.0",device="nvidia%s",modelName="NVIDIA H100",hostname="node-1",DCGM_FI_DRIVER_VERSION="580.65"%s} %s`+"\n",
				family, g.index, g.uuid, i, g.index, more, value(family, i))
		}
	}
	return b.String()
}

// expected is what a family becomes, by the pages of the exporter and of the conventions.
type expected struct {
	wire, metric string
	// by is what the number is divided by, times what it is multiplied by.
	by, times  float64
	attributes string
	sum        bool
}

// nvidiaFamilies are the families that dcgm-exporter has by default, and those that are
// evidence of throttling.
var nvidiaFamilies = map[string]expected{
	"DCGM_FI_DEV_SM_CLOCK":                 {wire: "gauge", metric: "vllm.accelerator.clock.frequency", times: 1e6, attributes: "clock_domain=compute"},
	"DCGM_FI_DEV_MEM_CLOCK":                {wire: "gauge", metric: "vllm.accelerator.clock.frequency", times: 1e6, attributes: "clock_domain=memory"},
	"DCGM_FI_DEV_MEMORY_TEMP":              {wire: "gauge", metric: "hw.temperature", attributes: "hw.sensor_location=memory"},
	"DCGM_FI_DEV_GPU_TEMP":                 {wire: "gauge", metric: "hw.temperature", attributes: "hw.sensor_location=gpu"},
	"DCGM_FI_DEV_POWER_USAGE":              {wire: "gauge", metric: "hw.power"},
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": {wire: "counter", metric: "hw.energy", by: 1000, sum: true},
	"DCGM_FI_DEV_PCIE_REPLAY_COUNTER":      {wire: "counter", metric: "vllm.accelerator.link.errors", attributes: "error.type=replay link=pcie", sum: true},
	"DCGM_FI_DEV_GPU_UTIL":                 {wire: "gauge", metric: "hw.gpu.utilization", by: 100, attributes: "hw.gpu.task=general"},
	"DCGM_FI_DEV_ENC_UTIL":                 {wire: "gauge", metric: "hw.gpu.utilization", by: 100, attributes: "hw.gpu.task=encoder"},
	"DCGM_FI_DEV_DEC_UTIL":                 {wire: "gauge", metric: "hw.gpu.utilization", by: 100, attributes: "hw.gpu.task=decoder"},
	"DCGM_FI_DEV_MEM_COPY_UTIL":            {wire: "gauge", metric: "vllm.accelerator.activity", by: 100, attributes: "component=memory_copy"},
	"DCGM_FI_DEV_XID_ERRORS":               {wire: "gauge", metric: "vllm.accelerator.xid.last"},
	"DCGM_FI_DEV_POWER_VIOLATION":          {wire: "counter", metric: "vllm.accelerator.throttle.time", by: 1e9, attributes: "reason=power", sum: true},
	"DCGM_FI_DEV_THERMAL_VIOLATION":        {wire: "counter", metric: "vllm.accelerator.throttle.time", by: 1e9, attributes: "reason=thermal", sum: true},
	"DCGM_FI_DEV_FB_USED":                  {wire: "gauge", metric: "hw.gpu.memory.usage", times: 1 << 20},
	"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": {
		wire: "counter", metric: "vllm.accelerator.row_remap.rows", attributes: "error.type=uncorrected", sum: true,
	},
	"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": {
		wire: "counter", metric: "vllm.accelerator.row_remap.rows", attributes: "error.type=corrected", sum: true,
	},
	"DCGM_FI_DEV_ROW_REMAP_FAILURE":   {wire: "gauge", metric: "vllm.accelerator.row_remap.failed"},
	"DCGM_FI_PROF_GR_ENGINE_ACTIVE":   {wire: "gauge", metric: "vllm.accelerator.activity", attributes: "component=graphics"},
	"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": {wire: "gauge", metric: "vllm.accelerator.activity", attributes: "component=tensor"},
	"DCGM_FI_PROF_DRAM_ACTIVE":        {wire: "gauge", metric: "vllm.accelerator.activity", attributes: "component=dram"},
	"DCGM_FI_PROF_PCIE_TX_BYTES":      {wire: "counter", metric: "vllm.accelerator.bandwidth", attributes: "link=pcie network.io.direction=transmit"},
	"DCGM_FI_PROF_PCIE_RX_BYTES":      {wire: "gauge", metric: "vllm.accelerator.bandwidth", attributes: "link=pcie network.io.direction=receive"},
}

var fourGPUs = []gpu{
	{uuid: "GPU-a", index: "0", pod: "llama-0"},
	{uuid: "GPU-b", index: "1", pod: "llama-0"},
	{uuid: "GPU-c", index: "2", pod: "qwen-0"},
	{uuid: "GPU-d", index: "3"},
}

// numberFor is a number that differs for each family and GPU, and that a percentage can be.
func numberFor(family string, i int) string { return fmt.Sprint(7*i + len(family)%30) }

// pointsByResource are the points of a scrape by the pod of their resource, by metric and
// attributes. The attributes that describe the device are left out.
func pointsByResource(t *testing.T, metrics pmetric.Metrics) map[string]map[string]pmetric.NumberDataPoint {
	t.Helper()
	out := map[string]map[string]pmetric.NumberDataPoint{}
	for _, rm := range metrics.ResourceMetrics().All() {
		pod := textOf(rm.Resource().Attributes(), "k8s.pod.name")
		require.NotContains(t, out, pod, "one resource for each pod")
		out[pod] = map[string]pmetric.NumberDataPoint{}
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			var points pmetric.NumberDataPointSlice
			if m.Type() == pmetric.MetricTypeSum {
				require.True(t, m.Sum().IsMonotonic())
				points = m.Sum().DataPoints()
			} else {
				points = m.Gauge().DataPoints()
			}
			for _, p := range points.All() {
				key := strings.TrimSpace(m.Name() + " " + textOf(p.Attributes(), "hw.id") + " " + plainAttributes(p.Attributes()))
				if p.Flags().NoRecordedValue() {
					key = "end of " + key
				}
				require.NotContains(t, out[pod], key)
				out[pod][key] = p
			}
		}
	}
	return out
}

func plainAttributes(attributes pcommon.Map) string {
	var parts []string
	for name, value := range attributes.All() {
		if !strings.HasPrefix(name, "hw.") || name == "hw.gpu.task" || name == "hw.sensor_location" {
			parts = append(parts, name+"="+value.AsString())
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// parsed reads a body with Prometheus's own parser.
func parsed(t *testing.T, body string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewBufferString(body))
	require.NoError(t, err)
	return families
}

func numberOf(m *dto.Metric) float64 {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue()
	case m.Counter != nil:
		return m.Counter.GetValue()
	}
	return m.Untyped.GetValue()
}

// Every number of the body is in the resource of its pod, in the unit of the metric, and no
// other point is there.
func TestTheNumbersOfNVIDIAsExporter(t *testing.T) {
	body := nvidia(fourGPUs, numberFor)
	for _, source := range []normalize.Source{normalize.SourceAuto, normalize.SourceDCGM} {
		r := newRig(t, func(c *Config) { c.Source = source })
		got := pointsByResource(t, r.scrape(body))
		want := map[string]map[string]float64{"": {}, "llama-0": {}, "qwen-0": {}}
		for name, family := range parsed(t, body) {
			e := nvidiaFamilies[name]
			for _, m := range family.Metric {
				labels := map[string]string{}
				for _, l := range m.Label {
					labels[l.GetName()] = l.GetValue()
				}
				value := numberOf(m)
				if e.by > 0 {
					value /= e.by
				}
				if e.times > 0 {
					value *= e.times
				}
				want[labels["pod"]][strings.TrimSpace(e.metric+" "+labels["UUID"]+" "+e.attributes)] = value
			}
		}
		for pod, ids := range map[string][]string{"": {"GPU-d"}, "llama-0": {"GPU-a", "GPU-b"}, "qwen-0": {"GPU-c"}} {
			for _, id := range ids {
				if pod == "" {
					want[pod]["vllm.accelerator.workloads "+id+" vllm.accelerator.sharing=none"] = 0
				} else {
					want[pod]["vllm.accelerator.workloads "+id+" vllm.accelerator.sharing=exclusive"] = 1
				}
			}
		}
		for pod := range want {
			values := map[string]float64{}
			for key, p := range got[pod] {
				if !strings.HasPrefix(key, "vllm.up") && !strings.HasPrefix(key, "vllm.scrape.") {
					values[key] = p.DoubleValue()
				}
			}
			assert.Equal(t, want[pod], values, "pod %q", pod)
		}
		assert.Len(t, got, 3)
		assert.Equal(t, 1.0, got[""]["vllm.up"].DoubleValue())
		assert.NotContains(t, got["llama-0"], "vllm.up", "the exporter's scrape is not the workload's")
		assert.Empty(t, r.logged("warn"))
		if source == normalize.SourceDCGM {
			assert.Zero(t, r.asked["/version"], "an exporter has no version of vLLM")
		}
	}
}

func TestTheResourcesOfAnExporter(t *testing.T) {
	r := newRig(t)
	r.scraper.identity.discovered = map[string]string{
		"k8s.pod.name": "dcgm-exporter-x7k2p", "k8s.pod.uid": "exporter-uid", "k8s.namespace.name": "gpu-operator",
		"k8s.daemonset.name": "dcgm-exporter", "k8s.container.name": "exporter", "k8s.node.name": "node-1",
	}
	gpus := slices.Clone(fourGPUs)
	gpus[2].more = `,pod_uid="7d1c"`
	common := map[string]any{
		"service.name": "vllm", "service.instance.id": "vllm-0:8000", "server.address": "vllm-0", "server.port": int64(8000),
		"url.scheme": "http", "vllm.server.kind": "accelerator", "vllm.accelerator.exporter": "dcgm", "host.name": "node-1",
		"hw.driver_version": "580.65", "k8s.node.name": "node-1",
	}
	with := func(more map[string]any) map[string]any {
		out := maps.Clone(common)
		maps.Copy(out, more)
		return out
	}
	var got []map[string]any
	for _, rm := range r.scrape(nvidia(gpus, numberFor)).ResourceMetrics().All() {
		got = append(got, rm.Resource().Attributes().AsRaw())
	}
	assert.ElementsMatch(t, []map[string]any{
		common,
		with(map[string]any{"k8s.pod.name": "llama-0", "k8s.namespace.name": "serving", "k8s.container.name": "vllm"}),
		with(map[string]any{"k8s.pod.name": "qwen-0", "k8s.namespace.name": "serving", "k8s.container.name": "vllm", "k8s.pod.uid": "7d1c"}),
	}, got)
}

// An exporter that does not know its node names its own pod as the host.
func TestTheExportersPodIsNoHost(t *testing.T) {
	r := newRig(t)
	r.scraper.identity.discovered = map[string]string{"k8s.pod.name": "node-1"}
	for _, rm := range r.scrape(nvidia(fourGPUs, numberFor)).ResourceMetrics().All() {
		assert.Empty(t, textOf(rm.Resource().Attributes(), "host.name"))
	}
}

const energy = "hw.energy "

// energies is a body with the energy of one GPU, which one pod or none uses.
func energies(pod, joules string) string {
	labels := ""
	if pod != "" {
		labels = `,pod="` + pod + `",namespace="serving",container="vllm"`
	}
	return "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\n" +
		`DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a"` + labels + `} ` + joules + "000\n"
}

// The counts of a GPU are as old as its driver. So the first value is not an increase, also of a
// GPU that another pod gets, and of one that appears later.
func TestTheFirstValueOfACountIsNoIncrease(t *testing.T) {
	r := newRig(t)
	first := pointsByResource(t, r.scrape(energies("p", "5000")))["p"][energy+"GPU-a"]
	assert.Equal(t, first.Timestamp(), first.StartTimestamp())
	second := pointsByResource(t, r.scrape(energies("p", "6000")))["p"][energy+"GPU-a"]
	assert.Equal(t, 6000.0, second.DoubleValue())
	assert.Equal(t, first.StartTimestamp(), second.StartTimestamp())

	moved := pointsByResource(t, r.scrape(energies("q", "7000")))
	assert.Contains(t, moved["p"], "end of "+energy+"GPU-a")
	assert.Equal(t, moved["q"][energy+"GPU-a"].Timestamp(), moved["q"][energy+"GPU-a"].StartTimestamp())
	back := pointsByResource(t, r.scrape(energies("p", "8000")))
	assert.Contains(t, back["q"], "end of "+energy+"GPU-a")
	p := back["p"][energy+"GPU-a"]
	assert.Equal(t, 8000.0, p.DoubleValue())
	assert.Equal(t, p.Timestamp(), p.StartTimestamp(), "what q used is not p's")

	// The same on the exporter's own resource.
	idle := pointsByResource(t, r.scrape(energies("", "9000")))[""][energy+"GPU-a"]
	assert.Equal(t, idle.Timestamp(), idle.StartTimestamp())
	r.scrape(energies("p", "10000"))
	idle = pointsByResource(t, r.scrape(energies("", "11000")))[""][energy+"GPU-a"]
	assert.Equal(t, idle.Timestamp(), idle.StartTimestamp())

	// A second GPU in the same resource.
	later := energies("", "12000") + `DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b"} 99000` + "\n"
	points := pointsByResource(t, r.scrape(later))[""]
	assert.Equal(t, idle.StartTimestamp(), points[energy+"GPU-a"].StartTimestamp())
	assert.Equal(t, points[energy+"GPU-b"].Timestamp(), points[energy+"GPU-b"].StartTimestamp())
}

// A count falls only with a new start time, and that of another device does not start again
// with it.
func TestACountThatFallsStartsAnew(t *testing.T) {
	r := newRig(t)
	both := func(a, b string) string {
		return energies("p", a) + `DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b",pod="p",namespace="serving",container="vllm"} ` + b + "000\n"
	}
	r.scrape(both("100", "100"))
	before := pointsByResource(t, r.scrape(both("200", "200")))["p"]
	after := pointsByResource(t, r.scrape(both("10", "300")))["p"]
	assert.Equal(t, 10.0, after[energy+"GPU-a"].DoubleValue())
	assert.Equal(t, before[energy+"GPU-a"].Timestamp(), after[energy+"GPU-a"].StartTimestamp(), "not before the last value of the old count")
	assert.Equal(t, before[energy+"GPU-b"].StartTimestamp(), after[energy+"GPU-b"].StartTimestamp())
}

// While the exporter is down, its series and those of its workloads have ended. The counts go
// on where they were.
func TestARestartOfTheExporter(t *testing.T) {
	r := newRig(t)
	before := pointsByResource(t, r.scrape(energies("p", "100")))["p"][energy+"GPU-a"]
	down := pointsByResource(t, r.fail(http.StatusServiceUnavailable))
	assert.Zero(t, down[""]["vllm.up"].DoubleValue())
	assert.Contains(t, down["p"], "end of "+energy+"GPU-a")
	assert.Contains(t, down["p"], "end of vllm.accelerator.workloads GPU-a vllm.accelerator.sharing=exclusive")
	after := pointsByResource(t, r.scrape(energies("p", "150")))["p"][energy+"GPU-a"]
	assert.Equal(t, 150.0, after.DoubleValue())
	assert.Equal(t, before.StartTimestamp(), after.StartTimestamp())
}

// A pod that is created again under its name is another workload.
func TestAPodWithAnotherUIDIsAnotherWorkload(t *testing.T) {
	body := func(uid, value string) string {
		return strings.Replace(energies("p", value), `,pod=`, `,pod_uid="`+uid+`",pod=`, 1)
	}
	r := newRig(t)
	r.scrape(body("1", "100"))
	var uids []string
	for _, rm := range r.scrape(body("2", "200")).ResourceMetrics().All() {
		if uid := textOf(rm.Resource().Attributes(), "k8s.pod.uid"); uid != "" {
			uids = append(uids, uid)
		}
	}
	assert.ElementsMatch(t, []string{"1", "2"}, uids, "the end of the first and the points of the second")
}

func TestAnotherDriverIsAnotherResource(t *testing.T) {
	r := newRig(t)
	body := nvidia(fourGPUs, numberFor)
	r.scrape(body)
	versions := map[string]int{}
	for _, rm := range r.scrape(strings.ReplaceAll(body, "580.65", "590.10")).ResourceMetrics().All() {
		versions[textOf(rm.Resource().Attributes(), "hw.driver_version")]++
	}
	assert.Equal(t, map[string]int{"580.65": 3, "590.10": 3}, versions, "the ends under the old one")
}
