package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
)

// The metrics that the summary shows, as the Prometheus exporter writes them: the
// first three are the server's own, the others what the processor derives.
const (
	nameRunning = "vllm_num_requests_running"
	nameWaiting = "vllm_num_requests_waiting"
	nameKVCache = "vllm_kv_cache_utilization_ratio"

	nameGeneration = "vllm_generation_throughput_per_second"
	nameTTFT       = "vllm_time_to_first_token_mean_seconds"
	nameITL        = "vllm_inter_token_latency_mean_seconds"
)

// reading has the numbers of one read of the endpoint. A missing number is NaN.
type reading struct {
	// at is the newest time of a sample; zero without one.
	at time.Time
	// running and waiting are requests over all engines, kvCache is the fullest
	// engine's fraction.
	running, waiting, kvCache float64
	// generation is tokens per second over all engines.
	generation float64
	// Means in seconds, over the engines of the model.
	ttft, itl float64
	verdict   verdict.Verdict
}

// reader reads the collector's Prometheus endpoint.
type reader struct {
	url    string
	client http.Client
	// lastError is why the last read failed, nil if it did not.
	lastError error
}

func newReader(url string) *reader {
	return &reader{url: url, client: http.Client{Timeout: 3 * time.Second}}
}

// read fails as long as no metrics of a vLLM server are there.
func (r *reader) read(ctx context.Context) (now reading, err error) {
	defer func() { r.lastError = err }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return reading{}, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return reading{}, fmt.Errorf("%s: %s", r.url, response.Status)
	}
	now, err = interpret(response.Body)
	if now.at.IsZero() {
		now.at = time.Now()
	}
	return now, err
}

// interpret reads a body in the Prometheus text format.
func interpret(body io.Reader) (reading, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return reading{}, err
	}
	if families[nameRunning] == nil {
		return reading{}, errors.New("the collector has no metrics of a vLLM server yet")
	}

	now := reading{
		running:    sum(families[nameRunning]),
		waiting:    sum(families[nameWaiting]),
		kvCache:    math.NaN(),
		generation: sum(families[nameGeneration]),
		ttft:       overall(families[nameTTFT]),
		itl:        overall(families[nameITL]),
		verdict:    judged(families),
	}
	for _, series := range families[nameKVCache].GetMetric() {
		if used := number(series); math.IsNaN(now.kvCache) || used > now.kvCache {
			now.kvCache = used
		}
	}
	for _, family := range families {
		for _, series := range family.GetMetric() {
			if at := time.UnixMilli(series.GetTimestampMs()); series.TimestampMs != nil && at.After(now.at) {
				now.at = at
			}
		}
	}
	return now, nil
}

func number(series *dto.Metric) float64 {
	switch {
	case series.GetGauge() != nil:
		return series.GetGauge().GetValue()
	case series.GetCounter() != nil:
		return series.GetCounter().GetValue()
	default:
		return series.GetUntyped().GetValue()
	}
}

// sum adds up all series of a family; NaN where there are none.
func sum(family *dto.MetricFamily) float64 {
	if len(family.GetMetric()) == 0 {
		return math.NaN()
	}
	total := 0.0
	for _, series := range family.GetMetric() {
		total += number(series)
	}
	return total
}

// overall is the value over all engines: that of the series without an engine,
// or of the only one. Where several servers or models have one each it is NaN,
// because their values cannot be put together.
func overall(family *dto.MetricFamily) float64 {
	var chosen, engines []float64
	for _, series := range family.GetMetric() {
		if label(series, "engine") == "" {
			chosen = append(chosen, number(series))
		} else {
			engines = append(engines, number(series))
		}
	}
	if len(chosen) == 0 {
		chosen = engines
	}
	if len(chosen) != 1 {
		return math.NaN()
	}
	return chosen[0]
}
