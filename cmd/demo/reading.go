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

// The metrics that the summary shows, as the Prometheus exporter writes them.
const (
	nameUp          = "vllm_up"
	nameRunning     = "vllm_num_requests_running"
	nameWaiting     = "vllm_num_requests_waiting"
	nameKVCache     = "vllm_kv_cache_utilization_ratio"
	namePrompt      = "vllm_prompt_tokens_total"
	nameGeneration  = "vllm_generation_tokens_total"
	nameSuccess     = "vllm_request_success_total"
	nameFirstToken  = "vllm_time_to_first_token_seconds"
	nameInterToken  = "vllm_inter_token_latency_seconds"
	namePrefixHits  = "vllm_prefix_cache_hits_total"
	namePrefixAsked = "vllm_prefix_cache_queries_total"
)

// reading is what one look at the endpoint says. A number that is not there is NaN.
type reading struct {
	// at is the newest time that a sample carries, zero where none does.
	at time.Time
	// up of targets answer.
	up, targets int
	// running and waiting are requests over all engines, kvCache is the fullest
	// engine's fraction.
	running, waiting, kvCache float64
	// What follows only rises: tokens and requests since the server started.
	prompt, generation, success, prefixHits, prefixAsked float64
	firstToken, interToken                               totals
}

// totals are the sum (in seconds) and the count of a histogram's observations.
type totals struct{ sum, count float64 }

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
		success:     sum(families[nameSuccess]),
		prefixHits:  sum(families[namePrefixHits]),
		prefixAsked: sum(families[namePrefixAsked]),
		firstToken:  observations(families[nameFirstToken]),
		interToken:  observations(families[nameInterToken]),
	}
	for _, series := range families[nameKVCache].GetMetric() {
		if used := number(series); math.IsNaN(now.kvCache) || used > now.kvCache {
			now.kvCache = used
		}
	}
	for _, series := range families[nameUp].GetMetric() {
		now.targets++
		if number(series) > 0 {
			now.up++
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

func observations(family *dto.MetricFamily) totals {
	if len(family.GetMetric()) == 0 {
		return totals{math.NaN(), math.NaN()}
	}
	var all totals
	for _, series := range family.GetMetric() {
		all.sum += series.GetHistogram().GetSampleSum()
		all.count += float64(series.GetHistogram().GetSampleCount())
	}
	return all
}
