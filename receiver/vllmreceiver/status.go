package vllmreceiver

import (
	"errors"
	"fmt"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
)

// receiverStatus reports the component status when it changes: a recoverable error while
// the last scrape of every target failed, or while there is no target because Kubernetes
// cannot be asked for targets, else OK.
type receiverStatus struct {
	// reporting is held while a status is reported. No goroutine waits for it: its holder
	// also reports the changes that others make in that time.
	reporting sync.Mutex

	mu   sync.Mutex
	host component.Host
	// last has the result of the last scrape of each target; failing and working count
	// these results.
	last             map[string]scrapeResult
	failing, working int
	// newest is the message of the newest failure.
	newest string
	// obstacle is why Kubernetes cannot be asked for targets; empty if it can.
	obstacle string
	// reported is true if the last report was the error.
	reported bool
}

func newReceiverStatus() *receiverStatus { return &receiverStatus{last: map[string]scrapeResult{}} }

// scrapeResult is the result of the last scrape of a target.
type scrapeResult uint8

const (
	notScraped scrapeResult = iota
	scrapeFailed
	scrapeSucceeded
)

// start sets the host to report to; nil means that nothing is reported.
func (s *receiverStatus) start(host component.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.host = host
}

// stop ends the reports: the service itself reports the shutdown.
func (s *receiverStatus) stop() { s.start(nil) }

// added adds a target that was not scraped yet.
func (s *receiverStatus) added(key string) { s.set(key, notScraped, "") }

// succeeded records a scrape that succeeded.
func (s *receiverStatus) succeeded(key string) { s.set(key, scrapeSucceeded, "") }

// failed records a scrape that failed.
func (s *receiverStatus) failed(key, instance string, cause error) {
	s.set(key, scrapeFailed, instance+": "+cause.Error())
}

// removed removes a target that is no longer scraped.
func (s *receiverStatus) removed(key string) {
	s.mu.Lock()
	s.count(s.last[key], -1)
	delete(s.last, key)
	s.mu.Unlock()
	s.report()
}

// hindered records why Kubernetes cannot be asked for targets; "" means that it can.
func (s *receiverStatus) hindered(obstacle string) {
	s.mu.Lock()
	s.obstacle = obstacle
	s.mu.Unlock()
	s.report()
}

func (s *receiverStatus) set(key string, result scrapeResult, failure string) {
	s.mu.Lock()
	if last, known := s.last[key]; known && last == scrapeSucceeded && result == scrapeSucceeded {
		s.mu.Unlock()
		return
	}
	s.count(s.last[key], -1)
	s.count(result, +1)
	s.last[key] = result
	if failure != "" {
		s.newest = failure
	}
	s.mu.Unlock()
	s.report()
}

func (s *receiverStatus) count(result scrapeResult, by int) {
	switch result {
	case scrapeFailed:
		s.failing += by
	case scrapeSucceeded:
		s.working += by
	}
}

// isBad reports whether every target fails. While no target works and some were not
// scraped yet, the status does not change. It needs mu.
func (s *receiverStatus) isBad() bool {
	switch {
	case s.working > 0:
		return false
	case len(s.last) == 0:
		return s.obstacle != ""
	case s.failing == len(s.last):
		return true
	}
	return s.reported
}

// changed returns the event to report; nil if there is none.
func (s *receiverStatus) changed() (component.Host, *componentstatus.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bad := s.isBad()
	if s.host == nil || bad == s.reported {
		return nil, nil
	}
	s.reported = bad
	if bad {
		return s.host, componentstatus.NewRecoverableErrorEvent(s.sentence())
	}
	return s.host, componentstatus.NewEvent(componentstatus.StatusOK)
}

func (s *receiverStatus) sentence() error {
	switch s.failing {
	case 0:
		return errors.New("no target is discovered: " + s.obstacle)
	case 1:
		return errors.New("the only target cannot be scraped: " + s.newest)
	}
	return fmt.Errorf("none of the %d targets can be scraped; the newest failure: %s", s.failing, s.newest)
}

// report reports every change that was not reported yet. A watcher of the status may
// block, so it holds no lock that a scrape waits for.
func (s *receiverStatus) report() {
	for s.pending() && s.reporting.TryLock() {
		if host, event := s.changed(); event != nil {
			componentstatus.ReportStatus(host, event)
		}
		s.reporting.Unlock()
	}
}

// pending reports whether there is a change to report.
func (s *receiverStatus) pending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host != nil && s.isBad() != s.reported
}
