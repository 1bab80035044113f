package truth

import (
	"math"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Row is the truth of a derived metric.
type Row struct {
	Metric string
	// Truth returns what a value over the window may be. extra are the attributes of the
	// point besides engine and model_name.
	Truth func(w *Window, extra map[string]string) Answer
	// Extras are the attributes of each point that may exist; nil is one without any.
	Extras []map[string]string
	// Long is true for a metric over five minutes at least.
	Long bool
	// Additive is true for a metric that is not derived over several engines.
	Additive bool
	// Instant is true for a metric that needs no window.
	Instant bool
	// Unlabelled is the first version in which it names the engine, if others do before.
	Unlabelled string
	// Server is true for a metric of the whole server, which has no engine.
	Server bool
	// Exact says how exact the metric is, and why.
	Exact string
}

const (
	sameInstants = "exact: it counts the same events at the same instants"
	sameRequests = "exact: it counts requests when they end, as the metric says; clients that left are in none"
	bucket       = "exact bounds: the true quantile is in the bucket; the interpolated value is in the same bucket"
)

// rows has the truth of every derived metric of a vLLM server, but for those of Others.
var rows = slices.Concat([]Row{
	{
		Metric: "vllm.prefix_cache.hit_ratio", Truth: hitRatio,
		Exact: "exact: each request once, with its first lookup, which counts with the step that admits it; " +
			"where it is replaced by prompt tokens by source, which count at the first token, exact at that moment; " +
			"before 0.9 in full blocks, as the metric says",
	},
	{Metric: "vllm.prompt_tokens_cached_ratio", Truth: cachedRatio, Exact: sameInstants},
	{
		// The simulated connector reads from other servers.
		Metric: "vllm.prompt_tokens_cached_by_source_ratio", Extras: attributes("source", "device", "p2p"), Exact: sameInstants,
		Truth: func(w *Window, extra map[string]string) Answer {
			found := cached
			if extra["source"] == "p2p" {
				found = foundOut
			}
			return ratio(w.sum(engine.EventLookup, found), w.sum(engine.EventLookup, prompt))
		},
	},
	{
		Metric: "vllm.external_prefix_cache.hit_throughput", Additive: true, Exact: sameInstants,
		Truth: func(w *Window, _ map[string]string) Answer {
			if w.sum(engine.EventLookup, askedOut) == 0 {
				return Answer{}
			}
			return exactly(w.sum(engine.EventLookup, foundOut) / w.Elapsed())
		},
	},
	{
		Metric: "vllm.external_prefix_cache.hit_ratio", Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(w.sum(engine.EventLookup, foundOut), w.sum(engine.EventLookup, askedOut))
		}, Exact: sameInstants,
	},
	{
		Metric: "vllm.mm_cache.hit_ratio", Exact: sameInstants, Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(w.sum(engine.EventSent, mediaFound), w.sum(engine.EventSent, media))
		},
	},
	perSecond("vllm.prompt_throughput", engine.EventFirst, prompt),
	perSecond("vllm.prefill_compute_throughput", engine.EventFirst, computed),
	perSecond("vllm.generation_throughput", engine.EventStep, generated),
	{
		Metric: "vllm.request_throughput", Additive: true, Exact: sameRequests, Truth: func(w *Window, _ map[string]string) Answer {
			return exactly(w.endings("") / w.Elapsed())
		},
	},
	perSecond("vllm.first_token_rate", engine.EventFirst, one),
	perSecond("vllm.preemption_rate", engine.EventStep, resumed),
	{
		Metric: "vllm.preemptions_per_first_token", Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(w.sum(engine.EventStep, resumed), w.sum(engine.EventFirst, one))
		}, Exact: "exact: a preemption counts when its request goes on, as the metric says",
	},
	{
		Metric: "vllm.arrival_rate", Additive: true, Truth: arrivals,
		Exact: "bounded: requests between the queue and their first token, those that left before it, and what changed since the last step",
	},
	{
		Metric: "vllm.request.queue_wait_estimate", Truth: queueWait,
		Exact: "exact: the queue at the end of the last step by the rate of first tokens; before 0.20 it may include deferred requests",
	},
	{
		Metric: "vllm.request.queue_time_ratio", Exact: sameRequests, Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(sumOf(w.ends(queued)), sumOf(w.ends(whole)))
		},
	},
	{
		Metric: "vllm.frontend_overhead_mean", Exact: sameRequests, Truth: func(w *Window, _ map[string]string) Answer {
			all := w.ends(whole)
			return ratio(sumOf(all)-sumOf(w.ends(queued))-sumOf(w.ends(inference)), float64(len(all)))
		},
	},
	{
		Metric: "vllm.request.finished_ratio", Extras: attributes("finished_reason", "stop", "length", "abort", "error", "repetition"),
		Exact: sameRequests, Truth: finishedRatio,
	},
	{
		Metric: "vllm.request.cancelled_estimate", Long: true, Additive: true, Truth: cancelled,
		Exact: "exact where one engine and one API server count the same requests; else bounded: running requests without a first token, and requests that wait again, at both ends of the window",
	},
	{
		Metric: "vllm.tokens_per_iteration", Truth: iterationTokens,
		Exact: "exact: steps with output; a prompt counts in its last step, without what a cache spared; " +
			"since 0.12 nothing shows several API servers, and with them it is the mean of the parts of a step, as its decision says",
	},
	{Metric: "vllm.request.prompt_tokens_mean", Truth: meanOf(endsOf(prompts)), Exact: sameRequests},
	{Metric: "vllm.request.generation_tokens_mean", Truth: meanOf(endsOf(outputs)), Exact: sameRequests},
	{
		Metric: "vllm.input_output_ratio", Exact: sameRequests, Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(sumOf(w.ends(prompts)), sumOf(w.ends(outputs)))
		},
	},
	{
		Metric: "vllm.spec_decode.acceptance_ratio", Exact: sameInstants, Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(w.sum(engine.EventStep, accepted(-1)), w.sum(engine.EventStep, drafted))
		},
	},
	{
		Metric: "vllm.spec_decode.mean_acceptance_length", Exact: sameInstants, Truth: func(w *Window, _ map[string]string) Answer {
			n := w.sum(engine.EventStep, drafts)
			return ratio(n+w.sum(engine.EventStep, accepted(-1)), n)
		},
	},
	{
		Metric: "vllm.spec_decode.position_acceptance_ratio", Extras: attributes("position", "0", "1", "2"),
		Exact: sameInstants, Truth: func(w *Window, extra map[string]string) Answer {
			position, _ := strconv.Atoi(extra["position"])
			return ratio(w.sum(engine.EventStep, accepted(position)), w.sum(engine.EventStep, drafts))
		},
	},
	{
		Metric: "vllm.kv_cache.capacity", Additive: true, Instant: true, Unlabelled: "0.10.0", Exact: "exact but for the block that is never used",
		Truth: func(w *Window, _ map[string]string) Answer { return within(w.capacity()-blockSize, w.capacity()) },
	},
	{
		Metric: "vllm.kv_cache.free", Additive: true, Instant: true, Exact: "exact at the end of the last step, but for the block that is never used",
		Truth: func(w *Window, _ map[string]string) Answer {
			free := w.capacity() * (1 - w.lastStep(w.Engine, w.To).Usage)
			return within(free-blockSize, free+blockSize)
		},
	},
	{
		Metric: "vllm.http.error_ratio", Server: true, Extras: attributes("status_class", "4xx", "5xx"),
		Exact: "exact: a response counts when it ends; a stream that fails counts as 2xx, as the metric says", Truth: errorRatio,
	},
	{
		Metric: "vllm.wasted_tokens_ratio", Extras: []map[string]string{{"reason": "rejected_drafts"}}, Exact: sameInstants,
		Truth: func(w *Window, _ map[string]string) Answer {
			n := w.sum(engine.EventStep, drafted)
			return ratio(n-w.sum(engine.EventStep, accepted(-1)), n+w.sum(engine.EventStep, generated))
		},
	},
	{
		Metric: "vllm.wasted_tokens_ratio", Long: true, Truth: abandoned,
		Extras: []map[string]string{{"reason": "abandoned_prefill", "bound": "lower"}, {"reason": "abandoned_prefill", "bound": "upper"}},
		Exact:  "the true share lies between the two bounds",
	},
	{
		Metric: "vllm.inter_token_latency_per_token_mean", Exact: sameInstants, Truth: func(w *Window, _ map[string]string) Answer {
			return ratio(sumOf(w.gaps()), w.sum(engine.EventStep, generated)-w.sum(engine.EventFirst, one))
		},
	},
}, latencies("vllm.time_to_first_token", sameInstants, firstTokens),
	latencies("vllm.inter_token_latency", sameInstants, (*Window).gaps),
	latencies("vllm.e2e_request_latency", sameRequests, endsOf(whole)),
	latencies("vllm.request.time_per_output_token", sameRequests, endsOf(perToken)),
	latencies("vllm.request.queue_time", sameRequests, endsOf(queued)),
	latencies("vllm.request.prefill_time", sameRequests, endsOf(prefill)),
	latencies("vllm.request.decode_time", sameRequests, endsOf(decode)),
	quantiles("vllm.request.prompt_tokens", endsOf(prompts)),
	quantiles("vllm.request.generation_tokens", endsOf(outputs)),
)

// Others are the derived metrics without a row, with the reason. A name that ends with a
// dot stands for all that begin with it.
var Others = map[string]string{
	"inference_gateway.":                "of an endpoint picker, not of a vLLM server; lab/test/history and the recordings of pickers test them",
	"vllm.pool.":                        "sums over servers of the parts that are tested here; the oracle of package pool tests the sums",
	"vllm.slo.":                         "objectives count the same events; lab/test/content tests them against the outcomes of requests",
	"vllm.diagnosis.":                   "no number of requests; TestNoFalseAlarm tests it, and lab/judge measures it",
	"vllm.gpu.":                         "of an exporter of GPU metrics, which these stories do not have; the processor's tests compute them by hand",
	"vllm.energy_per_generated_token":   "as vllm.gpu.",
	"vllm.drop_rate":                    "no simulated server refuses requests before it serves them",
	"vllm.model_flops_utilization":      "the server's own estimate of its work; there is no truth but its model of the hardware",
	"vllm.memory_bandwidth_utilization": "as model_flops_utilization",
}

func attributes(key string, values ...string) (all []map[string]string) {
	for _, v := range values {
		all = append(all, map[string]string{key: v})
	}
	return all
}

func perSecond(metric string, kind engine.EventKind, of func(*engine.Event) float64) Row {
	return Row{Metric: metric, Additive: true, Exact: sameInstants, Truth: func(w *Window, _ map[string]string) Answer {
		return exactly(w.sum(kind, of) / w.Elapsed())
	}}
}

// ranks are the quantiles that the processor derives by default.
var ranks = []string{"0.5", "0.95", "0.99"}

// latencies are the rows of the mean, the quantiles and their bounds.
func latencies(metric, exact string, of func(*Window) []float64) []Row {
	of = remembered(metric, of)
	return append([]Row{{Metric: metric + "_mean", Truth: meanOf(of), Exact: exact}}, quantiles(metric, of)...)
}

func quantiles(metric string, of func(*Window) []float64) []Row {
	of = remembered(metric, of)
	var bounds []map[string]string
	for _, rank := range ranks {
		bounds = append(bounds, map[string]string{"quantile": rank, "bound": "lower"}, map[string]string{"quantile": rank, "bound": "upper"})
	}
	return []Row{
		{Metric: metric + "_quantile", Extras: attributes("quantile", ranks...), Exact: bucket, Truth: func(w *Window, _ map[string]string) Answer {
			if len(of(w)) == 0 {
				return Answer{}
			}
			return within(0, math.Inf(1)) // That it is between its bounds is tested besides.
		}},
		{Metric: metric + "_quantile_bound", Extras: bounds, Exact: bucket, Truth: func(w *Window, extra map[string]string) Answer {
			values := of(w)
			if len(values) == 0 {
				return Answer{}
			}
			rank, _ := strconv.ParseFloat(extra["quantile"], 64)
			value := quantile(values, rank)
			if extra["bound"] == "lower" {
				return within(0, value)
			}
			return Answer{intervals: [][2]float64{{value, math.Inf(1)}}, unsure: true} // The open bucket has no upper bound.
		}},
	}
}

func meanOf(of func(*Window) []float64) func(*Window, map[string]string) Answer {
	return func(w *Window, _ map[string]string) Answer {
		values := of(w)
		return ratio(sumOf(values), float64(len(values)))
	}
}

func sumOf(values []float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

// remembered computes values once for a window, and sorts them.
func remembered(metric string, of func(*Window) []float64) func(*Window) []float64 {
	return func(w *Window) []float64 {
		values, known := w.sorted[metric]
		if !known {
			values = of(w)
			slices.Sort(values)
			w.sorted[metric] = values
		}
		return values
	}
}
