package surface

import (
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// latencies have the label operation by vLLM's open change #52249.
var latencies = []string{
	"time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds",
	"request_queue_time_seconds", "request_inference_time_seconds", "request_prefill_time_seconds",
	"request_decode_time_seconds", "request_time_per_output_token_seconds",
}

// finishedOnes have the label priority by the open change #58078: what is observed of a finished
// request, with the time to its first token.
func finishedOnes(name string) bool {
	return strings.HasPrefix(name, "request_") || name == "time_to_first_token_seconds" || name == "e2e_request_latency_seconds"
}

func policies(*Server, *observed.Stats) ([]string, []float64) {
	return []string{"fcfs", "priority"}, []float64{0, 1}
}

// divide gives the points of a family the labels of open changes.
func (s *Server) divide(name string, f *wire.Family) {
	if s.Operation && slices.Contains(latencies, name) {
		f.Points = divided(f.Points, "operation", "chat", "text_completion")
	}
	if s.Priority && finishedOnes(name) {
		f.Points = divided(f.Points, "priority", "0", "<-1")
	}
}

// divided makes two points of each: one has two thirds of each bucket, the other the rest.
func divided(points []wire.Point, label, most, rest string) (out []wire.Point) {
	for _, whole := range points {
		a, b := whole, whole
		a.Labels = append(slices.Clone(whole.Labels), wire.Label{Name: label, Value: most})
		b.Labels = append(slices.Clone(whole.Labels), wire.Label{Name: label, Value: rest})
		a.Value = float64(int64(2 * whole.Value / 3))
		b.Value = whole.Value - a.Value
		a.Count = 2 * whole.Count / 3
		b.Count = whole.Count - a.Count
		a.Cumulative, b.Cumulative = slices.Clone(whole.Cumulative), slices.Clone(whole.Cumulative)
		for i, n := range whole.Cumulative {
			a.Cumulative[i] = 2 * n / 3
			b.Cumulative[i] = n - a.Cumulative[i]
		}
		out = append(out, a, b)
	}
	return out
}
