package objective

import "strings"

// indicator is a histogram that an objective can be about.
type indicator struct {
	metric string
	// bounds are the finite bounds in seconds of vLLM since 0.8.4. Older servers have
	// fewer, up to 10 s, 2.5 s and 60 s. So no server can decide a threshold beyond
	// these bounds, unless its operator chose others. Objective.Resolution checks the
	// real bounds.
	bounds []float64
	// finished is true where each request is observed once, at its end. Only such
	// histograms with equal counts have observed the same requests.
	finished bool
}

// The buckets of vLLM's time metrics. A test compares them with recorded bodies.
var (
	firstTokenBounds = []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
		1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}
	perTokenBounds = []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75,
		1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	requestBounds = []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60,
		120, 240, 480, 960, 1920, 7680,
	}
)

// indicators are the latencies of requests. Histograms of tokens are not among them,
// because the client chooses the length of a prompt. Caches and transfers are not either,
// because users do not see them directly.
var indicators = []indicator{
	{metric: "vllm.time_to_first_token", bounds: firstTokenBounds},
	{metric: "vllm.inter_token_latency", bounds: perTokenBounds},
	{metric: "vllm.e2e_request_latency", bounds: requestBounds, finished: true},
	{metric: "vllm.request.time_per_output_token", bounds: perTokenBounds, finished: true},
	{metric: "vllm.request.queue_time", bounds: requestBounds, finished: true},
	{metric: "vllm.request.inference_time", bounds: requestBounds, finished: true},
	{metric: "vllm.request.prefill_time", bounds: requestBounds, finished: true},
	{metric: "vllm.request.decode_time", bounds: requestBounds, finished: true},
}

// indicatorOf finds the indicator of a metric.
func indicatorOf(metric string) (*indicator, bool) {
	for i := range indicators {
		if indicators[i].metric == metric {
			return &indicators[i], true
		}
	}
	return nil, false
}

// usable lists the metrics of all indicators, for messages.
func usable() string {
	names := make([]string, len(indicators))
	for i := range indicators {
		names[i] = indicators[i].metric
	}
	return strings.Join(names, ", ")
}
