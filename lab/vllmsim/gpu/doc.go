// Package gpu writes what exporters of GPU metrics answer to a scrape: NVIDIA's dcgm-exporter
// and AMD's device metrics exporter. The GPUs are those of package engine.
//
// An exporter has samples. It shows the last one until the next, and it counts some things over
// a sliding window of samples, as dcgm-exporter does. What the driver counts goes on when the
// exporter restarts, and the windows begin again.
package gpu

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// The kinds of exporters.
const (
	DCGM = "dcgm"
	AMD  = "amd"
)

// The ways in which a GPU is shared.
const (
	// Whole is a GPU for one workload.
	Whole = "none"
	// TimeSlicing is a GPU for two workloads in turn: every series is there twice, with the
	// numbers of the whole GPU.
	TimeSlicing = "time_slicing"
	// MIG is a GPU in two parts, with one workload each.
	MIG = "mig"
)

// Sharings are all of them.
func Sharings() []string { return []string{Whole, TimeSlicing, MIG} }

// Config is how an exporter was set up. The zero value is dcgm-exporter as it is shipped.
type Config struct {
	// Kind is DCGM or AMD; empty is DCGM.
	Kind string
	// Families are the groups of families that are off by default in dcgm-exporter and that
	// the operator has switched on, of Groups.
	Families []string
	// OldLabels are those before 4.9: Hostname in place of hostname, and no error names of XIDs.
	OldLabels bool
	// PodUID adds the label pod_uid.
	PodUID bool
	// Bare leaves out the labels of pods, as outside of Kubernetes.
	Bare bool
	// Sharing is one of Sharings; empty is Whole.
	Sharing string
	// Interval is the time between two samples of DCGM; 0 is 30 s.
	Interval time.Duration
	// Affected is how many GPUs of each engine the changes of GPUs act on; 0 is all.
	Affected int
	// Name and Namespace begin the names of the pods, which end with the number of the server;
	// empty are "vllm" and "chat".
	Name, Namespace string
	// Away is when the exporter does not answer, in seconds. It starts anew after that.
	Away []Span
}

// Span is a time from At up to Until, in seconds.
type Span struct{ At, Until float64 }

// Has reports whether a time is in it.
func (s Span) Has(at float64) bool { return at >= s.At && at < s.Until }

// defaultInterval is dcgm-exporter's own.
const defaultInterval = 30 * time.Second

// WithDefaults completes the configuration, or names the invalid setting.
func (c Config) WithDefaults() (Config, error) {
	if c.Kind == "" {
		c.Kind = DCGM
	}
	if c.Sharing == "" {
		c.Sharing = Whole
	}
	if c.Interval == 0 {
		c.Interval = defaultInterval
	}
	c.Name, c.Namespace = cmp.Or(c.Name, "vllm"), cmp.Or(c.Namespace, "chat")
	switch {
	case c.Kind != DCGM && c.Kind != AMD:
		return c, fmt.Errorf("unknown exporter %q: want %s or %s", c.Kind, DCGM, AMD)
	case !slices.Contains(Sharings(), c.Sharing):
		return c, fmt.Errorf("unknown sharing %q: want one of %s", c.Sharing, strings.Join(Sharings(), ", "))
	case c.Interval < time.Second:
		return c, fmt.Errorf("time between samples %s is below 1s", c.Interval)
	case c.Kind == AMD && (c.Sharing != Whole || len(c.Families) > 0):
		return c, fmt.Errorf("exporter %s: families and sharing are simulated for %s only", AMD, DCGM)
	case c.Affected < 0:
		return c, fmt.Errorf("affected GPUs: %d is below 0", c.Affected)
	}
	for _, group := range c.Families {
		if !slices.Contains(Groups(), group) {
			return c, fmt.Errorf("unknown families %q: want some of %s", group, strings.Join(Groups(), ", "))
		}
	}
	last := 0.0
	for _, s := range c.Away {
		if s.At < last || s.Until <= s.At {
			return c, fmt.Errorf("away at %v s: want times that do not overlap, each with a later end", s.At)
		}
		last = s.Until
	}
	return c, nil
}

// Workload is a container that uses a GPU.
type Workload struct{ Namespace, Pod, Container, UID string }

// Workload is the pod of server number i, as the exporter of its node names it.
func (c *Config) Workload(i int) Workload {
	return Workload{Namespace: c.Namespace, Pod: fmt.Sprintf("%s-%d", c.Name, i), Container: "vllm", UID: c.id("", i)}
}

// Node is the name of the node of server number i.
func (c *Config) Node(i int) string { return fmt.Sprintf("node-of-%s-%d", c.Name, i) }

// UUID is that of GPU number n of server number i.
func (c *Config) UUID(i, n int) string { return c.id("GPU-", i<<16|n) }

func (c *Config) id(kind string, n int) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.Namespace + "/" + c.Name)) // It cannot fail.
	return fmt.Sprintf("%s%08x-7b1e-4c59-9a52-%012x", kind, h.Sum32(), n+1)
}

// Card is a GPU of a node.
type Card struct {
	// Index is its number on the node.
	Index int
	UUID  string
	// MemoryMiB is the size of its memory, MaxMHz its greatest clock.
	MemoryMiB, MaxMHz float64
	// UsedMiB is how much of the memory is in use.
	UsedMiB  float64
	Workload Workload
}
