package vllmsim

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// Injection is one thing that was done to a server: Change or Fault, the other
// is nil.
type Injection struct {
	Change *engine.Change
	Fault  *Fault
}

// At is when it happens, in seconds since the first readiness of its server.
func (i Injection) At() float64 {
	if i.Fault != nil {
		return i.Fault.At
	}
	return i.Change.At
}

// injections are all that happens to each server, in the order of the times.
func (c Config) injections() []Injection {
	var out []Injection
	for i := range c.Changes {
		out = append(out, Injection{Change: &c.Changes[i]})
	}
	for i := range c.Faults {
		out = append(out, Injection{Fault: &c.Faults[i]})
	}
	slices.SortStableFunc(out, func(a, b Injection) int { return cmp.Compare(a.At(), b.At()) })
	return out
}

// tell passes on what has been done to the server by now.
func (t *Target) tell(now float64) {
	if t.server.cfg.Injected == nil {
		return
	}
	for t.told < len(t.server.injections) && t.server.injections[t.told].At() <= now {
		t.server.cfg.Injected(t.index, t.server.injections[t.told])
		t.told++
	}
}
