package vllmsim

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Injection is one change or one fault of a server; the other field is nil.
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

// injections returns all changes and faults of server number target, in the order of their times.
func (c Config) injections(target int) []Injection {
	var out []Injection
	changes := c.changes(target)
	for i := range changes {
		out = append(out, Injection{Change: &changes[i]})
	}
	for i := range c.Faults {
		out = append(out, Injection{Fault: &c.Faults[i]})
	}
	slices.SortStableFunc(out, func(a, b Injection) int { return cmp.Compare(a.At(), b.At()) })
	return out
}

// reportInjections passes on the changes and faults until now.
func (t *Target) reportInjections(now float64) {
	if t.server.cfg.Injected == nil {
		return
	}
	for t.reported < len(t.injections) && t.injections[t.reported].At() <= now {
		t.server.cfg.Injected(t.index, t.injections[t.reported])
		t.reported++
	}
}
