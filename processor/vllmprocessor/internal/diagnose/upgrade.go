package diagnose

import (
	"fmt"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Upgrade is a change of the version of a server after which some signals mean something
// else, or are wrong by something else. What is usual for them is learned anew.
type Upgrade struct {
	From, To string
	Signals  signal.Set
	// Engines is the number of engines of which something was learned.
	Engines int
}

// Names are the names of the signals, sorted.
func (u *Upgrade) Names() (names []string) {
	for s, is := range u.Signals {
		if is {
			names = append(names, signal.Signal(s).String())
		}
	}
	slices.Sort(names)
	return names
}

// Upgraded returns what the newest batch showed of an upgrade; nil where what was learned
// continues. The result is valid until the next call of Observe.
func (s *State) Upgraded() *Upgrade {
	if s.upgrade.Engines == 0 {
		return nil
	}
	return &s.upgrade
}

// versionOf is the version of a server; empty where it is not known exactly.
func versionOf(r *window.Resource) string {
	v := r.Version()
	if !v.Exact {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v.Least[0], v.Least[1], v.Least[2])
}

// upgraded begins the baseline of an engine anew for the signals that changed with the
// version of its server. While the version is not known nothing begins anew: what was
// learned before counts as learned from the version that is seen next.
func (s *State) upgraded(e *engine) {
	from, to := e.baseline.Version, s.version
	if to == "" || from == to {
		return
	}
	e.baseline.Upgrade(to)
	if from == "" || e.baseline.Windows == 0 {
		return
	}
	changed := changedBetween(from, to)
	if changed == (signal.Set{}) {
		return
	}
	e.baseline.Forget(&changed)
	if changed[signal.StepFactor] {
		e.baseline.Earlier = "" // The two cannot be compared.
	}
	e.next, e.unlearned = nil, nil
	s.upgrade.From, s.upgrade.To, s.upgrade.Signals = from, to, changed
	s.upgrade.Engines++
}

// changedBetween returns the signals of which numbers before and after a change of the
// version cannot be compared: a metric of theirs changed its meaning, or the bounds are
// others within which they are right.
func changedBetween(from, to string) (changed signal.Set) {
	for _, d := range catalog.Defects() {
		if d.ID.Affects(from) == d.ID.Affects(to) {
			continue
		}
		for s := range signal.Count {
			changed[s] = changed[s] || uses(s.String(), d.Metrics) && incomparable(s, &d)
		}
	}
	return changed
}

// incomparable reports whether a signal has other numbers with a defect than without it.
// Where it is corrected, or withheld while the defect acts, those that it has are right. A
// metric that changed its meaning is right before and after.
func incomparable(s signal.Signal, d *catalog.Defect) bool {
	switch decided("signal:"+s.String(), d.ID) {
	case "unaffected":
		return false
	case "corrected", "withheld":
		return d.Change
	}
	return d.Change || decided("rule:learned", d.ID) != "unaffected"
}

// decided is the catalogue's decision about a subject and a defect; empty without one.
func decided(subject string, id catalog.DefectID) (verdict string) {
	for _, row := range catalog.Decisions() {
		if slices.Contains(row.Of, subject) && slices.Contains(row.Defects, id) {
			verdict = row.Verdict
		}
	}
	return verdict
}

// uses reports whether a signal or a metric is one of some metrics or computed from one, perhaps
// through signals and derived metrics in between.
func uses(name string, metrics []string) bool {
	if slices.Contains(metrics, "*") || slices.Contains(metrics, name) {
		return true
	}
	var from []string
	if metric, known := catalog.ByName(name); known {
		from = metric.DerivedFrom
	}
	for _, s := range catalog.Signals() {
		if s.Name == name {
			from = s.From
		}
	}
	return slices.ContainsFunc(from, func(one string) bool { return uses(one, metrics) })
}
