// Package conform compares the derived values of a real vLLM with what its clients saw in the same
// time. Its samples are compared by lab/test/conformance.
package conform

import (
	"context"
	"math"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
)

// Release is the conformance of one release of vLLM.
type Release struct {
	Version  string    `json:"version"`
	Measured time.Time `json:"measured"`
	Capacity float64   `json:"capacity"`
	Values   []Row     `json:"values"`
}

// Row compares one derived metric.
type Row struct {
	Metric string `json:"metric"`
	// Windows is how many windows were compared, Requests the least number of requests in one.
	Windows  int `json:"windows"`
	Requests int `json:"requests"`
	// Truth and Ours are those of the window in which they differ most, in the metric's unit.
	Truth float64 `json:"truth"`
	Ours  float64 `json:"ours"`
	// Low and High are the published bounds of a percentile; both 0 where there are none.
	Low  float64 `json:"low,omitempty"`
	High float64 `json:"high,omitempty"`
	// Held is whether all windows are within the bar.
	Held bool `json:"held"`

	// off is how far the window with Truth is off, as a multiple of the bar.
	off float64
}

// The bar: a value may differ by so much of itself, or by 10 ms.
const (
	share    = 0.03
	absolute = 0.010
	window   = 60.0
)

// seen is what the clients saw in a window.
type seen struct {
	seconds                            float64
	first, gap, whole, prompt, output  []float64
	firstPrompt, tokens, finished, new float64
}

// truth returns what clients saw after one time and up to another.
func truth(all []judge.Sent, from, to float64) *seen {
	s := &seen{seconds: to - from}
	within := func(at float64) bool { return at > from && at <= to }
	for i := range all {
		r := &all[i]
		for j, t := range r.Tokens {
			if !within(r.At + t) {
				continue
			}
			s.tokens++
			if j == 0 {
				s.first = append(s.first, t)
				s.firstPrompt += float64(r.Prompt)
			} else {
				s.gap = append(s.gap, t-r.Tokens[j-1])
			}
		}
		if within(r.At) {
			s.new++
		}
		if r.How == judge.Answered && within(r.At+r.End) {
			s.finished++
			s.whole = append(s.whole, r.End)
			s.prompt = append(s.prompt, float64(r.Prompt))
			s.output = append(s.output, float64(r.Output))
		}
	}
	return s
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

// quantile is the value with a share of the others below it.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// compared are the metrics with the truth of each.
var compared = []struct {
	metric string
	of     func(*seen) float64
}{
	{"vllm.request_throughput", func(s *seen) float64 { return s.finished / s.seconds }},
	{"vllm.first_token_rate", func(s *seen) float64 { return float64(len(s.first)) / s.seconds }},
	{"vllm.arrival_rate", func(s *seen) float64 { return s.new / s.seconds }},
	{"vllm.generation_throughput", func(s *seen) float64 { return s.tokens / s.seconds }},
	{"vllm.prompt_throughput", func(s *seen) float64 { return s.firstPrompt / s.seconds }},
	{"vllm.request.prompt_tokens_mean", func(s *seen) float64 { return average(s.prompt) }},
	{"vllm.request.generation_tokens_mean", func(s *seen) float64 { return average(s.output) }},
	{"vllm.time_to_first_token_mean", func(s *seen) float64 { return average(s.first) }},
	{"vllm.inter_token_latency_mean", func(s *seen) float64 { return average(s.gap) }},
	{"vllm.e2e_request_latency_mean", func(s *seen) float64 { return average(s.whole) }},
}

// percentiles are the latencies whose published bounds must hold the truth.
var percentiles = []struct {
	metric string
	of     func(*seen) []float64
}{
	{"vllm.time_to_first_token", func(s *seen) []float64 { return s.first }},
	{"vllm.inter_token_latency", func(s *seen) []float64 { return s.gap }},
	{"vllm.e2e_request_latency", func(s *seen) []float64 { return s.whole }},
}

// Values compares the derived values of a run's steady phase with what the clients saw.
func Values(ctx context.Context, r *run.Run) ([]Row, error) {
	rows := map[string]*Row{}
	bounds := map[string]any{}
	for _, p := range percentiles {
		bounds[p.metric+"_quantile_bound"] = map[string]any{"enabled": true}
	}
	var times []float64
	after := window + 2*run.Every.Seconds()
	err := said.Feed(ctx, r, run.Every, map[string]any{"metrics": bounds}, func(look *run.Scrape, metrics pmetric.Metrics) error {
		at := look.At
		times = append(times, at)
		if at < after || at > r.Spans[0].To {
			return nil
		}
		after = at + window
		// The baseline of a window is the newest scrape that is at least as old.
		base := times[0]
		for _, t := range times {
			if t <= at-window {
				base = t
			}
		}
		compare(rows, truth(r.Sent, base, at), metrics)
		return nil
	})
	var out []Row
	for _, c := range compared {
		if row := rows[c.metric]; row != nil {
			out = append(out, *row)
		}
	}
	for _, p := range percentiles {
		for _, q := range []string{"0.5", "0.95", "0.99"} {
			if row := rows[p.metric+" "+q]; row != nil {
				out = append(out, *row)
			}
		}
	}
	return out, err
}

func compare(rows map[string]*Row, s *seen, metrics pmetric.Metrics) {
	add := func(name string, one Row, off float64) {
		row := rows[name]
		if row == nil {
			row = &Row{Metric: name, Held: true, Requests: math.MaxInt, off: -1}
			rows[name] = row
		}
		row.Windows++
		row.Requests = min(row.Requests, len(s.whole))
		row.Held = row.Held && off <= 1
		if off > row.off {
			row.off, row.Truth, row.Ours, row.Low, row.High = off, one.Truth, one.Ours, one.Low, one.High
		}
	}
	for _, c := range compared {
		if ours, found := value(metrics, c.metric, nil); found {
			want := c.of(s)
			add(c.metric, Row{Truth: want, Ours: ours}, math.Abs(want-ours)/bar(c.metric, want))
		}
	}
	for _, p := range percentiles {
		for name, q := range map[string]float64{"0.5": 0.5, "0.95": 0.95, "0.99": 0.99} {
			ours, found := value(metrics, p.metric+"_quantile", map[string]string{"quantile": name})
			low, lower := value(metrics, p.metric+"_quantile_bound", map[string]string{"quantile": name, "bound": "lower"})
			high, upper := value(metrics, p.metric+"_quantile_bound", map[string]string{"quantile": name, "bound": "upper"})
			if !found || !lower || !upper {
				continue
			}
			// A client's time has the way to the server in it.
			want := quantile(p.of(s), q)
			off := max(low-want, want-high, 0) / absolute
			add(p.metric+" "+name, Row{Truth: want, Ours: ours, Low: low, High: high}, off)
		}
	}
}

// bar is by how much a value may differ. The 10 ms are for times.
func bar(metric string, want float64) float64 {
	if slices.Contains([]string{"vllm.time_to_first_token_mean", "vllm.inter_token_latency_mean", "vllm.e2e_request_latency_mean"}, metric) {
		return max(share*want, absolute)
	}
	return share * want
}

// value is the point of a metric with some attributes, of the first engine that has it.
func value(metrics pmetric.Metrics, name string, with map[string]string) (float64, bool) {
points:
	for _, p := range said.Points(metrics, name) {
		for key, want := range with {
			if got, there := p.Attributes().Get(key); !there || got.AsString() != want {
				continue points
			}
		}
		return p.DoubleValue(), true
	}
	return 0, false
}

// Steady is how long a server is looked at for its values.
const Steady = 5 * time.Minute
