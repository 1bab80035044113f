package vllmsim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// FaultKind is a kind of fault between a server and its clients. Faults within the
// engine are an engine.Change.
type FaultKind string

// The kinds of faults.
const (
	// FaultUnreachable closes every connection without an answer. The engine keeps
	// working.
	FaultUnreachable FaultKind = "unreachable"
	// FaultRestart ends the process at the beginning of the fault, and a new one is ready
	// at its end. Requests in progress are lost, counters begin at 0, and the prefix cache
	// is empty. In between the server is unreachable. The new process gets requests of its
	// own from the same workload.
	FaultRestart FaultKind = "restart"
	// FaultFrozenGauges freezes the gauge of KV cache usage. In vLLM gauges change only in
	// steps. When all clients leave at once, the last step shows that no request runs or
	// waits, but still the earlier usage (vllm#29928). The workload has to stop the
	// requests.
	FaultFrozenGauges FaultKind = "frozen_gauges"
)

// FaultKinds are all kinds.
func FaultKinds() []FaultKind {
	return []FaultKind{FaultFrozenGauges, FaultRestart, FaultUnreachable}
}

// Fault is one fault from At up to Until, in seconds since the first readiness
// of its server.
type Fault struct {
	At, Until float64
	Kind      FaultKind
}

// checkFaults checks the faults.
func (c *Config) checkFaults() error {
	last, restarts := 0.0, 0
	for _, f := range c.Faults {
		if f.Kind == FaultRestart {
			restarts++
		}
		switch {
		case !slices.Contains(FaultKinds(), f.Kind):
			return fmt.Errorf("unknown fault %q: want one of %v", f.Kind, FaultKinds())
		case !(f.At >= last):
			return fmt.Errorf("fault %s at %v s: faults must not overlap", f.Kind, f.At)
		case !(f.Until > f.At) || math.IsInf(f.Until, 1):
			return fmt.Errorf("fault %s at %v s: it must end later than it begins, not at %v s", f.Kind, f.At, f.Until)
		case restarts > engine.MaxRestarts:
			return fmt.Errorf("fault %s at %v s: there can be at most %d restarts", f.Kind, f.At, engine.MaxRestarts)
		case f.Kind == FaultRestart && (c.Workload == nil || c.Workload.Swing > 0 || c.Workload.BurstFactor > 0):
			return errors.New("a restart needs a workload without waves and bursts, which would start again")
		}
		last = f.Until
	}
	return nil
}

// turn is the beginning or the end of a fault.
type turn struct {
	at    float64
	fault Fault
	begin bool
}

func turns(faults []Fault) []turn {
	var out []turn
	for _, f := range faults {
		out = append(out, turn{f.At, f, true}, turn{f.Until, f, false})
	}
	return out
}

// turn lets a fault begin or end, at the time up to which the engines are.
func (t *Target) turn(now turn) error {
	switch now.fault.Kind {
	case FaultUnreachable:
		t.away = now.begin
	case FaultFrozenGauges:
		t.frozen = nil
		if now.begin {
			for _, st := range t.engine.Stats() {
				t.frozen = append(t.frozen, st.KVUsage)
			}
		}
	case FaultRestart:
		t.away = now.begin
		if now.begin {
			t.end()
			return nil
		}
		return t.restart(now.fault)
	}
	return nil
}

// end aborts all requests of a process that ends.
func (t *Target) end() {
	for _, o := range t.engine.Unfinished() {
		o.End = engine.EndAborted
		t.ended(o)
	}
}

// restartShift keeps the seeds of processes far from those of other servers.
const restartShift = 32

// restart begins a process that is ready at the end of the fault, with the changes made
// until then that outlive a process.
func (t *Target) restart(f Fault) error {
	cfg := t.server.cfg
	cfg.Changes, cfg.TargetChanges = engine.ChangesAfter(t.server.cfg.changes(t.index), f.Until), nil
	if cfg.Workload != nil {
		workload := cfg.Workload.After(f.Until)
		cfg.Workload = &workload
	}
	t.restarts++
	cfg.origin, cfg.first = f.Until, t.restarts*engine.ProcessIDs
	cfg.Seed += uint64(t.restarts) << restartShift
	next, err := cfg.newEngine(t.index, t.server.version)
	if err != nil {
		return err // New has accepted the same configuration.
	}
	next.TakeDevices(t.engine, f.Until-t.ready.Sub(t.born).Seconds()-t.engine.Now())
	t.engine = next
	t.firstID = cfg.first
	t.started, t.ready = t.born.Add(seconds(f.At)), t.born.Add(seconds(f.Until))
	t.at = 0
	return nil
}

// stats returns the numbers of the engines as the server shows them.
func (t *Target) stats() []*observed.Stats {
	live := t.engine.Stats()
	if t.frozen == nil {
		return live
	}
	out := make([]*observed.Stats, len(live))
	copy(out, live)
	for i, usage := range t.frozen {
		shown := *live[i]
		shown.KVUsage = usage
		shown.ProcessUsage = nil
		out[i] = &shown
	}
	return out
}
