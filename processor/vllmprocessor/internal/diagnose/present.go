package diagnose

import (
	"cmp"
	"iter"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Present is an engine, or a server of which no engine is known, as it is reported now.
type Present struct {
	// Number is that of the group of the engine, or ServerOnly.
	Number     int
	Attributes []input.Attribute
	Verdict    Verdict
	// Detail is that of the primary cause; empty without one.
	Detail string
	// Since is when the readings first showed it, At the time of the newest, both in Unix nanoseconds.
	Since, At int64
	// Read is true where the server was ever read. Resumed is true while the diagnosis is that from before the collector
	// restarted: readings since then do not show yet that it still is so.
	Read, Resumed bool
	// Failure is the outcome of the last scrape, where it failed; "failed" where the sender says no outcome.
	Failure string
	// Interval is the longest time between two of the last four scrapes in nanoseconds; 0 where it is not known.
	Interval int64

	engine *engine
}

// Signals returns the newest value of a signal and what is usual; NaN where they are not known.
func (p *Present) Signals(s signal.Signal) (value, usual float64) {
	return p.engine.last.Signals[s], p.engine.baseline.Usual(s)
}

// Present goes through the engines of the resource, and those of a server that has none. What it yields is valid until
// the next reading.
func (s *State) Present() iter.Seq[Present] {
	return func(yield func(Present) bool) {
		for _, e := range s.engines {
			if e.number == ServerOnly && len(s.engines) > 1 {
				continue
			}
			p := e.present()
			p.Read, p.Failure = s.server.read || e.number != ServerOnly, s.server.failure
			if r := e.resumption; r != nil && e.Reported.Condition != Unreachable {
				p.Resumed = e.Reported.Harms() || e.last.At <= max(r.from, r.saved)
			}
			p.Since = e.sinceWith(s)
			if s.server.contact.failingSince() > 0 {
				p.Failure = cmp.Or(p.Failure, "failed")
			}
			p.Interval = s.server.contact.interval()
			if !yield(p) {
				return
			}
		}
	}
}

func (e *engine) present() Present {
	p := Present{Number: e.number, Attributes: e.attributes, Verdict: e.Reported, Since: e.shownSince(), At: e.last.At, engine: e}
	if e.Reported.Explained {
		p.Detail = e.detail(e.Reported.Primary)
	}
	return p
}

// Explain says why an engine that Present yields is as it is, as the change to its condition would say it now.
func (s *State) Explain(p *Present) Transition { return p.engine.transition(s, p.Verdict, &symptoms{}) }

// Present returns the pool as it is reported now.
func (r *Report) Present() Present { return r.present() }

// Explain says why a pool is as it is.
func (r *Report) Explain() Transition { return r.transition(&State{}, r.Reported, &symptoms{}) }
