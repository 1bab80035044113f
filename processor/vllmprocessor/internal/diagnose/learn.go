package diagnose

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// learn adds a reading to the baseline. What harm or a change that is not certain yet shows is
// left out: latencies while there is harm, and what the factor of a change is seen by.
// Readings are learned hold windows later, so that the first ones of a change are left out, too;
// the first windows of an engine at once.
func (e *engine) learn(settings *Settings, s *State, r *reading, found *symptoms, raw Condition) {
	length := settings.Window
	if raw != Healthy && raw != Degraded && raw != Critical || !(r.elapsed > 0) {
		e.unlearned = e.unlearned[:0]
		return
	}
	e.accept(settings, r)
	if e.Reported.bad() {
		e.relearn(settings, s, r, found, raw)
	} else {
		e.next = nil
	}
	harmed := e.Reported.bad() || found.suspect || found.perhaps || e.Backlog.Over || raw != Healthy
	if n := len(e.unlearned); n == 0 || r.At-e.unlearned[n-1].At >= int64(length) {
		e.unlearned = append(e.unlearned, unlearned{*r, harmed})
	} else if harmed {
		e.unlearned[n-1].harmed = true
	}
	for f, by := range fromTheStart(r) {
		if by > 0 {
			e.BrokenAt[f] = r.At
		}
	}
	hold := int64(settings.Hold) * int64(length)
	if !e.baseline.Ready() && !e.baseline.Began {
		hold = 0
	}
	for len(e.unlearned) > 0 && r.At-e.unlearned[0].At >= hold {
		except := e.unsure()
		broken := e.unusual(e.unlearned[0].At, int64(length))
		for of := range signal.Count {
			except[of] = except[of] || broken[of]
		}
		if harmed || e.unlearned[0].harmed {
			for _, of := range latencies {
				except[of] = true
			}
		}
		e.baseline.Learn(&e.unlearned[0].Window, length, &except)
		e.unlearned = slices.Delete(e.unlearned, 0, 1)
	}
}

// accept makes work that has grown for as long as relearn_after the usual one: traffic that stays
// is not a fault, whether the engine is slower with it or not.
func (e *engine) accept(settings *Settings, r *reading) {
	for f := range longerOutputs + 1 {
		since(&e.GrownSince[f], e.Changes[f].On, r.At)
		if e.GrownSince[f] > 0 && r.At-e.GrownSince[f] >= int64(settings.RelearnAfter) && r.Learnable() {
			e.baseline.Accept(&r.Window, wanders[f].of)
			e.Changes[f], e.GrownSince[f] = change{}, 0
		}
	}
}

// unlearned is a reading that is not learned yet, and whether there was harm.
type unlearned struct {
	reading
	harmed bool
}

// latencies are what is usual only without harm.
var latencies = []signal.Signal{
	signal.Running, signal.Waiting, signal.KVUtilization, signal.TimeToFirstToken, signal.InterTokenLatency, signal.QueueWait, signal.QueueTime,
	signal.PrefillTime, signal.FirstTokenRate, signal.StepTime, signal.Preemptions, signal.ErrorRatio, signal.CorruptedRatio,
	signal.FailedTransfers, signal.MissedRatio, signal.DroppedRatio, signal.GenerationRate,
	signal.CancelledRatio,
}

// suspicious is the score from which on what may be a change is not learned.
const suspicious = 2

// unsure are the signals of factors that have changed, or may have.
func (e *engine) unsure() (out signal.Set) {
	for f := range numFactors {
		if e.Changes[f].Score < suspicious {
			continue
		}
		out[wanders[f].of] = true
		if f == fewerBlocks {
			out[signal.KVPerComputed] = true
		}
	}
	return out
}

// relearn makes a new level the baseline when it has been stable for long enough. Errors,
// dropped requests, missed objectives, restarts and a queue that does not drain never become
// usual. An engine that was beyond the defaults from the start gets its usual latencies only
// here.
func (e *engine) relearn(settings *Settings, s *State, r *reading, found *symptoms, raw Condition) {
	if raw != Degraded && raw != Critical && raw != Healthy || raw == Degraded && !found.any() || found.errors || found.dropped || found.objective.name != "" || e.Backlog.Over {
		e.next = nil
		return
	}
	stable := func(s signal.Signal) bool {
		growth := e.next.Growth(&r.Window, s)
		return !signal.Known(growth) || math.Abs(growth) < math.Log(1.5)
	}
	if e.next == nil || !stable(signal.TimeToFirstToken) || !stable(signal.InterTokenLatency) {
		e.next, e.nextSince = signal.NewBaseline(), r.At
	}
	e.next.Learn(&r.Window, settings.Window, &signal.Set{})
	if r.At-e.nextSince < int64(settings.RelearnAfter) || !e.next.Ready() {
		return
	}
	before := e.Reported
	e.baseline, e.next, e.unlearned = e.next, nil, e.unlearned[:0]
	// What was found against the baseline of before is not evidence against this one.
	e.Changes, e.Harms, e.Backlog, e.Without, e.Felt = [numFactors]change{}, [numHarms]evidence{}, backlog{}, backlogs{}, felt{}
	e.acceptPeers()
	if !before.bad() {
		return
	}
	e.Reported = Verdict{Condition: Healthy}
	e.Raw, e.RawSince, e.Bad, e.BadSince, e.Shares = Healthy, r.At, false, r.At, Shares{}
	e.memory.add(e)
	t := e.transition(s, before, &symptoms{})
	t.Relearned = true
	s.transitions = append(s.transitions, t)
}

// Upgrade is a change of the version of a server after which some signals mean something
// else, or are wrong by something else. What is usual for them is learned again.
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

// upgraded begins the baseline of an engine again for the signals that changed with the
// version of its server. While the version is not known nothing begins again: what was
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
