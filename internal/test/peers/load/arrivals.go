package load

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// Arrivals receives the batches of a collector over OTLP/HTTP, and keeps what shows whether its
// scrapes succeed.
type Arrivals struct {
	server   *http.Server
	listener net.Listener

	mu sync.Mutex
	// up has the last value of each metric named up or vllm.up.
	up map[string]float64
	// metrics is the size of the largest resource.
	metrics int
}

// NewArrivals listens on a loopback address.
func NewArrivals() (*Arrivals, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	a := &Arrivals{listener: listener, up: map[string]float64{}}
	a.server = &http.Server{Handler: a, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = a.server.Serve(listener) }()
	return a, nil
}

// Address is host and port.
func (a *Arrivals) Address() string { return a.listener.Addr().String() }

// Close ends it.
func (a *Arrivals) Close() error { return a.server.Close() }

// ServeHTTP takes one batch.
func (a *Arrivals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if err = errors.Join(err, request.UnmarshalProto(text)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		n := 0
		for _, sm := range rm.ScopeMetrics().All() {
			n += sm.Metrics().Len()
			for _, m := range sm.Metrics().All() {
				if (m.Name() == "up" || m.Name() == "vllm.up") && m.Type() == pmetric.MetricTypeGauge && m.Gauge().DataPoints().Len() > 0 {
					point := m.Gauge().DataPoints().At(0)
					a.up[m.Name()] = point.DoubleValue() + float64(point.IntValue())
				}
			}
		}
		a.metrics = max(a.metrics, n)
	}
}

// Up returns the last value of up or vllm.up, whether there was any, and how many metrics the
// largest resource had.
func (a *Arrivals) Up() (value float64, has bool, metrics int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, value := range a.up {
		return value, true, a.metrics
	}
	return 0, false, a.metrics
}
