package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// Outage is how a backend fails.
type Outage string

// The outages.
const (
	Working     Outage = "works"
	Unavailable Outage = "answers 503"
	Unreachable Outage = "refuses connections"
	Slow        Outage = "takes seconds to answer"
	// Losing takes the data and closes the connection, so that the same data is sent again.
	Losing Outage = "loses its answers"
)

// Delay is how long a slow backend takes.
const Delay = 3 * time.Second

// Request is what a backend has taken.
type Request struct {
	Metrics pmetric.Metrics
	At      time.Time
	// Repeated is one that was taken before, byte for byte.
	Repeated bool
}

// Taken counts what a backend has taken; Bytes are without compression, and Broken requests are no OTLP.
type Taken struct{ Requests, Repeated, LogRecords, Bytes, Broken int }

// Backend takes OTLP over HTTP on a loopback address.
type Backend struct {
	// Address is host and port.
	Address string
	take    func(*Request)
	seed    maphash.Seed
	later   chan func()

	mu       sync.Mutex
	server   *http.Server
	listener net.Listener
	how      Outage
	seen     map[uint64]struct{}
	taken    Taken
	waiting  int
}

// NewBackend listens. It calls take with each request that has metrics, from several goroutines.
func NewBackend(ctx context.Context, take func(*Request)) (*Backend, error) {
	// An address of its own, so that its port is free again after it was closed.
	b := &Backend{Address: "127.0.0.2:0", take: take, seed: maphash.MakeSeed(), how: Working, seen: map[uint64]struct{}{}}
	err := b.listen(ctx)
	return b, err
}

// NewLateBackend answers at once and looks at the data later, so that a busy machine does not make it slow. It calls take
// from one goroutine, in the order in which the requests came.
func NewLateBackend(ctx context.Context, take func(*Request)) (*Backend, error) {
	b, err := NewBackend(ctx, take)
	if err != nil {
		return nil, err
	}
	b.later = make(chan func(), 1<<16)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case open := <-b.later:
				open()
			}
		}
	}()
	return b, nil
}

// listen starts the server; after an outage at the same address.
func (b *Backend) listen(ctx context.Context) error {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp4", b.Address)
	if err != nil {
		return fmt.Errorf("the backend cannot listen: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.server == nil {
		b.Address = listener.Addr().String() // After an outage it is the same.
	}
	b.server, b.listener = NewServer(b), listener
	go func(server *http.Server) { _ = server.Serve(listener) }(b.server)
	return nil
}

// NewServer serves a handler, and says nothing of connections that fail.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: 5 * time.Minute,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
}

// Close ends it.
func (b *Backend) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.listener.Close() // The server closes only a listener that it serves already.
	_ = b.server.Close()
}

// Become changes how it answers.
func (b *Backend) Become(ctx context.Context, how Outage) error {
	b.mu.Lock()
	before := b.how
	b.how = how
	b.mu.Unlock()
	switch {
	case how == Unreachable && before != Unreachable:
		b.Close()
	case before == Unreachable && how != Unreachable:
		return b.listen(ctx)
	}
	return nil
}

// Taken is what it has taken so far, and Idle whether all of that was looked at.
func (b *Backend) Taken() Taken {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.taken
}

// Idle reports whether all requests were looked at.
func (b *Backend) Idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting == 0
}

// ServeHTTP takes a request as a whole or not at all.
func (b *Backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	b.mu.Lock()
	how := b.how
	b.mu.Unlock()
	switch how {
	case Unavailable:
		http.Error(w, "the backend is not available", http.StatusServiceUnavailable)
		return
	case Slow:
		if Sleep(r.Context(), Delay) != nil {
			return
		}
	}
	content, err := io.ReadAll(r.Body)
	if err == nil && b.later != nil {
		b.mu.Lock()
		b.waiting++
		b.mu.Unlock()
		b.later <- func() {
			err := b.open(r, content, at)
			b.mu.Lock()
			defer b.mu.Unlock()
			b.waiting--
			if err != nil {
				b.taken.Broken++
			}
		}
	} else if err = errors.Join(err, b.open(r, content, at)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if how == Losing {
		Abort(w)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// open reads what a request has, and passes the metrics on.
func (b *Backend) open(r *http.Request, content []byte, at time.Time) error {
	content, err := unpacked(r, content)
	if err != nil {
		return err
	}
	if r.URL.Path == "/v1/logs" {
		request := plogotlp.NewExportRequest()
		err := request.UnmarshalProto(content)
		if !b.note(content) && err == nil {
			b.mu.Lock()
			b.taken.LogRecords += request.Logs().LogRecordCount()
			b.mu.Unlock()
		}
		return err
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(content); err != nil {
		return err
	}
	b.take(&Request{request.Metrics(), at, b.note(content)})
	return nil
}

func unpacked(r *http.Request, content []byte) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return content, nil
	}
	reader, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(reader)
}

// Content reads the body of a request, without gzip.
func Content(r *http.Request) ([]byte, error) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	return unpacked(r, content)
}

// Metrics reads the metrics of a request.
func Metrics(r *http.Request) (pmetric.Metrics, error) {
	request := pmetricotlp.NewExportRequest()
	content, err := Content(r)
	if err == nil {
		err = request.UnmarshalProto(content)
	}
	return request.Metrics(), err
}

// note counts a request, and reports whether it was taken before.
func (b *Backend) note(content []byte) (repeated bool) {
	sum := maphash.Bytes(b.seed, content)
	b.mu.Lock()
	defer b.mu.Unlock()
	_, repeated = b.seen[sum]
	b.seen[sum] = struct{}{}
	b.taken.Requests++
	b.taken.Bytes += len(content)
	if repeated {
		b.taken.Repeated++
	}
	return repeated
}

// Abort closes the connection so that the client sees a reset.
func Abort(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	Reset(c)
}

// Reset ends a connection with RST instead of FIN.
func Reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// Point is a data point that the backend got.
type Point struct {
	Scope, Metric string
	Attributes    pcommon.Map
	Type          pmetric.MetricType
	// Monotonic is true for a counter.
	Monotonic bool
	// Ends is a point without a value, which ends a series.
	Ends bool
	Sample
}

// Points are the data points of a resource. The value of a histogram or a summary is its count.
func Points(rm pmetric.ResourceMetrics) iter.Seq[*Point] {
	return func(yield func(*Point) bool) {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				p := &Point{Scope: sm.Scope().Name(), Metric: m.Name(), Type: m.Type()}
				for range dataPoints(m, p) {
					if !yield(p) {
						return
					}
				}
			}
		}
	}
}

// dataPoint is what the points of all types have.
type dataPoint interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	StartTimestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func (p *Point) set(one dataPoint, value float64) *Point {
	p.Attributes, p.Ends = one.Attributes(), one.Flags().NoRecordedValue()
	p.Sample = Sample{uint64(one.Timestamp()), uint64(one.StartTimestamp()), value}
	return p
}

// dataPoints writes each data point of a metric into p.
func dataPoints(m pmetric.Metric, p *Point) iter.Seq[*Point] {
	return func(yield func(*Point) bool) {
		numbers := pmetric.NewNumberDataPointSlice()
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			numbers = m.Gauge().DataPoints()
		case pmetric.MetricTypeSum:
			numbers, p.Monotonic = m.Sum().DataPoints(), m.Sum().IsMonotonic()
		case pmetric.MetricTypeHistogram:
			for _, one := range m.Histogram().DataPoints().All() {
				if !yield(p.set(one, float64(one.Count()))) {
					return
				}
			}
		case pmetric.MetricTypeSummary:
			for _, one := range m.Summary().DataPoints().All() {
				if !yield(p.set(one, float64(one.Count()))) {
					return
				}
			}
		}
		for _, one := range numbers.All() {
			value := one.DoubleValue()
			if one.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = float64(one.IntValue())
			}
			if !yield(p.set(one, value)) {
				return
			}
		}
	}
}
