package load

import (
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Arrivals receives the batches of a collector over OTLP/HTTP, and keeps what shows whether its
// scrapes succeed.
type Arrivals struct {
	*backend

	mu sync.Mutex
	// up has the last value of each metric named up or vllm.up.
	up map[string]float64
	// metrics is the size of the largest resource.
	metrics int
}

// NewArrivals listens on a loopback address.
func NewArrivals() (a *Arrivals, err error) {
	a = &Arrivals{up: map[string]float64{}}
	a.backend, err = newBackend(a.take)
	return a, err
}

// take takes one batch.
func (a *Arrivals) take(metrics pmetric.Metrics, _ time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
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
