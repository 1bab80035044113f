//go:build e2e

package backends

import (
	"bytes"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

const (
	// scrapeCount is how many scrapes a test sends; the last one ends a series.
	scrapeCount = 3
	// These have a value in all scrapes except the last, which ends them.
	gaugeGone, sumGone, histogramGone = "vllm.test.gauge_gone", "vllm.test.sum_gone", "vllm.test.histogram_gone"
	// notNumbers is a gauge whose points are NaN, +Inf and -Inf.
	notNumbers = "vllm.test.not_numbers"
	// twoPoints is a summary of two series, as that of a server with two paths.
	twoPoints = "vllm.test.two_points"
	// reserved is a gauge with reservedAttributes.
	reserved = "vllm.test.reserved"
	// sent is an attribute of the derived metrics that the test sends. Those
	// without it come from the processor, which derives from what the test sends.
	sent = "sent"
)

// reservedAttributes belong to Google's monitored resource.
var reservedAttributes = []string{"location", "cluster", "namespace", "job", "instance", "project_id"}

// resourceAttributes are all that the receiver can set, and those that an operator adds in
// Kubernetes.
var resourceAttributes = map[string]string{
	"service.name": "vllm", "service.instance.id": "vllm-1:8000", "service.version": "0.28.0",
	"server.address": "vllm-1", "url.scheme": "http",
	"k8s.namespace.name": "inference", "k8s.pod.name": "vllm-1", "k8s.node.name": "gpu-7",
	"deployment.environment.name":              "production",
	"vllm.cache_config.cache_dtype":            "auto",
	"vllm.cache_config.cpu_offload_gb":         "0",
	"vllm.cache_config.enable_prefix_caching":  "True",
	"vllm.cache_config.gpu_memory_utilization": "0.9",
	"vllm.cache_config.kv_cache_memory_bytes":  "8589934592",
	"vllm.cache_config.kv_offloading_backend":  "native",
	"vllm.cache_config.mamba_cache_mode":       "none", "vllm.cache_config.prefix_caching_hash_algo": "sha256",
	"vllm.cache_config.sliding_window": "4096", "vllm.cache_config.swap_space_bytes": "4294967296",
}

// bounds are those of time_to_first_token, shortened.
var bounds = []float64{0.001, 0.01, 0.1, 0.5, 1, 2.5, 10, 80}

// catalogue returns scrape number n, from 1, of a server with every metric of the
// catalogue, including the derived ones. Everything counts from began: counters have n
// times 100, histograms observedAt observations in every bucket.
func catalogue(n int, began, now time.Time) pmetric.Metrics {
	all := pmetric.NewMetrics()
	rm := all.ResourceMetrics().AppendEmpty()
	for name, value := range resourceAttributes {
		rm.Resource().Attributes().PutStr(name, value)
	}
	rm.Resource().Attributes().PutInt("server.port", 8000)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver")
	start, at := pcommon.NewTimestampFromTime(began), pcommon.NewTimestampFromTime(now)
	add := func(m catalog.Metric) pmetric.Metric {
		metric := sm.Metrics().AppendEmpty()
		metric.SetName(m.Name)
		metric.SetUnit(m.Unit)
		metric.SetDescription(m.Description)
		return metric
	}
	attributes := func(m catalog.Metric, to pcommon.Map) {
		for _, name := range m.Attributes {
			to.PutStr(name, plausible(name))
		}
		if m.Derived() {
			to.PutStr(sent, "by-the-test")
		}
	}
	for _, m := range catalog.All() {
		metric := add(m)
		switch m.Kind {
		case catalog.KindGauge:
			point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetTimestamp(at)
			point.SetDoubleValue(0.25 * float64(n))
			attributes(m, point.Attributes())
		case catalog.KindSum:
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point := sum.DataPoints().AppendEmpty()
			point.SetStartTimestamp(start)
			point.SetTimestamp(at)
			point.SetDoubleValue(100 * float64(n))
			attributes(m, point.Attributes())
		case catalog.KindHistogram:
			n := observedAt(m, n)
			histogram := metric.SetEmptyHistogram()
			histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point := histogram.DataPoints().AppendEmpty()
			point.SetStartTimestamp(start)
			point.SetTimestamp(at)
			point.ExplicitBounds().FromRaw(bounds)
			for range len(bounds) + 1 {
				point.BucketCounts().Append(uint64(n))
			}
			point.SetCount(uint64(n * (len(bounds) + 1)))
			point.SetSum(94.1 * float64(n))
			attributes(m, point.Attributes())
		case catalog.KindSummary:
			point := metric.SetEmptySummary().DataPoints().AppendEmpty()
			point.SetStartTimestamp(start)
			point.SetTimestamp(at)
			point.SetCount(uint64(100 * n))
			point.SetSum(100 * float64(n))
			attributes(m, point.Attributes())
		}
	}
	odd(sm, n, start, at)
	return all
}

// observedAt is how many observations each bucket of a histogram has at scrape n. Canaries do not become more:
// derived values would leave out all other requests with them.
func observedAt(m catalog.Metric, n int) int {
	if m.Name == "vllm.canary.duration" {
		return 1
	}
	return n
}

// odd adds what the catalogue lacks: series that end, values that are not numbers, a summary
// of two series, and an unknown family.
func odd(sm pmetric.ScopeMetrics, n int, start, at pcommon.Timestamp) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(n == scrapeCount)
	gauge := func(name string, value float64) pmetric.NumberDataPoint {
		metric := sm.Metrics().AppendEmpty()
		metric.SetName(name)
		metric.SetUnit("{request}")
		point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetTimestamp(at)
		point.SetDoubleValue(value)
		return point
	}
	gauge(gaugeGone, 7).SetFlags(gone)
	metric := sm.Metrics().AppendEmpty()
	metric.SetName(sumGone)
	metric.SetUnit("{request}")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetStartTimestamp(start)
	point.SetTimestamp(at)
	point.SetDoubleValue(100 * float64(n))
	point.SetFlags(gone)
	metric = sm.Metrics().AppendEmpty()
	metric.SetName(histogramGone)
	metric.SetUnit("{request}")
	histogram := metric.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	distribution := histogram.DataPoints().AppendEmpty()
	distribution.SetStartTimestamp(start)
	distribution.SetTimestamp(at)
	distribution.SetFlags(gone)
	distribution.ExplicitBounds().FromRaw(bounds)
	distribution.BucketCounts().FromRaw(make([]uint64, len(bounds)+1))
	for name, value := range map[string]float64{"nan": math.NaN(), "up": math.Inf(1), "down": math.Inf(-1)} {
		gauge(notNumbers, value).Attributes().PutStr("which", name)
	}
	metric = sm.Metrics().AppendEmpty()
	metric.SetName(twoPoints)
	metric.SetUnit("By")
	points := metric.SetEmptySummary().DataPoints()
	for _, which := range []string{"first", "second"} {
		point := points.AppendEmpty()
		point.SetStartTimestamp(start)
		point.SetTimestamp(at)
		point.SetCount(uint64(100 * n))
		point.SetSum(100 * float64(n))
		point.Attributes().PutStr("which", which)
	}
}

// withReserved adds points with attributes that Google reserves. Metrics of vLLM do not
// have them, but those of an endpoint picker do.
func withReserved(metrics pmetric.Metrics, now time.Time) pmetric.Metrics {
	scope := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0)
	metric := scope.Metrics().AppendEmpty()
	metric.SetName(reserved)
	metric.SetUnit("{attempt}")
	points := metric.SetEmptyGauge().DataPoints()
	for _, name := range reservedAttributes {
		point := points.AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(now))
		point.SetDoubleValue(1)
		point.Attributes().PutStr(name, "own-"+name)
	}
	return metrics
}

// plausible returns a value for an attribute.
func plausible(name string) string {
	switch name {
	case "model_name", "served_model_name", "gen_ai.request.model":
		return "meta-llama/Llama-3.1-8B-Instruct"
	case "engine", "engine_id", "position", "worker_id", "device", "generation", "major", "minor", "patchlevel":
		return "0"
	case "status", "status_code":
		return "2xx"
	case "quantile":
		return "0.95"
	case "handler", "path":
		return "/v1/chat/completions"
	}
	return "some-" + name
}

// send sends one scrape to the collector's OTLP receiver.
func send(t *testing.T, addr string, metrics pmetric.Metrics) {
	t.Helper()
	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	require.NoError(t, err)
	response, err := http.Post("http://"+addr+"/v1/metrics", "application/x-protobuf", bytes.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}
