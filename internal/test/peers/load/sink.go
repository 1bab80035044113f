package load

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Sink receives the batches of a collector over OTLP/HTTP, and records how long after the
// answer of the server each came.
type Sink struct {
	*backend
	// answered reports when the last answer of a target was written; false for addresses
	// of no target.
	answered func(address string) (time.Time, bool)

	mu        sync.Mutex
	latencies []time.Duration
	first     time.Time
	seen      map[string]time.Time
}

// NewSink listens on a loopback address.
func NewSink(answered func(string) (time.Time, bool)) (s *Sink, err error) {
	s = &Sink{answered: answered, seen: map[string]time.Time{}}
	s.backend, err = newBackend(s.take)
	return s, err
}

// take takes one batch.
func (s *Sink) take(metrics pmetric.Metrics, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
		address, has := s.target(rm.Resource().Attributes())
		if !has || !bodies(rm) {
			continue
		}
		answered, _ := s.answered(address)
		if s.first.IsZero() {
			s.first = at
		}
		if _, known := s.seen[address]; !known {
			s.seen[address] = at
		}
		if took := at.Sub(answered); took >= 0 {
			s.latencies = append(s.latencies, took)
		}
	}
}

// target is the address of the target that a resource names, in whatever attribute.
func (s *Sink) target(attributes pcommon.Map) (string, bool) {
	for _, value := range attributes.All() {
		if _, is := s.answered(value.Str()); is {
			return value.Str(), true
		}
	}
	return "", false
}

// bodies reports whether a batch has the series of a server, and not only whether it is up.
func bodies(rm pmetric.ResourceMetrics) bool {
	n := 0
	for _, sm := range rm.ScopeMetrics().All() {
		n += sm.Metrics().Len()
	}
	return n > 10
}

// Latency returns a quantile of the time from the answer of the server to the arrival here,
// and of how many batches.
func (s *Sink) Latency(quantile float64) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latencies) == 0 {
		return 0, 0
	}
	slices.Sort(s.latencies)
	return s.latencies[min(len(s.latencies)-1, int(quantile*float64(len(s.latencies))))], len(s.latencies)
}

// Forget drops the latencies so far, which are those of the start.
func (s *Sink) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = s.latencies[:0]
}

// First returns when the first batch came, and when the last of the targets had sent its first
// one, and how many targets have sent any.
func (s *Sink) First() (first, all time.Time, targets int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.seen {
		if at.After(all) {
			all = at
		}
	}
	return s.first, all, len(s.seen)
}
