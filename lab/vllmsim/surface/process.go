package surface

import (
	"fmt"
	"math"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// processFamilies are the Python client's default collectors.
func (s *Server) processFamilies() []wire.Family {
	age := max(0, s.Now-s.ProcessStart)
	generations := func(perSecond ...float64) []wire.Point {
		var out []wire.Point
		for i, rate := range perSecond {
			out = append(out, wire.Point{
				Labels: []wire.Label{{Name: "generation", Value: strconv.Itoa(i)}}, Value: math.Floor(rate * age),
			})
		}
		return out
	}
	value := func(v float64) []wire.Point { return []wire.Point{{Value: v}} }
	busy := 0.0
	for _, st := range s.Engines {
		busy += st.GenerationTokens
	}
	files := 44
	if !s.isRay() { // The agent is another process than the one that has the connections.
		files += s.Connections
	}
	patch, minor := "11", "12"
	if s.Version.before("0.12.0") {
		patch, minor = "12", "10"
	}
	return []wire.Family{
		{Name: "python_gc_objects_collected", Help: "Objects freed by garbage collection", Type: wire.Counter, Points: generations(3.1, 0.9, 0.2)},
		{Name: "python_gc_objects_uncollectable", Help: "Objects that garbage collection could not free", Type: wire.Counter, Points: generations(0, 0, 0)},
		{Name: "python_gc_collections", Help: "Runs of garbage collection by generation", Type: wire.Counter, Points: generations(0.8, 0.07, 0.004)},
		{Name: "python_info", Help: "Python in use", Type: wire.Gauge, Points: []wire.Point{{Value: 1, Labels: []wire.Label{
			{Name: "implementation", Value: "CPython"},
			{Name: "major", Value: "3"},
			{Name: "minor", Value: minor},
			{Name: "patchlevel", Value: patch},
			{Name: "version", Value: "3." + minor + "." + patch},
		}}}},
		{Name: "process_virtual_memory_bytes", Help: "Virtual memory in bytes.", Type: wire.Gauge, Points: value(39024848896)},
		{
			Name: "process_resident_memory_bytes", Help: "Resident memory in bytes.", Type: wire.Gauge,
			Points: value(4.32e9 + 4096*math.Floor(min(age, 86400)*3)),
		},
		{
			Name: "process_start_time_seconds", Help: "Start of the process as unix time in seconds.", Type: wire.Gauge,
			Points: value(math.Round(s.ProcessStart*100) / 100),
		},
		{
			Name: "process_cpu_seconds", Help: "CPU time of the process in seconds.", Type: wire.Counter,
			Points: value(math.Round(100*(0.02*age+3e-4*busy)) / 100),
		},
		{Name: "process_open_fds", Help: "File descriptors in use.", Type: wire.Gauge, Points: value(float64(files))},
		{Name: "process_max_fds", Help: "File descriptors allowed.", Type: wire.Gauge, Points: value(1048576)},
	}
}

// nodeAddress is the address that a Ray agent gives its node.
func (s *Server) nodeAddress() string { return fmt.Sprintf("10.20.0.%d", 4+s.Node) }

const (
	raySession    = "session_2026-01-05_00-00-00_000000_1"
	rayWorker     = "5c0ffee0%048x"
	rayReplica    = "vllm-app_LLMServer_%08x"
	rayOldRelease = "2.32.0"
	rayNewRelease = "2.54.0"
)

func (s *Server) rayRelease() string {
	if s.Dialect == RayOld {
		return rayOldRelease
	}
	return rayNewRelease
}

// rayLabels are what Ray adds to every series that a worker registers.
func (s *Server) rayLabels() []wire.Label {
	labels := []wire.Label{
		{Name: "Component", Value: "core_worker"},
		{Name: "NodeAddress", Value: s.nodeAddress()},
		{Name: "SessionName", Value: raySession},
		{Name: "Version", Value: s.rayRelease()},
		{Name: "WorkerId", Value: fmt.Sprintf(rayWorker, 17+s.Node)},
	}
	if s.Dialect == RayNew && !s.Version.before("0.13.0") {
		labels = append(labels, wire.Label{Name: "ReplicaId", Value: fmt.Sprintf(rayReplica, 0xa11ce+s.Node)})
	}
	return labels
}

// rayFamilies are a few of the hundreds of families with which a Ray agent
// describes its node. Names and label names are real, the choice is small.
func (s *Server) rayFamilies() []wire.Family {
	node := []wire.Label{
		{Name: "SessionName", Value: raySession}, {Name: "Version", Value: s.rayRelease()}, {Name: "ip", Value: s.nodeAddress()},
	}
	one := func(name, help string, v float64, labels ...wire.Label) wire.Family {
		all := append(append([]wire.Label(nil), node...), labels...)
		return wire.Family{Name: name, Help: help, Type: wire.Gauge, Points: []wire.Point{{Labels: all, Value: v}}}
	}
	running := 0
	for _, st := range s.Engines {
		running += st.Running
	}
	return []wire.Family{
		one("ray_node_cpu_utilization", "Busy share of the node's CPUs in percent", 3.5+0.5*float64(running)),
		one("ray_node_cpu_count", "CPUs of the node", 64),
		one("ray_node_mem_used", "Used memory of the node in bytes", 1.32e11),
		one("ray_node_gpus_utilization", "Busy share of one GPU in percent", min(100, 3*float64(running)),
			wire.Label{Name: "GpuDeviceName", Value: "H100"}, wire.Label{Name: "GpuIndex", Value: "0"}),
		one("ray_object_store_used_memory", "Bytes in the object store", 1.8e7),
	}
}
