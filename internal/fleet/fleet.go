// Package fleet carries what a processor knows about servers to an extension that answers questions about them. The
// extension asks; while nobody asks it, nothing is computed. Texts of servers are bounded by the processor, and can
// have any characters.
package fleet

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Registry is an extension that answers questions. A processor joins each one that service::extensions has.
type Registry interface {
	// Join adds a processor by the name of its component, once for each pipeline that it is in. The processor passes changes to tell as they happen,
	// and calls leave when it stops.
	Join(processor string, source Source) (tell func([]Event), leave func())
}

// Source is a processor. Both methods can be called at any time between Join and leave, from any goroutine.
type Source interface {
	// Snapshot returns what is known now. Nothing changes it afterwards.
	Snapshot() *Snapshot
	// Detail says why an engine or a pool with a key is in its condition; nil where the key is not known.
	Detail(key string) *Detail
}

// Snapshot is what a processor knows at a moment.
type Snapshot struct {
	// Window is the time over which rates and latencies are taken.
	Window time.Duration
	// Engines also has an entry without Model and Engine for each server of which no engine is known.
	Engines []Engine
	Pools   []Pool
	// Budgets are the error budgets of objectives.
	Budgets []Budget
}

// Diagnosis is the condition of an engine or a pool.
type Diagnosis struct {
	Condition string
	// Severity is from 0 (nothing to do) to 3 (users are not served).
	Severity int
	// Cause is the primary cause and Detail its detail; both are empty without one.
	Cause, Detail string
	// Since is when the readings first showed it.
	Since time.Time
}

// Engine is one engine of a server.
type Engine struct {
	// Key is the same as long as the engine is known, and no other engine or pool of any processor has it.
	Key string
	// Resource is what the engines of one server have in common, also in other processors.
	Resource string
	// Server identifies the server: its service.instance.id. Address is its host and port.
	Server, Address string
	// Cluster, Namespace, Pod and Node are those of Kubernetes; empty where unknown.
	Cluster, Namespace, Pod, Node string
	Model, Engine, Version        string
	Diagnosis
	// Failure is why the last scrape failed, as the metric vllm.scrape.failure has it, or "failed"; empty while scrapes
	// succeed.
	Failure string
	// New is true while it cannot be judged because it has just been seen.
	New bool
	// Read is true once the server was read. Resumed is true while the condition is that from before the collector
	// restarted, and readings since then do not show yet that it still is so.
	Read, Resumed bool
	// At is the timestamp of the newest data, and Arrived when it came. Interval is the longest time between two of the
	// last four scrapes; 0 where unknown.
	At, Arrived time.Time
	Interval    time.Duration
	Numbers     [NumNumbers]float64
}

// Number is one of an engine; NaN where it is not known.
type Number uint8

// The numbers of an engine. Latencies are means over the window, in seconds; KV is a share.
const (
	Running Number = iota
	Waiting
	KV
	FirstToken
	FirstTokenUsual
	TokenGap
	TokenGapUsual

	// NumNumbers is their number.
	NumNumbers
)

// Pool is a group of servers.
type Pool struct {
	// Key is as that of an engine.
	Key, Name string
	Diagnosis
	// Attributes are those that it is grouped by, with their values.
	Attributes map[string]string
	// Engines is how many it has.
	Engines int
}

// Detail is why an engine or a pool is in its condition.
type Detail struct {
	wording.Words
	// Board is the address of the dashboard about it; empty where none is known.
	Board    string
	Evidence []wording.Signal
}

// Budget is what is left of the error budget of an objective for a model of a server.
type Budget struct {
	Objective, Server, Model string
	// Remaining is a share of the budget: 1 at the start, below 0 once it is overspent. Burn is the burn rate over the
	// shortest window: 1 spends the budget exactly by its end.
	Remaining, Burn float64
}

// Event is a change of the condition or the cause of an engine or a pool.
type Event struct {
	Key string
	At  time.Time
	// Subject names the engine or the pool.
	Subject string
	From    string
	Diagnosis
	Sentence string
}
