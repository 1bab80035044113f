package diagnose

import (
	"fmt"
	"slices"
	"strings"

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
	changed, found := changedBetween(from, to)
	if !found {
		return
	}
	e.baseline.Forget(changed)
	if changed[signal.StepFactor] {
		e.baseline.Earlier = "" // The two cannot be compared.
	}
	e.next, e.unlearned = nil, nil
	s.upgrade.From, s.upgrade.To, s.upgrade.Signals = from, to, *changed
	s.upgrade.Engines++
}

// changedBetween returns the signals of which numbers before and after a change of the
// version cannot be compared: a metric of theirs changed its meaning, or the bounds are
// others within which they are right. found is false where there are none.
func changedBetween(from, to string) (changed *signal.Set, found bool) {
	changed = new(signal.Set)
	for _, d := range catalog.Defects() {
		if d.ID.Affects(from) == d.ID.Affects(to) {
			continue
		}
		for s := range signal.Count {
			if inputs[s].concerned(&d) && incomparable(decision{s, d.ID}, &d) {
				changed[s], found = true, true
			}
		}
	}
	return changed, found
}

// incomparable reports whether a signal has other numbers with a defect than without it.
// Where it is corrected, or withheld while the defect acts, those that it has are right. A
// metric that changed its meaning is right before and after.
func incomparable(of decision, d *catalog.Defect) bool {
	verdict := decided[of]
	if d.Change {
		return verdict != "unaffected"
	}
	return verdict != "unaffected" && verdict != "corrected" && verdict != "withheld" && !compared[d.ID]
}

// decision is what a row of the catalogue's decisions is about.
type decision struct {
	signal signal.Signal
	defect catalog.DefectID
}

// decided are the catalogue's decisions about signals.
var decided = func() map[decision]string {
	all := map[decision]string{}
	for _, row := range catalog.Decisions() {
		for _, subject := range row.Of {
			s, is := signal.Named(strings.TrimPrefix(subject, "signal:"))
			if !is {
				continue
			}
			for _, id := range row.Defects {
				all[decision{s, id}] = row.Verdict
			}
		}
	}
	return all
}()

// compared are the defects of which the catalogue has decided that what is learned with
// them and without them can be compared.
var compared = func() map[catalog.DefectID]bool {
	all := map[catalog.DefectID]bool{}
	for _, row := range catalog.Decisions() {
		if slices.Contains(row.Of, "rule:learned") && row.Verdict == "unaffected" {
			for _, id := range row.Defects {
				all[id] = true
			}
		}
	}
	return all
}()

// metricsOf are the metrics that a signal is computed from.
type metricsOf map[string]bool

func (m metricsOf) concerned(d *catalog.Defect) bool {
	return slices.ContainsFunc(d.Metrics, func(metric string) bool { return metric == "*" || m[metric] })
}

// inputs are the metrics of each signal, through the signals and the derived metrics in
// between.
var inputs = func() (all [signal.Count]metricsOf) {
	from := map[string][]string{}
	for _, s := range catalog.Signals() {
		from[s.Name] = s.From
	}
	for s := range signal.Count {
		all[s] = metricsOf{}
		var add func(name string)
		add = func(name string) {
			if all[s][name] {
				return
			}
			all[s][name] = true
			for _, one := range from[name] {
				add(one)
			}
			if metric, known := catalog.ByName(name); known {
				for _, one := range metric.DerivedFrom {
					add(one)
				}
			}
		}
		add(s.String())
	}
	return all
}()
