package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// sink is the backend. It records how long after the answer of the server each batch came, and whether scrapes succeed.
type sink struct {
	*fleet.Backend
	// answered reports when the last answer of a target was written; false for addresses
	// of no target.
	answered func(address string) (time.Time, bool)

	mu        sync.Mutex
	latencies []time.Duration
	first     time.Time
	// up is the last value of a metric named up or vllm.up, -1 without one.
	up float64
	// metrics is the size of the largest resource.
	metrics int
}

func newSink(ctx context.Context, answered func(string) (time.Time, bool)) (s *sink, err error) {
	s = &sink{answered: answered, up: -1}
	s.Backend, err = fleet.NewBackend(ctx, s.take)
	return s, err
}

func (s *sink) take(r *fleet.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		n := 0
		for _, sm := range rm.ScopeMetrics().All() {
			n += sm.Metrics().Len()
		}
		s.metrics = max(s.metrics, n)
		for p := range fleet.Points(rm) {
			if p.Metric == "up" || p.Metric == "vllm.up" {
				s.up = p.Value
			}
		}
		// What says only whether a server is up has no series of it.
		if answered, is := s.target(rm.Resource().Attributes()); is && n > 10 {
			if s.first.IsZero() {
				s.first = r.At
			}
			if took := r.At.Sub(answered); took >= 0 {
				s.latencies = append(s.latencies, took)
			}
		}
	}
}

// target is when the target answered that a resource names, in whatever attribute.
func (s *sink) target(attributes pcommon.Map) (time.Time, bool) {
	for _, value := range attributes.All() {
		if at, is := s.answered(value.Str()); is {
			return at, true
		}
	}
	return time.Time{}, false
}

// scraped returns the last value of up, and whether the series of a server came with it.
func (s *sink) scraped() (up float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up, s.up == 1 && s.metrics > 10
}

// latency returns a quantile of the time from the answer of the server to the arrival here,
// and of how many batches.
func (s *sink) latency(quantile float64) (time.Duration, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.latencies) == 0 {
		return 0, 0
	}
	slices.Sort(s.latencies)
	return s.latencies[min(len(s.latencies)-1, int(quantile*float64(len(s.latencies))))], len(s.latencies)
}

// begin returns when the first batch came, and drops the latencies so far, which are those of the start.
func (s *sink) begin() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latencies = s.latencies[:0]
	return s.first
}
