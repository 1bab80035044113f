package collect

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"

// isDetail reports whether an attribute divides the requests of one engine, as vLLM's open changes
// #52249 and #58078 do. The name alone decides: what other metrics have is not known where a request
// was split. It identifies no engine, also where a deployment adds it to all points.
func isDetail(in input.Metric, name string) bool {
	return (name == "operation" || name == "priority") && !in.OfGateway()
}

// isAdditive reports whether the parts of an input can be summed.
func isAdditive(in input.Metric) bool {
	return in.Define().Kind != input.Gauge || in == input.Running || in == input.Waiting
}
