package diagnose

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// blockedScrapes is the number of scrapes that have to fail for a reason that waiting
// does not mend until a server that was never read is unreachable.
const blockedScrapes = 3

// server is what is known of the server before the engines: whether it was ever read,
// how its scrapes fail, and whether it is being taken away.
type server struct {
	begun bool
	// read is true once a scrape has succeeded, also before the collector restarted.
	read bool
	// failure is how the newest scrape failed, in the receiver's words; empty where it
	// succeeded or the receiver does not report it.
	failure string
	// reason is the newest reason that waiting does not mend, of which there were
	// blocked scrapes, and others after it that failed otherwise.
	reason          Because
	blocked, others int
	// counted is the time of the newest scrape that was counted.
	counted int64
	// draining is true while the pod of the server is being deleted.
	draining bool
	// restored are the engines that the server had before the collector restarted, until
	// it is seen what it has now.
	restored []savedEngine
}

// blocking are the failures that waiting does not mend, and what an operator has to
// know of each. A server that starts gives the others: it refuses connections, does not
// answer in time, or something before it says 503.
var blocking = map[string]Because{
	"unauthorized": Unauthorized, "forbidden": Forbidden, "not_found": NotFound, "dns": NoAddress, "tls": NotTrusted,
	"redirect": NoMetrics, "not_prometheus": NoMetrics, "too_large": NoMetrics, "status": NoMetrics,
}

// observe takes what a group without an engine says.
func (s *server) observe(v *window.View) {
	if terminating := value(v.Gauge(collect.PodTerminating)); signal.Known(terminating) {
		s.draining = terminating != 0
	}
	for label, is := range v.States(collect.ScrapeFailure) {
		if is != 0 {
			s.failure = label
		}
	}
}

// count takes the outcome of a scrape: whether it succeeded, 1 or 0. A batch can come
// again, or in parts; it is one scrape.
func (s *server) count(up float64, at int64) {
	if !signal.Known(up) || at == s.counted {
		return
	}
	s.counted = at
	reason := blocking[s.failure]
	switch {
	case up == 1:
		s.read, s.failure = true, ""
		s.reason, s.blocked, s.others = Judged, 0, 0
	case reason != Judged:
		s.reason, s.others = reason, 0
		s.blocked++
	default:
		// One that is refused between two that are not found mends nothing.
		s.others++
		if s.others >= blockedScrapes {
			s.reason, s.blocked = Judged, 0
		}
	}
}

// because says why a server that was never read cannot be judged.
func (s *server) because() Because {
	if s.read {
		return Judged
	}
	return s.reason
}

// certain reports whether a condition has been waited for already, so that the hold
// adds nothing.
func (s *server) certain(c Condition) bool {
	return c == Unreachable && !s.read && s.blocked >= blockedScrapes
}

// unread returns the condition of a server of which no engine is known, and that was
// first seen some time ago, in nanoseconds.
func (s *server) unread(settings *Settings, age int64) Condition {
	switch {
	case s.read:
		return Unreachable
	case s.blocked >= blockedScrapes:
		return Unreachable
	case s.because() != Judged:
		return Unknown
	case age < int64(settings.StartTimeout):
		return Starting
	}
	return Unreachable
}

// restore makes the engines that a server had before the collector restarted.
func (s *State) restore(r *window.Resource) {
	for i := range s.server.restored {
		saved := &s.server.restored[i]
		e := s.engine(r.Expect(saved.Attributes), r.Time())
		e.at = r.Time()
		saved.resume(e)
	}
	s.server.restored = nil
}

// unreachable judges the engines of a server that does not answer.
func (s *State) unreachable(settings *Settings, at int64) {
	if len(s.engines) == 0 {
		s.include(&engine{number: ServerOnly, first: at, baseline: learn.NewBaseline(), follows: unheard})
	}
	for _, e := range s.engines {
		e.listed, e.waits = true, false
		condition := Unreachable
		if e.number == ServerOnly {
			condition = s.server.unread(settings, at-e.first)
		}
		if s.server.draining {
			condition = Draining
		}
		e.last.At, e.last.Signals = at, signal.Unknown()
		e.last.runningNow, e.last.waitingNow = 0, 0
		e.settle(settings, s, condition, at, &symptoms{})
	}
}
