package diagnose

import (
	"encoding/json"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

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

// savedEngine is the stored form of an engine.
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
	data, err := json.Marshal(saved)
	if len(data) > maxSavedServer {
		// Escaped characters take more room. That the server was read matters most.
		saved.Engines = nil
		data, err = json.Marshal(saved)
	}
	if err != nil {
		return nil
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

// beginServer reads the stored form of the server, once.
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
