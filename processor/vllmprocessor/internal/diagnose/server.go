package diagnose

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// blockedScrapes is after how many scrapes a server that was never read is unreachable,
// where they fail for a reason that waiting does not mend.
const blockedScrapes = 3

// server is what is known of the server in front of the engines: whether it was ever
// read, how its scrapes fail, and whether its pod is being deleted.
type server struct {
	begun bool
	// read is true once a scrape has succeeded, also before the collector restarted.
	read bool
	// failure is the outcome that the receiver reports for a failed scrape; empty where
	// the newest scrape succeeded, or without an outcome.
	failure string
	// reason is the newest reason that waiting does not mend. blocked scrapes failed for
	// one, and others since then failed otherwise.
	reason          Because
	blocked, others int
	contact         contact
	// counted is the time of the newest counted scrape in Unix nanoseconds.
	counted int64
	// ready is true while Kubernetes says that the pod of the server is ready, draining while it
	// is being deleted.
	ready    bool
	draining bool
	// restored are the engines that the server had before the collector restarted, until
	// the server is read again.
	restored []savedEngine
}

// blocking are the failures that waiting does not mend. The others are also those of a
// server that starts: it refuses connections, does not answer in time, or a proxy in front
// of it answers 503.
var blocking = map[string]Because{
	"unauthorized": Unauthorized, "forbidden": Forbidden, "not_found": NotFound, "dns": NoAddress, "tls": NotTrusted, "plain_http": PlainHTTP,
	"redirect": NoMetrics, "not_prometheus": NoMetrics, "too_large": NoMetrics, "status": NoMetrics,
}

// observe reads a group without an engine.
func (s *server) observe(v *window.View) {
	if terminating := value(v.Gauge(input.PodTerminating)); signal.Known(terminating) {
		s.draining = terminating != 0
	}
	if ready := value(v.Gauge(input.PodReady)); signal.Known(ready) {
		s.ready = ready != 0
	}
	for label, is := range v.States(input.ScrapeFailure) {
		if is != 0 {
			s.failure = label.Value(0)
		}
	}
}

// count counts a scrape, of which up is 1 where it succeeded, else 0. A batch that is sent
// again or in parts is one scrape.
func (s *server) count(settings *Settings, up float64, at int64) {
	if !signal.Known(up) || at == s.counted {
		return
	}
	s.counted = at
	if up == 1 && s.restored != nil {
		// The server came back while the collector was away.
		s.contact = contact{}
	}
	if s.read = s.read || up == 1; s.read {
		s.contact.observe(settings, up != 1, at)
	}
	reason := blocking[s.failure]
	switch {
	case up == 1:
		s.failure = ""
		s.reason, s.blocked, s.others = Judged, 0, 0
	case reason != Judged:
		s.reason, s.others = reason, 0
		s.blocked++
	default:
		// A refused connection between two answers of 404 mends nothing.
		s.others++
		if s.others >= blockedScrapes {
			s.reason, s.blocked = Judged, 0
		}
	}
}

// because is why a server that was never read cannot be judged.
func (s *server) because() Because {
	if s.read {
		return Judged
	}
	return s.reason
}

// certain reports whether a condition is reported without the hold, because its own rule
// has waited already.
func (s *server) certain(c Condition) bool {
	return c == Unreachable && (s.contact.lost || !s.read && s.blocked >= blockedScrapes)
}

// unread returns the condition of a server without a known engine. age is the time since
// it was seen first, in nanoseconds.
func (s *server) unread(settings *Settings, age int64) Condition {
	switch {
	case s.read:
		return Unreachable
	case s.blocked >= blockedScrapes:
		return Unreachable
	case s.because() != Judged:
		return Unknown
	case age < int64(settings.StartTimeout) && !s.ready:
		return Starting
	}
	return Unreachable
}

// restore adds the engines that the server had before the collector restarted.
func (s *State) restore(settings *Settings, r *window.Resource) {
	for i := range s.server.restored {
		saved := &s.server.restored[i]
		e := s.engine(settings, r.Expect(saved.Attributes), r.Time())
		if e.at = r.Time(); e.resumption == nil {
			e.Reported.Condition, e.Reported.Because = Unknown, JustSeen
		} else {
			e.continues(s)
		}
	}
	s.server.restored = nil
}

// reportUnreachable judges the engines of a server that does not answer.
func (s *State) reportUnreachable(settings *Settings, at int64) {
	if len(s.engines) == 0 {
		s.include(&engine{number: ServerOnly, saved: saved{First: at}, baseline: signal.NewBaseline(), follows: notReported})
	}
	for _, e := range s.engines {
		e.listed, e.waits = true, false
		condition := Unreachable
		if e.number == ServerOnly {
			condition = s.server.unread(settings, at-e.First)
		}
		if s.server.draining {
			condition = Draining
		}
		e.last.At, e.last.Signals = at, signal.Unknown()
		e.last.runningNow, e.last.waitingNow, e.still = 0, 0, moving
		if condition == Unreachable && s.server.read && !s.server.contact.lost && e.memory.any() {
			// A failed scrape is not a reading: what was reported, and for how long something
			// else has shown, stays as it is.
			continue
		}
		e.report(settings, s, condition, at, &symptoms{})
	}
}
