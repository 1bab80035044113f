package faults

import (
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// Sink is the backend: it takes OTLP over HTTP and keeps what the checks need.
type Sink struct {
	mu sync.Mutex
	// served has the numbers of the scrapes that have arrived, by instance.
	served map[string]map[int64]bool
	// watched has the points of the watched metrics, by instance and metric.
	watched map[string]map[string][]Point
}

// Point is a number that reached the backend.
type Point struct {
	Time, Start pcommon.Timestamp
	Value       float64
	Attributes  string
}

// The metrics whose points the checks read.
const (
	promptTokens     = "vllm.prompt_tokens"
	promptThroughput = "vllm.prompt_throughput"
	up               = "vllm.up"
)

func newSink() *Sink {
	return &Sink{served: map[string]map[int64]bool{}, watched: map[string]map[string][]Point{}}
}

func (s *Sink) serve(w http.ResponseWriter, r *http.Request) {
	var reader io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reader = unzipped
	}
	request := pmetricotlp.NewExportRequest()
	content, err := io.ReadAll(reader)
	if err == nil {
		err = request.UnmarshalProto(content)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.take(request.Metrics())
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (s *Sink) take(md pmetric.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range md.ResourceMetrics().All() {
		id, _ := rm.Resource().Attributes().Get("service.instance.id")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Name() {
				case servedMetric, promptTokens, promptThroughput, up:
					s.points(id.Str(), m)
				}
			}
		}
	}
}

func (s *Sink) points(instance string, m pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		points = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = m.Sum().DataPoints()
	default:
		return
	}
	for _, p := range points.All() {
		if p.Flags().NoRecordedValue() {
			continue
		}
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		if m.Name() == servedMetric {
			if s.served[instance] == nil {
				s.served[instance] = map[int64]bool{}
			}
			s.served[instance][int64(value)] = true
			continue
		}
		if s.watched[instance] == nil {
			s.watched[instance] = map[string][]Point{}
		}
		// The faulty targets here have few series of these; the cap is for the ones that have many.
		if kept := s.watched[instance][m.Name()]; len(kept) < 10000 {
			s.watched[instance][m.Name()] = append(kept, Point{p.Timestamp(), p.StartTimestamp(), value, fmt.Sprint(p.Attributes().AsRaw())})
		}
	}
}

// lost counts the scrapes from 1 to reads of a server that have not arrived.
func (s *Sink) lost(instance string, reads int64) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := 0
	for n := int64(1); n <= reads; n++ {
		if !s.served[instance][n] {
			lost++
		}
	}
	return lost
}

// Points are the points of a watched metric of one instance, in the order in
// which they arrived.
func (s *Sink) Points(instance, metric string) []Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Point(nil), s.watched[instance][metric]...)
}
