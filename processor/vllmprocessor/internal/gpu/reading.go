package gpu

import "math"

// Field is a number that exporters report of a GPU.
type Field uint8

// The fields. Counters grow until the driver is loaded again or the GPU is reset; the others
// are states.
const (
	// PowerTime and ThermalTime are counters of the seconds in which power and heat limited
	// the clocks.
	PowerTime Field = iota
	ThermalTime
	// PowerResidency, ThermalResidency and ResidencyReference are counters of samples of
	// AMD's firmware: the share of the time is the increase of the first by that of the last.
	PowerResidency
	ThermalResidency
	ResidencyReference
	// PowerActive, ThermalActive and IdleActive are 1 while that is a reason for the clocks.
	PowerActive
	ThermalActive
	IdleActive
	// PowerRatio and ThermalRatio are shares of the time just before the reading.
	PowerRatio
	ThermalRatio
	// Clock is that of the compute units, in Hz.
	Clock
	// Utilization is the share of the time in which something ran on the GPU.
	Utilization
	// MemoryUsage is in bytes, Power in watts, and Energy a counter of joules.
	MemoryUsage
	Power
	Energy
	// MemoryErrors is a counter of uncorrected errors of the memory, remapped rows and
	// retired pages; CorrectedErrors of corrected errors.
	MemoryErrors
	CorrectedErrors
	// RemapFailed is 1 once a row could not be remapped. XID is the last error code of the
	// driver, which stays.
	RemapFailed
	XID
	// LinkErrors is a counter of replays and recoveries of NVLink, LinkCRC of its checksum
	// errors, PCIeReplays of replays and recoveries of PCIe.
	LinkErrors
	LinkCRC
	PCIeReplays

	// NumFields is the number of fields, for arrays over them.
	NumFields
)

// Sharing is who uses a GPU.
type Sharing uint8

// How a GPU is used.
const (
	// Unused means: by no workload that the exporter knows.
	Unused Sharing = iota
	// Exclusive means: by one workload alone.
	Exclusive
	// Shared means: by several workloads.
	Shared
	// Partitioned means: the GPU is cut in partitions, or the reading belongs to a partition.
	Partitioned
)

// Reading is what an exporter reports of one GPU at one time.
type Reading struct {
	// Device is the identity of the GPU, Name its short name on the host.
	Device, Name string
	Sharing      Sharing
	// Values are NaN where they are not reported. A value that is summed has several parts:
	// only sums of as many parts can be compared.
	Values [NumFields]float64
	Parts  [NumFields]uint8
}

// Reset makes a reading that reports nothing of a GPU.
func (r *Reading) Reset(device string) {
	*r = Reading{Device: device}
	for f := range r.Values {
		r.Values[f] = math.NaN()
	}
}

// part counts one more part of a field, and returns how many there were.
func (r *Reading) part(f Field) (before uint8) {
	before = r.Parts[f]
	if before == 0 {
		r.Values[f] = 0
	}
	if before < math.MaxUint8 {
		r.Parts[f]++
	}
	return before
}

// Add adds a part to a field.
func (r *Reading) Add(f Field, value float64) {
	r.part(f)
	r.Values[f] += value
}

// Raise sets a field to a value where that is greater.
func (r *Reading) Raise(f Field, value float64) {
	if r.Parts[f] == 0 || value > r.Values[f] {
		r.Values[f] = value
	}
	r.Parts[f] = 1
}

// Average adds a value to the mean of a field.
func (r *Reading) Average(f Field, value float64) {
	n := float64(r.part(f))
	r.Values[f] += (value - r.Values[f]) / (n + 1)
}

// Workload says which GPUs a batch is about: those of one workload, or those of a host that
// the exporter knows no workload of. Empty where it is not known.
type Workload struct {
	// Key is the identity of the resource, Exporter that of the exporter.
	Key, Exporter string
	Owner
}

// Owner is where a process runs. Empty where it is not known.
type Owner struct {
	PodUID, Cluster, Namespace, Pod, Container string
	// Host is the name of the machine, Node the name that Kubernetes has for it.
	Host, Node string
}

func (o *Owner) inPod() bool { return o.PodUID != "" || o.Pod != "" }

// Batch is the readings of the GPUs of one workload at one time.
type Batch struct {
	Workload
	// Time is that of the readings in Unix nanoseconds.
	Time     int64
	Readings []Reading
	// Source is the index of the resource in the request.
	Source int
}
