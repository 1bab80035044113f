package faults

import (
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Sink keeps what the checks need of what the backend got.
type Sink struct {
	mu sync.Mutex
	// served has the numbers of the scrapes that have arrived, by instance.
	served map[string]map[int64]bool
	// watched has the samples of the watched metrics, by instance and metric.
	watched map[[2]string][]fleet.Sample
}

// The metrics whose samples the checks read.
const (
	promptTokens     = "vllm.prompt_tokens"
	promptThroughput = "vllm.prompt_throughput"
	up               = "vllm.up"
)

func newSink() *Sink {
	return &Sink{served: map[string]map[int64]bool{}, watched: map[[2]string][]fleet.Sample{}}
}

func (s *Sink) take(r *fleet.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		id, _ := rm.Resource().Attributes().Get("service.instance.id")
		instance := id.Str()
		for p := range fleet.Points(rm) {
			switch {
			case p.Ends:
			case p.Metric == servedMetric:
				if s.served[instance] == nil {
					s.served[instance] = map[int64]bool{}
				}
				s.served[instance][int64(p.Value)] = true
			case slices.Contains([]string{promptTokens, promptThroughput, up}, p.Metric):
				// The faulty targets here have few series of these; the cap is for the ones that have many.
				if key := [2]string{instance, p.Metric}; len(s.watched[key]) < 10000 {
					s.watched[key] = append(s.watched[key], p.Sample)
				}
			}
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

// Samples are those of a watched metric of one instance, in the order in
// which they arrived.
func (s *Sink) Samples(instance, metric string) []fleet.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.watched[[2]string{instance, metric}])
}
