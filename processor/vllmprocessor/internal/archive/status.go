package archive

import (
	"errors"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// Status reports the component status of a processor: a recoverable error while a read
// or a write of its storage has failed, OK after the next write of the same states that
// succeeds. It reports changes only. No batch waits for its lock.
type Status struct {
	mu sync.Mutex
	// host is nil before the start and once the shutdown has begun.
	host component.Host
	// failing has the kinds of states, by key, whose last access failed.
	failing map[string]bool
}

// errStorage says what fails and what to do. The storage's own error is in the log.
var errStorage = errors.New("the storage cannot be read or written, so objectives, baselines and diagnoses would be lost by a restart; " +
	"see the log for the reason, and check the disk, the folder and its permissions")

// Start begins to report to a host.
func (s *Status) Start(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// Stop ends the reports: the service reports the shutdown.
func (s *Status) Stop() { s.Start(nil) }

func (s *Status) accessed(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.failing) > 0
	if err == nil {
		delete(s.failing, key)
	} else {
		if s.failing == nil {
			s.failing = map[string]bool{}
		}
		s.failing[key] = true
	}
	now := len(s.failing) > 0
	switch {
	case s.host == nil || now == before:
	case now:
		componentstatus.ReportStatus(s.host, componentstatus.NewRecoverableErrorEvent(errStorage))
	default:
		componentstatus.ReportStatus(s.host, componentstatus.NewEvent(componentstatus.StatusOK))
	}
}
