package scale

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const (
	// receiverScope is the scope of what was scraped.
	receiverScope = "github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	// What the processor says.
	validMetric         = "vllm.slo.valid"
	conditionMetric     = "vllm.diagnosis.condition"
	poolConditionMetric = "vllm.pool.diagnosis.condition"
)

// sink notes what the backend gets.
type sink struct {
	account *account
	key     []byte
}

// take notes what a request has.
func (s *sink) take(r *fleet.Request) {
	s.account.mu.Lock()
	defer s.account.mu.Unlock()
	s.account.points += r.Metrics.DataPointCount()
	for _, rm := range r.Metrics.ResourceMetrics().All() {
		pod, _ := rm.Resource().Attributes().Get("k8s.pod.name")
		i, is := engineOf(pod.Str())
		if !is || i >= len(s.account.engines) {
			if !s.pools(rm) {
				s.account.strangers++
			}
			continue
		}
		e := &s.account.engines[i]
		for p := range fleet.Points(rm) {
			if p.Scope == receiverScope {
				s.scraped(e, p)
			} else {
				derived(e, p)
			}
		}
	}
}

// pools notes the diagnosis of pools, and reports whether there is any.
func (s *sink) pools(rm pmetric.ResourceMetrics) bool {
	is := false
	for p := range fleet.Points(rm) {
		is = is || strings.HasPrefix(p.Metric, "vllm.pool.")
		if what, now := current(p); p.Metric == poolConditionMetric && now {
			model, _ := p.Attributes.Get("model_name")
			s.account.pools[model.Str()] = append(s.account.pools[model.Str()], condition{p.At, what})
		}
	}
	return is
}

// current is the condition of a point, and whether it is the present one.
func current(p *fleet.Point) (string, bool) {
	what, _ := p.Attributes.Get("condition")
	return what.Str(), p.Value == 1 && !p.Ends
}

// scraped notes a point of the receiver.
func (s *sink) scraped(e *engineAccount, p *fleet.Point) {
	switch {
	case p.Ends:
	case p.Metric == answerMetric:
		e.arrive(p.At, int64(p.Value))
	case p.Monotonic, p.Type == pmetric.MetricTypeHistogram:
		e.counter(s.name(p.Metric, p.Attributes), p.Sample)
		if which := slices.Index([]string{promptMetric, generationMetric, firstMetric}, p.Metric); which >= 0 {
			e.compared[which] = append(e.compared[which], p.Sample)
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

// derived notes a point of the processor.
func derived(e *engineAccount, p *fleet.Point) {
	if p.Metric == validMetric && !p.Ends {
		e.valid = append(e.valid, p.Sample)
	}
	if what, now := current(p); p.Metric == conditionMetric && now {
		e.conditions = append(e.conditions, condition{p.At, what})
	}
}
