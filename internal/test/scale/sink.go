package scale

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

const (
	// receiverScope is the scope of what was scraped.
	receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	// What the processor says.
	validMetric         = "vllm.slo.valid"
	conditionMetric     = "vllm.diagnosis.condition"
	poolConditionMetric = "vllm.pool.diagnosis.condition"
)

// sink is the backend: OTLP over HTTP. It answers at once and looks at the data later, so that
// a busy machine does not make it a slow backend.
type sink struct {
	account *account
	server  *http.Server
	url     string
	key     []byte

	mu      sync.Mutex
	waiting []*body
	// wake has room for one, working is true until all that waits is noted.
	wake    chan struct{}
	working bool
	// broken counts requests that are not OTLP.
	broken int
}

// body is a request as it came.
type body struct {
	content []byte
	gzipped bool
}

func newSink(ctx context.Context, a *account) (*sink, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp4", "127.0.0.2:0")
	if err != nil {
		return nil, err
	}
	s := &sink{account: a, url: "http://" + l.Addr().String(), wake: make(chan struct{}, 1)}
	s.server = &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)}
	go func() { _ = s.server.Serve(l) }()
	go s.work(ctx)
	return s, nil
}

// ServeHTTP takes a request as a whole or not at all.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.waiting = append(s.waiting, &body{content, r.Header.Get("Content-Encoding") == "gzip"})
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// work notes what has come, until the context ends.
func (s *sink) work(ctx context.Context) {
	for {
		s.mu.Lock()
		next := s.waiting
		s.waiting, s.working = nil, len(next) > 0
		s.mu.Unlock()
		for _, b := range next {
			if err := s.open(b); err != nil {
				s.mu.Lock()
				s.broken++
				s.mu.Unlock()
			}
		}
		if len(next) > 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
	}
}

// done reports whether everything that has come is noted.
func (s *sink) done() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) == 0 && !s.working
}

func (s *sink) open(b *body) error {
	content := b.content
	if b.gzipped {
		reader, err := gzip.NewReader(bytes.NewReader(content))
		if err != nil {
			return err
		}
		if content, err = io.ReadAll(reader); err != nil {
			return err
		}
	}
	request := pmetricotlp.NewExportRequest()
	if err := request.UnmarshalProto(content); err != nil {
		return err
	}
	s.take(request.Metrics(), len(content))
	return nil
}

// take notes what a request has.
func (s *sink) take(md pmetric.Metrics, size int) {
	s.account.mu.Lock()
	defer s.account.mu.Unlock()
	s.account.requests++
	s.account.bytes += size
	s.account.points += md.DataPointCount()
	for _, rm := range md.ResourceMetrics().All() {
		pod, _ := rm.Resource().Attributes().Get("k8s.pod.name")
		i, is := engineOf(pod.Str())
		if !is || i >= len(s.account.engines) {
			if !s.pools(rm) {
				s.account.strangers++
			}
			continue
		}
		e := &s.account.engines[i]
		for _, sm := range rm.ScopeMetrics().All() {
			scraped := sm.Scope().Name() == receiverScope
			for _, m := range sm.Metrics().All() {
				if scraped {
					s.scraped(e, m)
				} else {
					derived(e, m)
				}
			}
		}
	}
}

// pools notes the diagnosis of pools, and reports whether there is any.
func (s *sink) pools(rm pmetric.ResourceMetrics) bool {
	is := false
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			is = is || strings.HasPrefix(m.Name(), "vllm.pool.")
			if m.Name() != poolConditionMetric {
				continue
			}
			for _, p := range m.Gauge().DataPoints().All() {
				model, _ := p.Attributes().Get("model_name")
				if what, now := current(p); now {
					s.account.pools[model.Str()] = append(s.account.pools[model.Str()], condition{uint64(p.Timestamp()), what})
				}
			}
		}
	}
	return is
}

// current is the condition of a point, and whether it is the present one.
func current(p pmetric.NumberDataPoint) (string, bool) {
	what, _ := p.Attributes().Get("condition")
	return what.Str(), p.DoubleValue() == 1 && !p.Flags().NoRecordedValue()
}

// scraped notes a metric of the receiver.
func (s *sink) scraped(e *engineAccount, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		if m.Name() != answerMetric {
			return
		}
		for _, p := range m.Gauge().DataPoints().All() {
			if p.Flags().NoRecordedValue() {
				e.ends++
				continue
			}
			e.arrive(uint64(p.Timestamp()), int64(number(p)))
		}
	case pmetric.MetricTypeSum:
		if !m.Sum().IsMonotonic() {
			return
		}
		for _, p := range m.Sum().DataPoints().All() {
			if p.Flags().NoRecordedValue() {
				continue
			}
			one := point{uint64(p.Timestamp()), uint64(p.StartTimestamp()), number(p)}
			e.counter(s.name(m.Name(), p.Attributes()), one)
			switch m.Name() {
			case promptMetric:
				e.compared[0] = append(e.compared[0], one)
			case generationMetric:
				e.compared[1] = append(e.compared[1], one)
			}
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if p.Flags().NoRecordedValue() {
				continue
			}
			one := point{uint64(p.Timestamp()), uint64(p.StartTimestamp()), float64(p.Count())}
			e.counter(s.name(m.Name(), p.Attributes()), one)
			if m.Name() == firstMetric {
				e.compared[2] = append(e.compared[2], one)
			}
		}
	}
}

// name is the number of a series; the model and the engine are those of the resource.
func (s *sink) name(metric string, attributes pcommon.Map) int {
	type pair struct{ name, value string }
	var room [4]pair
	pairs := room[:0]
	for name, value := range attributes.All() {
		if name != "model_name" && name != "engine" {
			pairs = append(pairs, pair{name, value.AsString()})
		}
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.name, b.name) })
	s.key = append(s.key[:0], metric...)
	for _, p := range pairs {
		s.key = append(append(append(append(s.key, 0), p.name...), 0), p.value...)
	}
	return s.account.name(s.key)
}

// derived notes a metric of the processor.
func derived(e *engineAccount, m pmetric.Metric) {
	switch m.Name() {
	case validMetric:
		for _, p := range m.Sum().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				e.valid = append(e.valid, point{uint64(p.Timestamp()), uint64(p.StartTimestamp()), number(p)})
			}
		}
	case conditionMetric:
		for _, p := range m.Gauge().DataPoints().All() {
			if what, now := current(p); now {
				e.conditions = append(e.conditions, condition{uint64(p.Timestamp()), what})
			}
		}
	}
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}
