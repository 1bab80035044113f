package stories

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// Set is the use of a story: the diagnosis is tuned with one set and reported on another.
type Set string

// The sets.
const (
	Tuning  Set = "tuning"
	HeldOut Set = "heldout"
)

// Kind is what a story is for.
type Kind string

// The kinds of stories.
const (
	// Single has one fault, Pair has two that overlap.
	Single Kind = "single"
	Pair   Kind = "pair"
	// Curve has one fault on the 8B model, at a fixed rate: for the detection curve.
	Curve Kind = "curve"
	// Drift has a fault that grows over hours.
	Drift Kind = "drift"
	// FromStart has a fault that is there from the first second.
	FromStart Kind = "from the start"
	// Healthy has no fault of the engine.
	Healthy Kind = "healthy"
	// Exposition has a fault between server and collector, which is its own truth.
	Exposition Kind = "exposition"
)

// Plan is a story: what the tables divide it by, and how it is made.
type Plan struct {
	Meta
	// make builds the story. It is called when the story is played, because traffic takes
	// memory.
	make func() (*judge.Story, error)
}

// Make builds the story.
func (p *Plan) Make() (*judge.Story, error) { return p.make() }

// Meta describes a story. It is kept beside the result.
type Meta struct {
	Name string `json:"name"`
	Set  Set    `json:"set"`
	Kind Kind   `json:"kind"`
	// Variant is the kind of a healthy story, the fault of an exposition, or the parameter.
	Variant string `json:"variant"`
	Model   string `json:"model"`
	Traffic string `json:"traffic"`
	// Tuned is whether the diagnosis was ever tuned on the model, KnownTraffic whether it
	// was on this traffic.
	Tuned        bool `json:"tuned"`
	KnownTraffic bool `json:"known_traffic"`
	// Recorded traffic is from ../shared and not from the generator.
	Recorded bool `json:"recorded,omitempty"`
	// Load is a share of the knee, Rate the requests per second or the number of clients.
	Load float64 `json:"load"`
	Rate float64 `json:"rate"`
	// Rising traffic grows by 40 % in the half hour around the onset.
	Rising     bool `json:"rising,omitempty"`
	Objectives bool `json:"objectives,omitempty"`
	Retries    bool `json:"retries,omitempty"`
	// Servers is the number of servers of the story.
	Servers int `json:"servers"`
	// Pool is whether the processor compares the servers.
	Pool     bool    `json:"pool,omitempty"`
	Seed     uint64  `json:"seed"`
	Seconds  float64 `json:"seconds"`
	Interval float64 `json:"interval"`
	// Injections and Faults are those of the story, in the order of the story.
	Injections []Injected    `json:"injections,omitempty"`
	Faults     []judge.Fault `json:"faults,omitempty"`
}

// Injected is an injection as it was planned.
type Injected struct {
	Parameter string `json:"parameter"`
	// Cause is its name in the diagnosis; empty for a legitimate change.
	Cause string  `json:"cause,omitempty"`
	At    float64 `json:"at"`
	Over  float64 `json:"over,omitempty"`
	// Until is 0 where the injection stays.
	Until float64 `json:"until,omitempty"`
	// Wanted is the effect that is sought, 0 where the value is fixed.
	Wanted  float64 `json:"wanted,omitempty"`
	Servers []int   `json:"servers,omitempty"`
}

// Ends is when the injection ends, in seconds; the end of the story if it stays.
func (i *Injected) Ends(m *Meta) float64 {
	if i.Until == 0 {
		return m.Seconds
	}
	return i.Until
}

// Concerns reports whether a server has the injection.
func (i *Injected) Concerns(server int) bool {
	return len(i.Servers) == 0 || slices.Contains(i.Servers, server)
}

// Effects are the sizes of harm that are sought, as multiples of the bar of harm.
var Effects = []float64{1, 1.3, 2, 3, 5, 10}

// The names of the causes, by how they are found.
var (
	// Inferred causes must be inferred from metrics that other causes move as well.
	Inferred = []string{
		"decode_load", "demand_exceeds_capacity", "frontend_bound", "kv_pressure", "prefill_heavy", "slow_steps",
		"speculation_wasteful",
	}
	// ReadOff causes have a counter or gauge of their own, or are a standstill.
	ReadOff = []string{"admission_deferred", "asleep", "corrupted_output", "erroring", "kv_transfer_failing", "stalled"}
)

// NewPlan is a story that is not of a set, for tests.
func NewPlan(meta Meta, story func() (*judge.Story, error)) Plan { return Plan{meta, story} }
