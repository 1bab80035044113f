package diagnose

import (
	"encoding/json"
	"slices"
	"time"

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
	// operates is since when an operation of the sleep mode has been in progress, in Unix nanoseconds; 0
	// where none is.
	operates int64
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

func (s *server) observe(v *window.View, at int64) {
	if operations := value(v.Gauge(input.SleepOperations)); signal.Known(operations) {
		since(&s.operates, operations > 0, at)
	}
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

// sleepOperation is how long an operation of the sleep mode can take: the highest bound of vLLM's
// histogram of their durations (vllm/entrypoints/serve/dev/sleep/metrics.py).
const sleepOperation = 10 * time.Minute

// toSleep reports whether the server puts its engines to sleep, or wakes them. What it says of their
// state changes afterwards.
func (s *server) toSleep(at int64) bool {
	return s.operates > 0 && at-s.operates < int64(sleepOperation)
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

const (
	// leastScrapes is how many scrapes decide whether a server alternates between answering
	// and failing, where the last window has fewer: two of each kind.
	leastScrapes = 4
	// mostScrapes bounds what is kept of a server that is scraped more often than each
	// second.
	mostScrapes = 64
	// outage is the least time between the first and the last of some scrapes that failed
	// in a row: one request of the server's that takes long cannot be an outage. It is more
	// than a scrape's usual timeout of 10 s.
	outage = 20 * time.Second
)

// contact decides from the outcomes of scrapes whether a server that was read before is
// lost, that is: can no longer be read. One failed scrape decides nothing. Neither
// does the hold of the diagnosis apply: the rules below wait themselves.
type contact struct {
	// recent are the outcomes of the last window, oldest first, at least leastScrapes.
	recent []outcome
	lost   bool
	// ended is when the server was found again, in Unix nanoseconds; 0 for never. again is
	// true where it was lost once more soon after that.
	ended int64
	again bool
}

// outcome is that of one scrape at a time in Unix nanoseconds.
type outcome struct {
	at     int64
	failed bool
}

// observe takes the outcome of a scrape.
//
// The server is lost when scrapes have failed in a row for 20 s or half a window, whichever
// is shorter, or when half of the recent ones failed: these are those of the last window,
// and at least the last four. Both need two failed scrapes.
//
// It is found when two scrapes in a row have succeeded. Where it was lost again within
// hold windows after that, it alternates, and is found when none of the recent scrapes
// failed: a server that answers twice, fails twice and so on is lost all the time.
func (c *contact) observe(settings *Settings, failed bool, at int64) {
	if last := len(c.recent) - 1; last >= 0 && c.recent[last].at > at {
		// The clock was set back.
		c.recent, c.ended = c.recent[:0], 0
	}
	c.recent = append(c.recent, outcome{at, failed})
	for c.tooMany(int64(settings.Window)) {
		c.recent = slices.Delete(c.recent, 0, 1)
	}
	failures := 0
	for _, o := range c.recent {
		if o.failed {
			failures++
		}
	}
	n, since := c.run()
	switch {
	case failed && !c.lost:
		span := min(int64(outage), int64(settings.Window)/2)
		if failures < 2 || 2*failures < len(c.recent) && (n < 2 || at-since < span) {
			return
		}
		c.lost, c.again = true, c.ended > 0 && c.firstFailure()-c.ended < int64(settings.Hold)*int64(settings.Window)
	case !failed && c.lost && n >= 2 && (!c.again || failures == 0):
		c.lost, c.ended = false, at
	}
}

// tooMany reports whether the oldest outcome is not one of the recent ones any more. Two are
// kept however far apart they are.
func (c *contact) tooMany(window int64) bool {
	n := len(c.recent)
	age := c.recent[n-1].at - c.recent[0].at
	return n > mostScrapes || n > leastScrapes && age >= window || n > 2 && age >= leastScrapes*window
}

// run is the number of the newest scrapes with the same outcome, and the time of the first
// of them; both are 0 before the first scrape.
func (c *contact) run() (n int, since int64) {
	for i := len(c.recent) - 1; i >= 0 && c.recent[i].failed == c.recent[len(c.recent)-1].failed; i-- {
		n, since = n+1, c.recent[i].at
	}
	return n, since
}

// firstFailure is the time of the first recent failure since the server was found.
func (c *contact) firstFailure() int64 {
	for _, o := range c.recent {
		if o.failed && o.at > c.ended {
			return o.at
		}
	}
	return 0
}

// failingSince is the time of the first of the newest scrapes that all failed; 0 where the
// newest succeeded.
func (c *contact) failingSince() int64 {
	if n, since := c.run(); n > 0 && c.recent[len(c.recent)-1].failed {
		return since
	}
	return 0
}

// interval is the longest time between two of the last four scrapes; 0 where it is not known. Where two collectors scrape a
// server, the newest two can be as close as can be.
func (c *contact) interval() (longest int64) {
	for i := max(1, len(c.recent)-3); i < len(c.recent); i++ {
		longest = max(longest, c.recent[i].at-c.recent[i-1].at)
	}
	return longest
}

const (
	// serverVersion goes up when the form of a saved server changes.
	serverVersion = 1
	// maxSavedServer bounds the saved form of a server, in bytes. Engines beyond it are
	// left out: after a restart of the collector they are known when they are seen.
	maxSavedServer = 32 << 10
)

// savedServer is the stored form of a server that was read, so that a collector which
// restarts while the server is down does not take it for a new one.
type savedServer struct {
	Version int `json:"server"`
	// At is the time of the newest reading in Unix nanoseconds.
	At      int64         `json:"at"`
	Engines []savedEngine `json:"engines,omitempty"`
}

type savedEngine struct {
	Attributes []input.Attribute `json:"attributes"`
	// First is when it was seen first, in Unix nanoseconds.
	First int64 `json:"first"`
	// Unreachable is true where that was reported. Since is the time of the first of the
	// newest scrapes that all failed, in Unix nanoseconds; 0 where the newest succeeded.
	Unreachable bool  `json:"unreachable,omitempty"`
	Since       int64 `json:"since,omitempty"`
}

// first returns when an engine was seen first: before the collector restarted, or now.
func (s *server) first(attributes []input.Attribute, now int64) int64 {
	for i := range s.restored {
		if saved := &s.restored[i]; saved.First > 0 && slices.Equal(saved.Attributes, attributes) {
			return min(saved.First, now)
		}
	}
	return now
}

// resume continues the contact with a server as it was before the collector restarted.
func (c *contact) resume(engines []savedEngine) {
	for i := range engines {
		e := &engines[i]
		if e.Since > 0 {
			c.recent = []outcome{{e.Since, true}}
		}
		c.lost = c.lost || e.Unreachable
	}
}

// encodeServer returns the stored form of the server; nil where it was never read.
func (s *State) encodeServer() []byte {
	if !s.server.read {
		return nil
	}
	saved := savedServer{Version: serverVersion, Engines: s.server.restored}
	size := 0
	for _, e := range s.engines {
		saved.At = max(saved.At, e.last.At)
	}
	for e := range s.known() {
		one := savedEngine{Attributes: e.attributes, First: e.First, Unreachable: e.Reported.Condition == Unreachable, Since: s.server.contact.failingSince()}
		for _, a := range e.attributes {
			size += 2 * (len(a.Name) + len(a.Value) + 32)
		}
		if size += 128; size > maxSavedServer {
			break
		}
		saved.Engines = append(saved.Engines, one)
	}
	if saved.At == 0 {
		return nil
	}
	data, _ := json.Marshal(saved) // Texts and whole numbers can always be encoded.
	if len(data) > maxSavedServer {
		// Escaped characters take more room. That the server was read matters most.
		saved.Engines = nil
		data, _ = json.Marshal(saved)
	}
	return data
}

// decodeServer returns the server of a stored form; false where it is another one.
func decodeServer(data []byte) (saved savedServer, sound bool) {
	if !decode(data, &saved) || saved.Version != serverVersion || saved.At <= 0 {
		return savedServer{}, false
	}
	return saved, true
}

func (s *State) beginServer() {
	if s.server.begun {
		return
	}
	s.server.begun = true
	if saved, sound := decodeServer(s.begin(Server, nil)); sound {
		s.server.read, s.server.restored = true, saved.Engines
		s.server.contact.resume(saved.Engines)
	}
}
