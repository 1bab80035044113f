package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// process identifies a server process by when it started.
type process struct {
	// named is the start in the words of the server, by its own clock; 0 if unknown.
	named pcommon.Timestamp
	// start is the start by our clock; 0 where it would be after the scrape.
	start pcommon.Timestamp
}

func (p process) known() bool { return p.named != 0 }

// moment is the best that is known of when the process started.
func (p process) moment() pcommon.Timestamp {
	if p.start != 0 {
		return p.start
	}
	return p.named
}

// behind is by how much the server's clock is behind ours; 0 where the server does
// not report its time, or may have the same. The server reports whole seconds,
// and the time is one between the request and the answer. The value is the least
// that agrees with this, so that nothing begins later than it did.
func (s Scrape) behind() time.Duration {
	until := s.ServerTime.Add(time.Second)
	if s.ServerTime.IsZero() || s.Time.Before(until) && !s.ServerTime.After(s.Answered) {
		return 0
	}
	return s.Time.Sub(until)
}

// ours converts a time of the server's clock to ours; 0 for what is no time.
func (s Scrape) ours(at pcommon.Timestamp) pcommon.Timestamp {
	if at == 0 {
		return 0
	}
	return pcommon.Timestamp(max(0, int64(at)+int64(s.behind())))
}

// process returns the process that answered; none where the page does not name its
// start, or names one that lies too far ahead to be one.
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
	// unsure: the server names the same start, and its clock has moved meanwhile. That
	// is the same process after its clock was set, or another one of a machine whose
	// clock begins anew at each boot.
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
	// clockMoved is how much a clock must have moved so that this explains why a start
	// is another one. An answer that takes long looks like a clock that moved less.
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

// settleProcess returns the process of a scrape as it is remembered: the start of
// one that is the same stays where it was.
func (t *Target) settleProcess(p process, r resets) process {
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
