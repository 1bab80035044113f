package collect

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// An attribute of a point that is no label of its input is either a part of what identifies the
// engine, as what a deployment adds to all points, or a detail: it divides the requests of one
// engine, as `operation` and `priority` of vLLM's changes #52249 and #58078 do. Details are summed.

// ofRequests are attributes that divide requests in versions to come.
var ofRequests = []string{"operation", "priority"}

// states are the inputs with the state of an engine. What divides requests is not on all of them,
// what a deployment adds is.
var states = [...]input.Metric{input.KVCacheUtilization, input.Running, input.Waiting}

// engine is what the current resource shows of its engines.
type engine struct {
	of pmetric.ResourceMetrics
	// states are the attributes of the first point of each of the states, once searched.
	states   []pcommon.Map
	searched bool
}

// isDetail reports whether an attribute of a point divides the requests of one engine. Only numbers
// that can be summed have details. Where the resource has no state of an engine, as a part of a
// request that was split, only the known ones are.
func (c *Reader) isDetail(sample *input.Sample, name string) bool {
	in := sample.Input
	switch {
	case name == "engine" || name == "model_name" || in.OfGateway() || in.OfReceiver():
		return false
	case in.Define().Kind == input.Gauge && in != input.Running && in != input.Waiting:
		return false
	case slices.Contains(ofRequests, name):
		if name == "priority" && in == input.TimeToFirstToken {
			c.evidence.Signs |= input.LateFirstTokens
		}
		return true
	}
	states := c.engine.search()
	return len(states) > 0 && slices.ContainsFunc(states, func(state pcommon.Map) bool {
		_, has := state.Get(name)
		return !has
	})
}

func (e *engine) search() []pcommon.Map {
	if e.searched {
		return e.states
	}
	e.searched = true
	known := meanings()
	for _, scope := range e.of.ScopeMetrics().All() {
		for _, metric := range scope.Metrics().All() {
			if m := known[metric.Name()]; m.known && slices.Contains(states[:], m.input) &&
				metric.Type() == pmetric.MetricTypeGauge && metric.Gauge().DataPoints().Len() > 0 {
				e.states = append(e.states, metric.Gauge().DataPoints().At(0).Attributes())
			}
		}
	}
	return e.states
}
