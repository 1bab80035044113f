package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// resumption is that of a diagnosis from before the collector restarted.
type resumption struct {
	// saved is the time of its newest reading, from that of the first reading since; 0 before
	// that. Both are in Unix nanoseconds.
	saved, from int64
	// noted is true once it was a transition.
	noted bool
}

// save returns the stored form of the diagnosis; nil where there is nothing to continue.
func (e *engine) save() []byte {
	if !e.memory.any() || e.last.At == 0 || e.Reported.Because == JustSeen {
		return nil
	}
	d := e.saved
	d.At, d.Received = e.last.At, e.last.received
	if d.Hidden.at == 0 {
		d.Hidden = hidden{} // Nothing is known of its open files.
	}
	if d.Progress.At > 0 && differ(e.last.progress[generatedTokens], d.Received[generatedTokens]) {
		// The totals since before a restart cannot be compared with those of a new collector.
		d.Progress.Before = number(math.NaN())
	}
	return d.encode()
}

// resume continues a stored diagnosis, of an engine or a pool that is seen at a time for the first
// time. It is not used where more time has passed than that after which a server that is silent is
// forgotten: a collector that had not restarted would not know it either.
func (e *engine) resume(settings *Settings, data []byte, at int64) bool {
	d, sound := decodeDiagnosis(data)
	if !sound || at < d.At || at-d.At > int64(settings.MaxStaleness) {
		return false
	}
	d.First = cmp.Or(d.First, e.First)
	e.saved, e.resumption = d, &resumption{saved: d.At}
	e.Reported.Severity = e.Reported.severity()
	for c := range NumCauses {
		if !e.Details.Shown[c] || !described(c, e.Details.Reported[c]) {
			e.Details.forget(c)
		}
	}
	e.Felt.clearAt, e.Felt.greatAt = at, at
	if e.Hidden != (hidden{}) {
		e.Hidden.at = at
	}
	e.last.At, e.last.Signals, e.last.received = d.At, signal.Unknown(), d.Received
	e.memory.add(e)
	if e.Reported.Harms() {
		e.memory.share(&e.Shares)
	}
	return true
}

// check takes the first reading since a diagnosis was resumed. Of another process nothing is
// resumed. What has not moved since then has stood still.
func (e *engine) check(settings *Settings, s *State, v *window.View, r *reading) {
	if e.resumption != nil && e.resumption.from == 0 {
		if e.otherProcess(v, r, s.process) {
			e.resetDiagnosis()
		} else {
			e.continues(s)
			e.resumption.from = r.At
			// Without a total that the server sends it is not known.
			moved := !r.received[generatedTokens].known() || !e.last.received[generatedTokens].known()
			for i, now := range r.received {
				moved = moved || differ(now, e.last.received[i])
			}
			if e.Progress.was = r.progress; moved {
				e.Progress = progress{}
			}
		}
	} else if e.resumption != nil && r.elapsed == 0 && r.At-e.resumption.from >= int64(settings.Window) {
		// The scrapes are too far apart now, so that no reading would ever end what was found before.
		e.Harms, e.Changes, e.Restarts, e.resumption = [numHarms]evidence{}, [numFactors]change{}, restarts{}, nil
		e.Felt = felt{}
	}
	if s.process > 0 {
		e.Process = s.process
	}
	r.restarted = max(r.restarted, e.Restarted)
	e.Restarted = r.restarted
}

// continues notes once that a diagnosis was resumed: the log of the new collector does not have it.
func (e *engine) continues(s *State) {
	if e.resumption.noted {
		return
	}
	e.resumption.noted = true
	t := e.transition(s, e.Reported, &symptoms{})
	t.Continues = true
	s.transitions = append(s.transitions, t)
}

// otherProcess reports whether the server has restarted since the reading that was saved. Its
// process began at another time, its counters did, or one of them is lower.
func (e *engine) otherProcess(v *window.View, r *reading, process float64) bool {
	if !window.SameStart(e.Process, process) {
		return true
	}
	for _, total := range []int{generatedTokens, estimatedFLOPs, promptTokens} {
		if r.received[total] < e.last.received[total] {
			return true
		}
	}
	return v.Began(input.GenerationTokens) > e.resumption.saved
}

// resetDiagnosis begins the diagnosis anew. What was learned stays.
func (e *engine) resetDiagnosis() {
	*e = engine{
		saved:  saved{First: e.First, Reported: notReported},
		number: e.number, attributes: e.attributes, began: e.at, at: e.at, baseline: e.baseline, peers: e.peers, model: e.model,
		blocks: e.blocks, memory: e.memory, listed: e.listed, follows: notReported,
	}
	e.memory.add(e)
}

// partial reports whether a reading is not to be judged, because it is of a part of the first
// window since a diagnosis was resumed: the rest of that window was not seen. It neither ends harm
// nor makes an engine unknown. The first one has no window at all, and so only what its gauges show
// counts. What was reported before stays, for at most one window.
func (e *engine) partial(settings *Settings, r *reading, raw Condition) bool {
	if e.resumption == nil {
		return false
	}
	if r.At-e.resumption.from >= int64(settings.Window) {
		e.resumption = nil
		return false
	}
	switch raw {
	case Unknown:
		return e.still != ambiguous
	case Degraded:
		return r.At == e.resumption.from
	case Healthy, Idle:
		return e.Reported.Harms()
	default:
		return false
	}
}

// described reports whether the catalogue has a detail of a cause. A stored one becomes an
// attribute, and could otherwise be any text.
func described(c Cause, detail string) bool {
	cause, _ := catalog.CauseByName(c.String())
	return detail == "" || slices.ContainsFunc(cause.Details, func(d catalog.Detail) bool { return d.Name == detail })
}
