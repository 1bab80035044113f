package vllmprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// gpu is a GPU as its exporter shows it. What it does is in the fields of a second; all that the
// exporter shows follows from them.
type simulatedGPU struct {
	id string
	// power and heat are the shares of the time in which they limit the clock. watts is the
	// power, clock in MHz.
	power, heat, watts, clock, busy float64
	// errors, replays and code are what happens besides: uncorrected errors and replays of NVLink
	// so far, and the last error code.
	errors, replays, code float64
	// without are metrics that the exporter does not show.
	without []string
	sharing string

	// limited and joules are totals.
	limitedByPower, limitedByHeat, joules float64
}

func newGPU(id string) *simulatedGPU {
	return &simulatedGPU{id: id, watts: 500, clock: 1980, busy: 0.9, sharing: "exclusive", limitedByPower: 1000, limitedByHeat: 5000, joules: 1e6}
}

// exporter is an exporter that reads its GPUs at each scrape.
type exporter struct {
	instance string
	at       time.Time
	// pods have their GPUs by the key of the pod: its UID, or its namespace and name with a slash
	// between them; empty for the node.
	pods map[string][]*simulatedGPU
	// skew is how far its clock is ahead.
	skew time.Duration
}

func newExporter(at time.Time, pods map[string][]*simulatedGPU) *exporter {
	return &exporter{instance: "node-1:9400", at: at, pods: pods}
}

// scrape is what it shows at a time.
func (e *exporter) scrape(at time.Time) pmetric.Metrics {
	passed := at.Sub(e.at).Seconds()
	e.at = at
	metrics := pmetric.NewMetrics()
	for pod, gpus := range e.pods {
		rm := metrics.ResourceMetrics().AppendEmpty()
		resource := rm.Resource().Attributes()
		resource.PutStr("vllm.server.kind", "accelerator")
		resource.PutStr("service.name", "dcgm-exporter")
		resource.PutStr("service.instance.id", e.instance)
		resource.PutStr("host.name", "node-1")
		if namespace, name, named := strings.Cut(pod, "/"); named {
			resource.PutStr("k8s.namespace.name", namespace)
			resource.PutStr("k8s.pod.name", name)
			resource.PutStr("k8s.container.name", "vllm")
		} else if pod != "" {
			resource.PutStr("k8s.pod.uid", pod)
		}
		to := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, g := range gpus {
			g.limitedByPower += g.power * passed
			g.limitedByHeat += g.heat * passed
			g.joules += g.watts * passed
			g.show(to, at.Add(e.skew))
		}
	}
	return metrics
}

// show appends what the exporter shows of a GPU.
func (g *simulatedGPU) show(to pmetric.MetricSlice, at time.Time) {
	add := func(name string, value float64, counter bool, attributes ...string) {
		for _, without := range g.without {
			if strings.HasPrefix(name, without) {
				return
			}
		}
		metric := to.AppendEmpty()
		metric.SetName(name)
		var point pmetric.NumberDataPoint
		if counter {
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point = sum.DataPoints().AppendEmpty()
		} else {
			point = metric.SetEmptyGauge().DataPoints().AppendEmpty()
		}
		point.SetDoubleValue(value)
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.Attributes().PutStr("hw.id", g.id)
		point.Attributes().PutStr("hw.name", "gpu0")
		for i := 0; i < len(attributes); i += 2 {
			point.Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	is := func(limited bool) float64 {
		if limited {
			return 1
		}
		return 0
	}
	add("vllm.accelerator.workloads", 1, false, "vllm.accelerator.sharing", g.sharing)
	add("vllm.accelerator.throttle.time", g.limitedByPower, true, "reason", "power")
	add("vllm.accelerator.throttle.time", g.limitedByHeat, true, "reason", "thermal")
	add("vllm.accelerator.throttle.active", is(g.power >= 0.5), false, "reason", "power_cap")
	add("vllm.accelerator.throttle.active", is(g.heat >= 0.5), false, "reason", "sw_thermal")
	add("vllm.accelerator.throttle.active", is(g.busy < 0.05), false, "reason", "gpu_idle")
	add("vllm.accelerator.clock.frequency", g.clock*1e6, false, "clock_domain", "compute")
	add("vllm.accelerator.clock.frequency", 2619e6, false, "clock_domain", "memory")
	add("hw.gpu.utilization", g.busy, false, "hw.gpu.task", "general")
	add("hw.gpu.memory.usage", 70<<30, false)
	add("hw.power", g.watts, false)
	add("hw.energy", g.joules, true)
	add("hw.errors", g.errors, true, "error.type", "uncorrected")
	add("vllm.accelerator.link.errors", g.replays, true, "link", "nvlink", "error.type", "replay")
	add("vllm.accelerator.xid.last", g.code, false)
}

// inPod puts the attributes of a pod on the resource of a scrape of a server.
func inPod(metrics pmetric.Metrics, attributes ...string) pmetric.Metrics {
	resource := metrics.ResourceMetrics().At(0).Resource().Attributes()
	for i := 0; i < len(attributes); i += 2 {
		resource.PutStr(attributes[i], attributes[i+1])
	}
	return metrics
}

// world is a server in a pod, and the exporter of its GPUs.
type world struct {
	*instance
	server   *load
	exporter *exporter
	owner    []string
	// off is true while the exporter is not read.
	off bool
	// late is how many scrapes later the readings of GPUs arrive.
	late    int
	delayed []pmetric.Metrics
	// newest is what the processor passed on for the newest scrape of the server.
	newest pmetric.Metrics
}

func newWorld(i *instance, gpus ...*simulatedGPU) *world {
	i.at = noon
	return &world{
		instance: i, server: steady("vllm-0:8000", noon), exporter: newExporter(noon, map[string][]*simulatedGPU{"uid-0": gpus}), owner: []string{"k8s.pod.uid", "uid-0"},
	}
}

// pass passes scrapes of both through for a time, and returns the details of slow_steps that
// were reported with the newest one.
func (w *world) pass(d time.Duration) (details []string) {
	w.t.Helper()
	for range d / w.server.interval() {
		metrics := inPod(w.server.scrape(), w.owner...)
		w.at = w.server.at
		gpus := w.exporter.scrape(w.at)
		if !w.off {
			w.delayed = append(w.delayed, gpus)
		}
		if len(w.delayed) > w.late {
			w.send(w.delayed[0])
			w.delayed = w.delayed[1:]
		}
		w.newest = w.send(metrics)
	}
	return detailsOf(w.newest)
}

func (w *world) send(metrics pmetric.Metrics) pmetric.Metrics {
	w.t.Helper()
	metrics, err := w.process(w.t.Context(), metrics)
	if err != nil {
		w.t.Fatal(err)
	}
	return metrics
}

// detailsOf are the details of slow_steps that are reported now, "-" for none.
func detailsOf(metrics pmetric.Metrics) (details []string) {
	for name, points := range pointsByName(metrics) {
		if name != "vllm.diagnosis.cause" {
			continue
		}
		for _, p := range points {
			if cause, _ := p.Attributes().Get("cause"); cause.AsString() != "slow_steps" || p.DoubleValue() != 1 {
				continue
			}
			detail := "-"
			if value, has := p.Attributes().Get("detail"); has {
				detail = value.AsString()
			}
			details = append(details, detail)
		}
	}
	return details
}

// pointsByName are all points of gauges that are no ends.
func pointsByName(metrics pmetric.Metrics) map[string][]pmetric.NumberDataPoint {
	all := map[string][]pmetric.NumberDataPoint{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						all[m.Name()] = append(all[m.Name()], p)
					}
				}
			}
		}
	}
	return all
}
