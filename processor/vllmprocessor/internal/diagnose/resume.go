package diagnose

import (
	"iter"
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
func (e *engine) save(more func(*savedDiagnosis)) []byte {
	if !e.memory.any() || e.last.At == 0 || e.reported.Because == JustSeen {
		return nil
	}
	d := &savedDiagnosis{
		At: e.last.At, First: e.first, Process: e.process, SharesAt: e.sharesAt, Raw: e.raw, RawSince: e.rawSince, Bad: e.bad, BadSince: e.badSince, Evident: e.evident,
		Resumed: e.resumed, Restarted: e.restarted, Loop: e.restarts.since, Ratio: e.ratio, BrokenAt: e.brokenAt, Grown: e.grownSince,
		Over: e.backlog.over, Queued: e.backlog.since, Waiting: e.without.waiting, Without: e.without.without,
	}
	v := &e.reported
	d.Verdict = savedVerdict{
		v.Condition, v.Because, v.Primary, v.Explained, bits(&v.Contributing), bits(&v.Notices), v.Reference, v.Objective,
	}
	for c := range NumCauses {
		if e.shares[c] > 0 {
			d.Shares = append(d.Shares, savedCause{Cause: c, Share: e.shares[c]})
		}
		if e.details.shown[c] {
			d.Details = append(d.Details, savedCause{Cause: c, Detail: e.details.reported[c]})
		}
	}
	for f, one := range e.changes {
		d.Changes[f] = savedTest{Score: one.score, On: one.on}
	}
	for f, one := range e.slowerThanPeers {
		d.Peers[f] = savedTest{Score: one.score, On: one.on}
	}
	for h, one := range e.harms {
		d.Harms[h] = savedTest{one.score, one.on, one.clear}
	}
	if h := &e.hidden; h.at > 0 {
		d.Hidden = savedHidden{h.moving, h.quiet, h.slow, h.shown, h.changes, h.followed, h.since}
	}
	d.Canary = e.canary.since
	d.Felt = savedFelt{e.felt.on, e.felt.great, e.felt.first, e.felt.gap}
	for i, one := range e.last.received {
		d.Received[i] = savedNumber(one)
	}
	if p := &e.progress; p.at > 0 {
		d.Standing = &savedStanding{
			p.at, p.scrapes, [2]savedNumber{savedNumber(p.shown[0]), savedNumber(p.shown[1])}, p.live, savedNumber(p.before), savedNumber(p.balance), p.settled, savedNumber(p.left), savedNumber(p.generated), p.later, p.busy, p.asked,
		}
		if differ(e.last.progress[generatedTokens], e.last.received[generatedTokens]) {
			// The totals since before a restart cannot be compared with those of a new collector.
			d.Standing.Before = savedNumber(math.NaN())
		}
	}
	if more != nil {
		more(d)
	}
	return d.encode()
}

// resume continues a stored diagnosis, of an engine or a pool that is seen at a time for the first
// time. It is not used where more time has passed than that after which a server that is silent is
// forgotten: a collector that had not restarted would not know it either.
func (e *engine) resume(settings *Settings, data []byte, at int64) *savedDiagnosis {
	d, sound := decodeDiagnosis(data)
	if !sound || at < d.At || at-d.At > int64(settings.MaxStaleness) {
		return nil
	}
	e.resumption = &resumption{saved: d.At}
	v := &d.Verdict
	e.reported = Verdict{
		Condition: v.Condition, Because: v.Because, Primary: v.Primary, Explained: v.Explained,
		Contributing: causesOf(v.Contributing), Notices: causesOf(v.Notices), Reference: v.Reference, Objective: v.Objective,
	}
	e.reported.Severity = e.reported.severity()
	for _, s := range d.Shares {
		e.shares[s.Cause] = s.Share
	}
	for _, s := range d.Details {
		if !described(s.Cause, s.Detail) {
			continue
		}
		e.details.reported[s.Cause], e.details.shown[s.Cause] = s.Detail, true
	}
	e.sharesAt, e.raw, e.rawSince, e.bad, e.badSince, e.evident, e.resumed = d.SharesAt, d.Raw, d.RawSince, d.Bad, d.BadSince, d.Evident, d.Resumed
	e.restarted, e.restarts.since, e.ratio, e.brokenAt, e.grownSince = d.Restarted, d.Loop, d.Ratio, d.BrokenAt, d.Grown
	e.backlog.over, e.backlog.since, e.without = d.Over, d.Queued, backlogs{d.Waiting, d.Without}
	for f, one := range d.Changes {
		e.changes[f] = change{one.Score, one.On}
	}
	for f, one := range d.Peers {
		e.slowerThanPeers[f] = change{one.Score, one.On}
	}
	for h, one := range d.Harms {
		e.harms[h] = evidence{one.Score, one.On, one.Clear}
	}
	e.felt = felt{on: d.Felt.On, great: d.Felt.Great, first: d.Felt.First, gap: d.Felt.Gap, clearAt: at, greatAt: at}
	if h := &d.Hidden; *h != (savedHidden{}) {
		e.hidden = hidden{h.Moving, h.Quiet, h.Shown, h.Changes, h.Followed, h.Slow, at, h.Since}
	}
	e.canary.since = d.Canary
	if d.First > 0 {
		e.first = d.First
	}
	e.process, e.last.At, e.last.Signals = d.Process, d.At, signal.Unknown()
	for i, one := range d.Received {
		e.last.received[i] = float64(one)
	}
	if p := d.Standing; p != nil {
		e.progress = progress{
			at: p.At, scrapes: p.Scrapes, shown: [2]float64{float64(p.Shown[0]), float64(p.Shown[1])}, live: p.Live, before: float64(p.Before),
			balance: float64(p.Balance), settled: p.Settled, left: float64(p.Left), generated: float64(p.Generated), later: p.Later, busy: p.Busy, asked: p.Asked,
		}
	}
	e.memory.add(e)
	if e.reported.Harms() {
		e.memory.share(&e.shares)
	}
	return d
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
			moved := !signal.Known(r.received[generatedTokens]) || !signal.Known(e.last.received[generatedTokens])
			for i, now := range r.received {
				moved = moved || differ(now, e.last.received[i])
			}
			if e.progress.was = r.progress; moved {
				e.progress = progress{}
			}
		}
	} else if e.resumption != nil && r.elapsed == 0 && r.At-e.resumption.from >= int64(settings.Window) {
		// The scrapes are too far apart now, so that no reading would ever end what was found before.
		e.harms, e.changes, e.restarts, e.resumption = [numHarms]evidence{}, [numFactors]change{}, restarts{}, nil
		e.felt = felt{}
	}
	if s.process > 0 {
		e.process = s.process
	}
	r.restarted = max(r.restarted, e.restarted)
	e.restarted = r.restarted
}

// continues notes once that a diagnosis was resumed: the log of the new collector does not have it.
func (e *engine) continues(s *State) {
	if e.resumption.noted {
		return
	}
	e.resumption.noted = true
	t := e.transition(s, e.reported, &symptoms{})
	t.Continues = true
	s.transitions = append(s.transitions, t)
}

// otherProcess reports whether the server has restarted since the reading that was saved. Its
// process began at another time, its counters did, or one of them is lower.
func (e *engine) otherProcess(v *window.View, r *reading, process float64) bool {
	if !window.SameStart(e.process, process) {
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
	fresh := engine{
		number: e.number, attributes: e.attributes, first: e.first, began: e.at, at: e.at, baseline: e.baseline, peers: e.peers, model: e.model,
		blocks: e.blocks, memory: e.memory, listed: e.listed, follows: notReported, reported: notReported,
	}
	*e = fresh
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
		return e.reported.Harms()
	default:
		return false
	}
}

// Diagnoses goes through the diagnoses of the engines, in the form that Keeper takes.
func (s *State) Diagnoses() iter.Seq2[[]input.Attribute, []byte] {
	return func(yield func([]input.Attribute, []byte) bool) {
		for _, e := range s.engines {
			if e.number == ServerOnly {
				continue
			}
			if data := e.save(nil); data != nil && !yield(e.attributes, data) {
				return
			}
		}
	}
}

// bits are the causes of a set.
func bits(of *[NumCauses]bool) (out uint32) {
	for c, is := range of {
		if is {
			out |= 1 << c
		}
	}
	return out
}

func causesOf(bits uint32) (out [NumCauses]bool) {
	for c := range out {
		out[c] = bits>>c&1 == 1
	}
	return out
}

// described reports whether the catalogue has a detail of a cause. A stored one becomes an
// attribute, and could otherwise be any text.
func described(c Cause, detail string) bool {
	cause, _ := catalog.CauseByName(c.String())
	return detail == "" || slices.ContainsFunc(cause.Details, func(d catalog.Detail) bool { return d.Name == detail })
}
