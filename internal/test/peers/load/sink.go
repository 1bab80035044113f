package load

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// Sink receives the batches of a collector over OTLP/HTTP, and records how long after the
// answer of the server each came.
type Sink struct {
	server   *http.Server
	listener net.Listener
	// answered reports when the last answer of a target was written; false for addresses
	// of no target.
	answered func(address string) (time.Time, bool)

	mu        sync.Mutex
	latencies []time.Duration
	first     time.Time
	seen      map[string]time.Time
}

// NewSink listens on a loopback address.
func NewSink(answered func(string) (time.Time, bool)) (*Sink, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Sink{listener: listener, answered: answered, seen: map[string]time.Time{}}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Second}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// Address is host and port.
func (s *Sink) Address() string { return s.listener.Addr().String() }

// Close ends it.
func (s *Sink) Close() error { return s.server.Close() }

// ServeHTTP takes one batch.
func (s *Sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	text, err := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if err = errors.Join(err, request.UnmarshalProto(text)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range request.Metrics().ResourceMetrics().All() {
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
