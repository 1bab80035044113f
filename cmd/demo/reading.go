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
)

// The metrics that the summary shows, as the Prometheus exporter writes them: the
// first three are the server's own, the others what the processor derives.
const (
	nameRunning = "vllm_num_requests_running"
	nameWaiting = "vllm_num_requests_waiting"
	nameKVCache = "vllm_kv_cache_utilization_ratio"

	namePrompt      = "vllm_prompt_throughput_per_second"
	nameGeneration  = "vllm_generation_throughput_per_second"
	nameRequests    = "vllm_request_throughput_per_second"
	nameTTFT        = "vllm_time_to_first_token_mean_seconds"
	nameTTFTRank    = "vllm_time_to_first_token_quantile_seconds"
	nameITL         = "vllm_inter_token_latency_mean_seconds"
	nameITLRank     = "vllm_inter_token_latency_quantile_seconds"
	namePrefixRatio = "vllm_prefix_cache_hit_ratio"
	nameQueueWait   = "vllm_request_queue_wait_estimate_seconds"
)

// reading is what one look at the endpoint says. A number that is not there is NaN.
type reading struct {
	// at is the newest time that a sample carries, zero where none does.
	at time.Time
	// running and waiting are requests over all engines, kvCache is the fullest
	// engine's fraction.
	running, waiting, kvCache float64
	// Per second, over all engines: tokens in and out, and requests that ended.
	prompt, generation, requests float64
	// Seconds, over the engines of the model: mean and 0.95 quantile.
	ttft, ttft95, itl, itl95 float64
	// prefixRatio is from 0 to 1, queueWait in seconds.
	prefixRatio, queueWait float64
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
		running:     sum(families[nameRunning]),
		waiting:     sum(families[nameWaiting]),
		kvCache:     math.NaN(),
		prompt:      sum(families[namePrompt]),
		generation:  sum(families[nameGeneration]),
		requests:    sum(families[nameRequests]),
		ttft:        overall(families[nameTTFT], ""),
		ttft95:      overall(families[nameTTFTRank], "0.95"),
		itl:         overall(families[nameITL], ""),
		itl95:       overall(families[nameITLRank], "0.95"),
		prefixRatio: overall(families[namePrefixRatio], ""),
		queueWait:   overall(families[nameQueueWait], ""),
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
// because their values cannot be put together. quantile chooses among the series
// of a family that has several.
func overall(family *dto.MetricFamily, quantile string) float64 {
	var chosen, engines []float64
	for _, series := range family.GetMetric() {
		labels := map[string]string{}
		for _, pair := range series.GetLabel() {
			labels[pair.GetName()] = pair.GetValue()
		}
		switch {
		case labels["quantile"] != quantile:
		case labels["engine"] == "":
			chosen = append(chosen, number(series))
		default:
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
