package refused

import (
	"math"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// total is how many bytes of refused ends are kept for up to 512 sources. Each has an equal share of
	// it, at most 1 MiB; beyond 512 sources each has 64 KiB, so that none keeps nothing.
	total       = 32 << 20
	least, most = 64 << 10, 1 << 20
	// tries is how often ends are sent that are refused permanently. A wrong credential is such a refusal,
	// too, so one is not enough.
	tries = 5
)

// Share returns how many bytes of refused ends may be kept for each of some sources.
func Share(sources int) int { return min(most, max(least, total/max(1, sources))) }

// Ledger has the ends of one source, a target or a server, that no consumer has accepted
// yet. No series in it has had a point in a later batch. Its zero value is empty.
type Ledger struct {
	mu      sync.Mutex
	refused Ends
	sent    []*Sent
	closed  bool
	// permanent counts the batches with ends in a row that were refused permanently.
	permanent int
}

// Sent are the ends in a batch that is on its way to the next consumer.
type Sent struct {
	ledger *Ledger
	ends   Ends
}

// NewLedger returns a ledger with ends that were refused.
func NewLedger(refused Ends) *Ledger { return &Ledger{refused: refused} }

// Idle reports whether no end is refused or on its way: a batch without ends need not be
// passed to Send.
func (l *Ledger) Idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.refused) == 0 && len(l.sent) == 0
}

// Send is called with each batch of the source before the next consumer gets it. It appends
// the refused ends with the time at, without those of series that have a point in the batch,
// and returns all ends of the batch; nil without any.
func (l *Ledger) Send(at pcommon.Timestamp, batch pmetric.Metrics) *Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, earlier := range l.sent {
		earlier.ends = earlier.ends.without(batch)
	}
	l.refused.AppendTo(at, batch)
	l.refused = nil
	ends, _ := Of(batch, math.MaxInt)
	if len(ends) == 0 {
		return nil
	}
	sent := &Sent{l, ends}
	l.sent = append(l.sent, sent)
	return sent
}

// Done records whether the next consumer accepted the batch. If not, the ends are kept for the
// next batch as far as they fit into room bytes; it returns the number of the others. After five
// permanent refusals in a row they are not kept: a permanent error may be about the ends themselves.
func (s *Sent) Done(err error, room int) (dropped int) {
	if s == nil {
		return 0
	}
	l := s.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = slices.DeleteFunc(l.sent, func(other *Sent) bool { return other == s })
	if err == nil {
		l.permanent = 0
		return 0
	}
	if consumererror.IsPermanent(err) {
		// Perhaps the ends are what the consumer does not take. Then each later batch would be lost with them.
		l.permanent++
		if l.permanent == tries {
			l.permanent = 0
			return s.ends.Count()
		}
	}
	if room -= len(l.refused); l.closed {
		room = 0
	}
	ends := s.ends
	if len(ends) > room {
		ends, dropped = Of(ends.metrics(), room)
	}
	l.refused = append(l.refused, ends...)
	return dropped
}

// Close returns the refused ends. What is refused later is dropped.
func (l *Ledger) Close() Ends {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	refused := l.refused
	l.refused = nil
	return refused
}
