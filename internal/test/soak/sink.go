package soak

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// receiverScope is the scope of what was scraped; other scopes have what is derived from it.
const receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"

// outage is how the backend fails.
type outage string

const (
	working     outage = "works"
	unavailable outage = "answers 503"
	unreachable outage = "refuses connections"
	slow        outage = "takes seconds to answer"
	// losing takes the data and closes the connection, so that the same data is sent again.
	losing outage = "loses its answers"
)

// delay is how long a slow backend takes.
const delay = 3 * time.Second

// sink is the backend: OTLP over HTTP.
type sink struct {
	ledger *ledger
	seed   maphash.Seed
	addr   string

	mu       sync.Mutex
	server   *http.Server
	listener net.Listener
	how      outage
	// seen are the hashes of the requests that were taken.
	seen map[uint64]struct{}
	// what has been received.
	requests, repeated, logRecords, bytes int
}

func newSink(l *ledger) *sink {
	// An address of its own, so that its port is free again after it was closed.
	return &sink{ledger: l, seed: maphash.MakeSeed(), addr: "127.0.0.2:0", how: working, seen: map[uint64]struct{}{}}
}

// listen starts the server; after an outage at the same address.
func (s *sink) listen(ctx context.Context) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", s.addr)
	if err != nil {
		return fmt.Errorf("the backend of the soak cannot listen: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.server == nil {
		s.addr = l.Addr().String() // After an outage it is the same.
	}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	s.listener = l
	go func(server *http.Server) { _ = server.Serve(l) }(s.server)
	return nil
}

func (s *sink) close() {
	s.mu.Lock()
	server, listener := s.server, s.listener
	s.mu.Unlock()
	if server != nil {
		_ = listener.Close() // The server closes only a listener that it serves already.
		_ = server.Close()
	}
}

// become changes how the backend answers.
func (s *sink) become(ctx context.Context, how outage) error {
	s.mu.Lock()
	before := s.how
	s.how = how
	s.mu.Unlock()
	switch {
	case how == unreachable && before != unreachable:
		s.close()
	case before == unreachable && how != unreachable:
		return s.listen(ctx)
	}
	return nil
}

func (s *sink) state() outage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.how
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	how := s.state()
	switch how {
	case unavailable:
		http.Error(w, "the backend is not available", http.StatusServiceUnavailable)
		return
	case slow:
		select {
		case <-r.Context().Done():
			return
		case <-time.After(delay):
		}
	}
	content, err := body(r)
	if err == nil {
		err = s.take(r.URL.Path, content)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if how == losing {
		abort(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func body(r *http.Request) ([]byte, error) {
	content, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
		return content, err
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

func (s *sink) take(path string, content []byte) error {
	repeated := s.note(content)
	if path == "/v1/logs" {
		request := plogotlp.NewExportRequest()
		if err := request.UnmarshalProto(content); err != nil {
			return err
		}
		if !repeated {
			s.mu.Lock()
			s.logRecords += request.Logs().LogRecordCount()
			s.mu.Unlock()
		}
		return nil
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(content); err != nil {
		return err
	}
	for _, p := range parts(request.Metrics()) {
		p.repeated = repeated
		s.ledger.receive(*p)
	}
	return nil
}

// note counts a request, and reports whether it was taken before.
func (s *sink) note(content []byte) (repeated bool) {
	sum := maphash.Bytes(s.seed, content)
	s.mu.Lock()
	defer s.mu.Unlock()
	_, repeated = s.seen[sum]
	s.seen[sum] = struct{}{}
	s.requests++
	s.bytes += len(content)
	if repeated {
		s.repeated++
	}
	return repeated
}

// parts divides a request by scrapes. Points without a value end a series and are not counted.
func parts(md pmetric.Metrics) map[moment]*part {
	out := map[moment]*part{}
	for _, rm := range md.ResourceMetrics().All() {
		id, _ := rm.Resource().Attributes().Get("service.instance.id")
		instance := id.Str()
		at := func(t pcommon.Timestamp) *part {
			m := moment{instance, uint64(t)}
			p := out[m]
			if p == nil {
				p = &part{at: m, tokens: map[int]float64{}, first: map[int]float64{}, last: map[int]float64{}}
				out[m] = p
			}
			p.points++
			return p
		}
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() != receiverScope {
				continue
			}
			for _, m := range sm.Metrics().All() {
				read(m, at)
			}
		}
	}
	return out
}

func read(m pmetric.Metric, at func(pcommon.Timestamp) *part) {
	numbers := pmetric.NewNumberDataPointSlice()
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		numbers = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		numbers = m.Sum().DataPoints()
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if p.Flags().NoRecordedValue() {
				continue
			}
			to := at(p.Timestamp())
			if m.Name() == firstMetric {
				to.first[engineOf(p.Attributes())] = float64(p.Count())
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				at(p.Timestamp())
			}
		}
	}
	for _, p := range numbers.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		to := at(p.Timestamp())
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		switch m.Name() {
		case servedMetric:
			to.ids = append(to.ids, uint64(value))
		case enginesMetric:
			to.last[engineOf(p.Attributes())] = value
		case tokensMetric:
			to.tokens[engineOf(p.Attributes())] = value
		}
	}
}

// engineOf is the number of the engine of a point; servers that have only one do not write it.
func engineOf(attributes pcommon.Map) int {
	v, ok := attributes.Get("engine")
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(v.AsString())
	if err != nil || n < 0 || n >= mostEngines {
		return 0
	}
	return n
}
