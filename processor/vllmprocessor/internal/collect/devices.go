package collect

import (
	"math"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
)

const (
	// kindAttribute is the attribute of a resource that says what it is, kindAccelerator its
	// value where it is about the GPUs of a workload or of an exporter.
	kindAttribute   = "vllm.server.kind"
	kindAccelerator = "accelerator"
	// mostReadings bounds the GPUs of one resource at one time: no machine has as many.
	mostReadings = 128
)

// Accelerators are the readings of GPUs in a request. They are valid until the next call of the
// reader.
type Accelerators struct {
	Batches []gpu.Batch
	// Sources are the indices of all resources of exporters, also of those without a reading
	// that is useful; the batches of a resource are together. Excess is the number of points
	// of more GPUs than a resource can have.
	Sources []int
	Excess  int
}

// Accelerators are the readings of GPUs in the newest request.
func (c *Reader) Accelerators() *Accelerators { return &c.accelerators }

// isAccelerator reports whether a resource is about GPUs. It is not a server then.
func isAccelerator(resource pcommon.Map) bool {
	kind, has := resource.Get(kindAttribute)
	return has && kind.Type() == pcommon.ValueTypeStr && kind.Str() == kindAccelerator
}

// meaningOfDevice is what a metric, or one value of an attribute of it, says of a GPU.
type meaningOfDevice struct {
	// attribute must have one of some values; empty for a metric that is one field.
	attribute string
	fields    map[string]gpu.Field
	// second is a further attribute that must have a value, where it is not empty.
	second, value string
	field         gpu.Field
	how           func(*gpu.Reading, gpu.Field, float64)
	counter       bool
}

var (
	adds     = (*gpu.Reading).Add
	raises   = (*gpu.Reading).Raise
	averages = (*gpu.Reading).Average
)

// devices is what the metrics of exporters mean, by their names in the catalogue.
var devices = map[string][]meaningOfDevice{
	"vllm.accelerator.throttle.time": {{attribute: "reason", how: adds, counter: true, fields: map[string]gpu.Field{
		"power": gpu.PowerTime, "thermal": gpu.ThermalTime,
	}}},
	// The kinds of heat of AMD's firmware can overlap, so their sum is at least the time of any.
	"vllm.accelerator.throttle.residency": {{attribute: "reason", how: adds, counter: true, fields: map[string]gpu.Field{
		"power": gpu.PowerResidency, "thermal": gpu.ThermalResidency, "processor_hot": gpu.ThermalResidency,
		"vr_thermal": gpu.ThermalResidency, "memory_thermal": gpu.ThermalResidency,
	}}},
	"vllm.accelerator.throttle.reference": {{field: gpu.ResidencyReference, how: adds, counter: true}},
	// The power brake is a signal from outside that the supply of power asks for. hw_slowdown can
	// be either, and has its own reason beside it.
	"vllm.accelerator.throttle.active": {{attribute: "reason", how: raises, fields: map[string]gpu.Field{
		"power_cap": gpu.PowerActive, "hw_power_brake": gpu.PowerActive,
		"sw_thermal": gpu.ThermalActive, "hw_thermal": gpu.ThermalActive, "gpu_idle": gpu.IdleActive,
	}}},
	"vllm.accelerator.throttle.ratio": {{attribute: "reason", how: raises, fields: map[string]gpu.Field{
		"power": gpu.PowerRatio, "thermal": gpu.ThermalRatio, "processor_hot": gpu.ThermalRatio,
		"vr_thermal": gpu.ThermalRatio, "memory_thermal": gpu.ThermalRatio,
	}}},
	"vllm.accelerator.clock.frequency": {{attribute: "clock_domain", how: averages, fields: map[string]gpu.Field{"compute": gpu.Clock}}},
	"hw.gpu.utilization":               {{attribute: "hw.gpu.task", how: raises, fields: map[string]gpu.Field{"general": gpu.Utilization}}},
	"hw.gpu.memory.usage":              {{field: gpu.MemoryUsage, how: raises}},
	"hw.power":                         {{field: gpu.Power, how: raises}},
	"hw.energy":                        {{field: gpu.Energy, how: adds, counter: true}},
	"hw.errors": {{attribute: "error.type", how: adds, counter: true, fields: map[string]gpu.Field{
		"uncorrected": gpu.MemoryErrors, "deferred": gpu.MemoryErrors, "corrected": gpu.CorrectedErrors,
	}}},
	"vllm.accelerator.row_remap.rows":   {{field: gpu.MemoryErrors, how: adds, counter: true}},
	"vllm.accelerator.retired_pages":    {{field: gpu.MemoryErrors, how: adds, counter: true}},
	"vllm.accelerator.row_remap.failed": {{field: gpu.RemapFailed, how: raises}},
	"vllm.accelerator.xid.last":         {{field: gpu.XID, how: raises}},
	"vllm.accelerator.link.errors": {
		{attribute: "error.type", second: "link", value: "nvlink", how: adds, counter: true, fields: map[string]gpu.Field{
			"replay": gpu.LinkErrors, "recovery": gpu.LinkErrors, "crc_flit": gpu.LinkCRC, "crc_data": gpu.LinkCRC,
		}},
		{attribute: "error.type", second: "link", value: "pcie", how: adds, counter: true, fields: map[string]gpu.Field{
			"replay": gpu.PCIeReplays, "recovery": gpu.PCIeReplays,
		}},
	},
}

// workloads is the metric that says who uses a GPU.
const workloads = "vllm.accelerator.workloads"

var sharings = map[string]gpu.Sharing{
	"none": gpu.Unused, "exclusive": gpu.Exclusive, "shared": gpu.Shared,
	"partition": gpu.Partitioned, "partitioned": gpu.Partitioned,
}

func (c *Reader) readAccelerator(index int, rm pmetric.ResourceMetrics) {
	c.accelerators.Sources = append(c.accelerators.Sources, index)
	resource := rm.Resource().Attributes()
	if tooLarge(resource) {
		return
	}
	from := len(c.accelerators.Batches)
	for _, scope := range rm.ScopeMetrics().All() {
		for _, metric := range scope.Metrics().All() {
			if metric.Name() == workloads {
				if metric.Type() == pmetric.MetricTypeGauge {
					c.readDevices(index, resource, metric.Gauge().DataPoints(), from, nil)
				}
				continue
			}
			for i := range devices[metric.Name()] {
				m := &devices[metric.Name()][i]
				switch {
				case metric.Type() == pmetric.MetricTypeGauge && !m.counter:
					c.readDevices(index, resource, metric.Gauge().DataPoints(), from, m)
				case metric.Type() == pmetric.MetricTypeSum && m.counter && metric.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative:
					c.readDevices(index, resource, metric.Sum().DataPoints(), from, m)
				}
			}
		}
	}
	if len(c.accelerators.Batches) == from {
		// Series that end belong to a workload as well.
		c.accelerators.Batches = append(c.accelerators.Batches, gpu.Batch{Workload: workloadOf(resource), Source: index})
	}
}

// readDevices reads the points of a metric. m is nil for the metric of workloads. The batches of
// the resource begin at from.
func (c *Reader) readDevices(index int, resource pcommon.Map, points pmetric.NumberDataPointSlice, from int, m *meaningOfDevice) {
	for i := range points.Len() {
		point := points.At(i)
		attributes := point.Attributes()
		if point.Timestamp() == 0 || point.Flags().NoRecordedValue() || identity.Size(attributes) > maxPointBytes {
			continue
		}
		value := numberOf(point)
		if !finite(value) || value < 0 {
			continue
		}
		field, means := m.of(attributes)
		if !means {
			continue
		}
		reading := c.reading(index, resource, point, from)
		switch {
		case reading == nil:
		case m == nil:
			sharing, _ := attributes.Get("vllm.accelerator.sharing")
			reading.Sharing = max(reading.Sharing, sharings[sharing.AsString()])
		default:
			m.how(reading, field, value)
		}
	}
}

func (m *meaningOfDevice) of(attributes pcommon.Map) (field gpu.Field, means bool) {
	if m == nil {
		_, means = attributes.Get("vllm.accelerator.sharing")
		return 0, means
	}
	if m.second != "" {
		if value, _ := attributes.Get(m.second); value == (pcommon.Value{}) || value.AsString() != m.value {
			return 0, false
		}
	}
	if m.attribute == "" {
		return m.field, true
	}
	value, has := attributes.Get(m.attribute)
	if !has {
		return 0, false
	}
	field, means = m.fields[value.AsString()]
	return field, means
}

// reading returns the reading that a point belongs to; nil where there are too many.
func (c *Reader) reading(index int, resource pcommon.Map, point pmetric.NumberDataPoint, from int) *gpu.Reading {
	id, has := point.Attributes().Get("hw.id")
	if !has || id.AsString() == "" {
		return nil
	}
	all := &c.accelerators
	at := int64(point.Timestamp())
	place := from
	for place < len(all.Batches) && all.Batches[place].Time != at {
		place++
	}
	if place == len(all.Batches) {
		if place-from >= mostReadings {
			all.Excess++
			return nil
		}
		all.Batches = append(all.Batches, gpu.Batch{Workload: workloadOf(resource), Time: at, Source: index})
	}
	b, device := &all.Batches[place], id.AsString()
	for i := range b.Readings {
		// A metric has its points in the order of the GPUs, as the one before had.
		next := (c.lastDevice + 1 + i) % len(b.Readings)
		if b.Readings[next].Device == device {
			c.lastDevice = next
			return &b.Readings[next]
		}
	}
	if len(b.Readings) >= mostReadings {
		all.Excess++
		return nil
	}
	b.Readings = append(b.Readings, gpu.Reading{})
	c.lastDevice = len(b.Readings) - 1
	reading := &b.Readings[c.lastDevice]
	reading.Reset(device)
	if name, has := point.Attributes().Get("hw.name"); has {
		reading.Name = name.AsString()
	}
	if _, part := point.Attributes().Get("hw.parent"); part {
		reading.Sharing = gpu.Partitioned
	}
	return reading
}

// workloadOf returns whose GPUs a resource is about. The instance of its identity is the
// exporter, so that the workload is a part of the key, and the host as well, because agents on
// every node read "localhost".
func workloadOf(resource pcommon.Map) gpu.Workload {
	w := gpu.Workload{Owner: OwnerOf(resource)}
	w.Exporter = strings.Join([]string{textOf(resource, "service.instance.id"), w.Cluster, w.Host, w.Node}, "\x00")
	w.Key = strings.Join([]string{identity.Of(resource), w.Host, w.Node, w.PodUID, w.Pod, w.Container}, "\x00")
	return w
}

// OwnerOf returns where the process of a resource runs.
func OwnerOf(resource pcommon.Map) gpu.Owner {
	return gpu.Owner{
		PodUID: textOf(resource, "k8s.pod.uid"), Cluster: textOf(resource, "k8s.cluster.name"), Namespace: textOf(resource, "k8s.namespace.name"),
		Pod: textOf(resource, "k8s.pod.name"), Container: textOf(resource, "k8s.container.name"),
		Host: textOf(resource, "host.name"), Node: textOf(resource, "k8s.node.name"),
	}
}

func textOf(resource pcommon.Map, name string) string {
	value, has := resource.Get(name)
	if !has || value.Type() != pcommon.ValueTypeStr || len(value.Str()) > math.MaxUint8 {
		return ""
	}
	return value.Str()
}
