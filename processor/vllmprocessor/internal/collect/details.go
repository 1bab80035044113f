package collect

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// ofRequests are attributes with which vLLM's open changes #52249 and #58078 divide the requests of
// one engine. Their names alone decide: what other metrics have is not known where a request was split.
var ofRequests = []string{"operation", "priority"}

// isDetail reports whether an attribute divides the requests of one engine. It identifies no engine,
// also where a deployment adds it to all points.
func isDetail(in input.Metric, name string) bool {
	return slices.Contains(ofRequests, name) && !in.OfGateway()
}

// isAdditive reports whether the parts of an input can be summed.
func isAdditive(in input.Metric) bool {
	return in.Define().Kind != input.Gauge || in == input.Running || in == input.Waiting
}
