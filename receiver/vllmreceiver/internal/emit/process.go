package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// process identifies a server process by its start.
type process struct {
	// named is the start that the server reports, by its own clock; 0 if unknown.
	named pcommon.Timestamp
	// start is the start by our clock; 0 where it would be after the scrape.
	start pcommon.Timestamp
}

func (p process) known() bool { return p.named != 0 }

// moment is the best known time at which the process started.
func (p process) moment() pcommon.Timestamp {
	if p.start != 0 {
		return p.start
	}
	return p.named
}

// behind returns by how much the server's clock is behind ours. It returns 0 if the
// server does not report its time, or if both clocks may agree. The server reports
// whole seconds, at some time between the request and the answer. The result is the
// least value that agrees with this, so that no start time is too late.
func (s Scrape) behind() time.Duration {
	until := s.ServerTime.Add(time.Second)
	if s.ServerTime.IsZero() || s.Time.Before(until) && !s.ServerTime.After(s.Answered) {
		return 0
	}
	return s.Time.Sub(until)
}

// ours converts a time of the server's clock to ours. It returns 0 for 0.
func (s Scrape) ours(at pcommon.Timestamp) pcommon.Timestamp {
	if at == 0 {
		return 0
	}
	return pcommon.Timestamp(max(0, int64(at)+int64(s.behind())))
}

// process returns the process that answered. It is unknown if the body does not name
// its start, or names one too far in the future.
func (s Scrape) process() process {
	if s.Plan.ProcessStart == exposition.NoSlot {
		return process{}
	}
	now := pcommon.NewTimestampFromTime(s.Time)
	p := process{named: unixTime(s.Snapshot.Values[s.Plan.ProcessStart])}
	p.start = s.ours(p.named)
	switch {
	case p.start > now+skew:
		return process{}
	case p.start > now:
		p.start = 0
	}
	return p
}

// relation is how the process that answers is related to the target's own one.
type relation uint8

const (
	// unrelated: one of them is not known.
	unrelated relation = iota
	// same: the start is the same.
	same
	// unsure: the server names the same start, but its clock has moved. Either this is
	// the same process and its clock was set, or it is another process on a machine
	// whose clock begins again at each boot.
	unsure
	// successor: it started after the target's own.
	successor
	// neighbor: it ran while the target's own still answered.
	neighbor
)

const (
	// startJitter is by how much the start of one process may move: programs that
	// compute it from the time of boot follow the adjustments of the machine's clock.
	startJitter = pcommon.Timestamp(time.Second)
	// convertedJitter is the same for starts that were converted to our clock.
	convertedJitter = pcommon.Timestamp(2 * time.Second)
	// clockMoved is by how much a clock must have moved before that explains a changed
	// start. A slow answer looks like a smaller move.
	clockMoved = pcommon.Timestamp(time.Minute)
)

// relate returns how a process is related to the target's own one.
func (t *Target) relate(p process) relation {
	own := t.process
	if !t.Known() || !p.known() || !own.known() {
		return unrelated
	}
	moved := apart(p.named, own.named)
	both := p.start != 0 && own.start != 0
	switch {
	case moved <= startJitter && both && apart(p.start, own.start) > clockMoved:
		return unsure
	case moved <= startJitter:
		return same
	case moved > clockMoved && both && apart(p.start, own.start) <= convertedJitter:
		// The start followed the clock.
		return same
	case p.moment()+startJitter < own.moment(), p.start != 0 && p.start+skew < t.lastTime:
		return neighbor
	}
	return successor
}

func apart(a, b pcommon.Timestamp) pcommon.Timestamp { return max(a, b) - min(a, b) }

// resolveProcess returns the process of a scrape for the next comparison. If it is the
// same process as before, it keeps the start from before.
func (t *Target) resolveProcess(p process, r resets) process {
	switch t.relate(p) {
	case same:
		p.start = t.process.start
	case unsure:
		if !r.any() {
			p.start = t.process.start
		}
	}
	return p
}

// Several server processes may answer at one address, as behind a load balancer or
// a Service. Under one identity their counters would fall and rise, and every rise
// would be read as an increase that did not happen. The answers are distinguished by
// the start of their process, if the bodies name it. The answers of one process are
// emitted and those of the others dropped, until that process has been silent for
// patience.

const (
	// skew is by how much the clocks of a server and of the collector may differ. Where
	// the server reports its time, its clock is converted to ours first.
	skew = pcommon.Timestamp(5 * time.Minute)
	// patience is how long a process may be silent while others answer for it.
	patience = pcommon.Timestamp(5 * time.Minute)
)

// Foreign reports whether another process answered than the one whose points are
// emitted, although that one probably still runs. The other process started earlier, or
// it already ran when the target's own answered last.
func (t *Target) Foreign(s Scrape) bool {
	return t.coexists(s) && !t.silent(pcommon.NewTimestampFromTime(s.Time))
}

// coexists reports whether the process of a scrape ran while the target's own did.
func (t *Target) coexists(s Scrape) bool { return t.relate(s.process()) == neighbor }

// silent reports whether the target's own process has not answered for so long
// that another one takes its place.
func (t *Target) silent(now pcommon.Timestamp) bool { return now >= t.lastTime+patience }

// emitForeign appends only the points about the scrape itself: another process
// answered. The series of the target's own process do not change.
func (t *Target) emitForeign(s Scrape, own Own, out pmetric.Metrics) Report {
	t.own.emit(own, pcommon.NewTimestampFromTime(s.Time), t.scope(out))
	report := Report{Foreign: true}
	report.Dropped[normalize.ReasonOtherProcess] = s.Plan.Points
	return report
}

// takeOver prepares for another process in place of the target's own, which is gone.
// The start of each of its series is unknown.
func (t *Target) takeOver() {
	for i := range t.states {
		st := &t.states[i]
		t.states[i] = state{live: st.live, admitted: st.admitted}
	}
	clear(t.vanished)
	t.forgot, t.restarted = false, false
	t.lastTime, t.process = 0, process{}
}
