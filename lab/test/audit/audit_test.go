package audit

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// page has a line for nearly every fate.
const page = `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
vllm:num_requests_running{model_name="m",engine="1"} 5.0
vllm:num_requests_running{engine="2",model_name="m"} five
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.25
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m",pid="34"} 0.5
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 128.0
# TYPE vllm:prompt_tokens_created gauge
vllm:prompt_tokens_created{engine="0",model_name="m"} 1000.5
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finish_reason="stop",model_name="m"} 7.0
# TYPE vllm:corrupted_requests_total counter
vllm:corrupted_requests_total{engine="0",model_name="m"} NaN
# TYPE vllm:gpu_prefix_cache_hit_rate gauge
vllm:gpu_prefix_cache_hit_rate{model_name="m"} -1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 2.5
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 5.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 6.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 6.0
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_bucket{le="1.0",model_name="m"} 2.0
vllm:e2e_request_latency_seconds_count{model_name="m"} 2.0
# TYPE vllm:answer_size_bytes summary
vllm:answer_size_bytes_count{handler="/v1/completions"} 2.0
vllm:answer_size_bytes_sum{handler="/v1/completions"} 300.0
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="100"} 1.0
# TYPE vllm:simple_kv_offload_info gauge
vllm:simple_kv_offload_info{backend="cpu",engine="0"} 1.0
# TYPE vllm:mm_cache_queries_total counter
vllm:mm_cache_queries_total{engine="0",model_name="m"} 0.0
# TYPE vllm:new_thing_seconds_total counter
vllm:new_thing_seconds_total{job="x"} 9.0
# TYPE vllm:gpu_prefix_cache_hits_total gauge
vllm:gpu_prefix_cache_hits_total{server="a"} 640.0
# TYPE process_start_time_seconds gauge
process_start_time_seconds 900.0
`

// scrapedAt is the time of the scrape.
var scrapedAt = pcommon.NewTimestampFromTime(time.Unix(2000, 0))

// pointsOfPage is what the receiver must make of the page, written by hand.
func pointsOfPage() pmetric.ResourceMetrics {
	rm := pmetric.NewResourceMetrics()
	rm.Resource().Attributes().PutStr("vllm.simple_kv_offload.backend", "cpu")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	gauge := func(name, unit string) pmetric.NumberDataPointSlice {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription("d")
		return m.SetEmptyGauge().DataPoints()
	}
	sum := func(name, unit string) pmetric.NumberDataPointSlice {
		m := metrics.AppendEmpty()
		m.SetName(name)
		m.SetUnit(unit)
		m.SetDescription("d")
		m.SetEmptySum().SetIsMonotonic(true)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return m.Sum().DataPoints()
	}
	add := func(to pmetric.NumberDataPointSlice, value float64, start int64, attributes ...string) {
		p := to.AppendEmpty()
		p.SetTimestamp(scrapedAt)
		p.SetStartTimestamp(pcommon.Timestamp(start * 1e6))
		p.SetDoubleValue(value)
		attribute(p.Attributes(), attributes...)
	}
	running := gauge("vllm.num_requests.running", "{request}")
	add(running, 3, 0, "engine", "0", "model_name", "m")
	add(running, 4, 0, "engine", "1", "model_name", "m")
	add(gauge("vllm.kv_cache.utilization", "1"), 0.5, 0, "engine", "0", "model_name", "m")
	add(sum("vllm.prompt_tokens", "{token}"), 128, 1000500, "engine", "0", "model_name", "m")
	add(sum("vllm.request.success", "{request}"), 7, 900000, "engine", "0", "finished_reason", "stop", "model_name", "m")
	add(gauge("vllm.kv_cache.block_size", "{token}"), 16, 0, "engine", "0")
	add(gauge("vllm.kv_cache.num_gpu_blocks", "{block}"), 100, 0, "engine", "0")
	add(sum("vllm.new_thing", "s"), 9, 900000, "exported_job", "x")
	add(gauge("vllm.whatever_is_free", ""), 640, 0, "server", "a")
	add(gauge("vllm.up", "{state}"), 1, 0)
	add(gauge("vllm.scrape.duration", "s"), 0.01, 0)
	add(gauge("vllm.scrape.samples", "{sample}"), 25, 0)

	ttft := metrics.AppendEmpty()
	ttft.SetName("vllm.time_to_first_token")
	ttft.SetUnit("s")
	ttft.SetDescription("d")
	ttft.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	h := ttft.Histogram().DataPoints().AppendEmpty()
	h.SetTimestamp(scrapedAt)
	h.SetStartTimestamp(900e9)
	h.SetCount(6)
	h.SetSum(2.5)
	h.ExplicitBounds().FromRaw([]float64{0.1, 0.5})
	h.BucketCounts().FromRaw([]uint64{2, 3, 1})
	attribute(h.Attributes(), "engine", "0", "model_name", "m")

	size := metrics.AppendEmpty()
	size.SetName("vllm.answer_size")
	size.SetUnit("By")
	size.SetDescription("d")
	s := size.SetEmptySummary().DataPoints().AppendEmpty()
	s.SetTimestamp(scrapedAt)
	s.SetStartTimestamp(900e9)
	s.SetCount(2)
	s.SetSum(300)
	attribute(s.Attributes(), "handler", "/v1/completions")
	return rm
}

func attribute(to pcommon.Map, attributes ...string) {
	for i := 0; i < len(attributes); i += 2 {
		to.PutStr(attributes[i], attributes[i+1])
	}
}

func TestWhatTheBodySaysPasses(t *testing.T) {
	report := Check(Scrape{Body: []byte(page), ContentType: "text/plain; version=0.0.4"}, pointsOfPage())
	assert.Empty(t, report.Violations)
	assert.Equal(t, map[Fate]int{
		// Two running, one utilization, three counters, five lines of a histogram,
		// two of a summary, one router's gauge.
		Emitted: 14,
		BadLine: 1, Duplicate: 1, Alias: 1, StartTime: 1, NaNCounter: 1, Sentinel: 1, BadHistogram: 2, Info: 2, Unused: 1,
		Disabled: 1,
	}, report.Fates)
	assert.Equal(t, 14, report.Points)

	second := Check(Scrape{Body: []byte(page), ContentType: "text/plain", Before: report}, pointsOfPage())
	assert.Empty(t, second.Violations, "a second scrape has the same starts")
}

// found returns the metric of a name, which must be there.
func found(rm pmetric.ResourceMetrics, name string) pmetric.Metric {
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		if m.Name() == name {
			return m
		}
	}
	panic("no metric " + name)
}

func TestEveryFalsificationIsFound(t *testing.T) {
	gauge := func(rm pmetric.ResourceMetrics) pmetric.NumberDataPoint {
		return found(rm, "vllm.num_requests.running").Gauge().DataPoints().At(0)
	}
	counter := func(rm pmetric.ResourceMetrics) pmetric.NumberDataPoint {
		return found(rm, "vllm.prompt_tokens").Sum().DataPoints().At(0)
	}
	histogram := func(rm pmetric.ResourceMetrics) pmetric.HistogramDataPoint {
		return found(rm, "vllm.time_to_first_token").Histogram().DataPoints().At(0)
	}
	add := func(rm pmetric.ResourceMetrics, name string, attributes ...string) {
		m := rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
		m.SetName(name)
		m.SetDescription("d")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(scrapedAt)
		attribute(p.Attributes(), attributes...)
	}
	for _, c := range []struct {
		name    string
		falsify func(rm pmetric.ResourceMetrics)
		want    string
	}{
		{"a value of a gauge", func(rm pmetric.ResourceMetrics) { gauge(rm).SetDoubleValue(3.5) }, "the value is 3.5, not 3"},
		{"a value of a counter", func(rm pmetric.ResourceMetrics) { counter(rm).SetDoubleValue(129) }, "the value is 129, not 128"},
		{"a duplicate's value instead of the first", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.num_requests.running").Gauge().DataPoints().At(1).SetDoubleValue(5)
		}, "the value is 5, not 4"},
		{"the older family's value", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.kv_cache.utilization").Gauge().DataPoints().At(0).SetDoubleValue(0.25)
		}, "the value is 0.25, not 0.5"},
		{"a count moved to the next bucket", func(rm pmetric.ResourceMetrics) {
			histogram(rm).BucketCounts().FromRaw([]uint64{1, 4, 1})
		}, "up to 0.1 there are 1, not 2"},
		{"a bound", func(rm pmetric.ResourceMetrics) {
			histogram(rm).ExplicitBounds().FromRaw([]float64{0.1, 0.6})
		}, "bound 1 is 0.6, not 0.5"},
		{"a bucket too few", func(rm pmetric.ResourceMetrics) {
			histogram(rm).ExplicitBounds().FromRaw([]float64{0.1})
			histogram(rm).BucketCounts().FromRaw([]uint64{2, 4})
		}, "2 buckets"},
		{"a histogram's count", func(rm pmetric.ResourceMetrics) { histogram(rm).SetCount(7) }, "the count is 7, not 6"},
		{"a histogram's sum", func(rm pmetric.ResourceMetrics) { histogram(rm).SetSum(2) }, "the sum is 2, not 2.5"},
		{"a histogram without its sum", func(rm pmetric.ResourceMetrics) { histogram(rm).RemoveSum() }, "has no sum"},
		{"a histogram with a minimum", func(rm pmetric.ResourceMetrics) { histogram(rm).SetMin(0) }, "minimum"},
		{"an exemplar from nowhere", func(rm pmetric.ResourceMetrics) {
			histogram(rm).Exemplars().AppendEmpty().SetDoubleValue(1)
		}, "exemplars"},
		{"a summary's count", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.answer_size").Summary().DataPoints().At(0).SetCount(3)
		}, "the count is 3, not 2"},
		{"a summary with a quantile from nowhere", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.answer_size").Summary().DataPoints().At(0).QuantileValues().AppendEmpty()
		}, "1 quantiles, not 0"},
		{"an added point", func(rm pmetric.ResourceMetrics) {
			p := found(rm, "vllm.num_requests.running").Gauge().DataPoints().AppendEmpty()
			p.SetTimestamp(scrapedAt)
			attribute(p.Attributes(), "engine", "2", "model_name", "m")
		}, `vllm.num_requests.running{engine="2",model_name="m"}: stems from no sample`},
		{"an added metric of the catalogue", func(rm pmetric.ResourceMetrics) { add(rm, "vllm.num_requests.waiting") }, "stems from no sample"},
		{"an added metric of no catalogue", func(rm pmetric.ResourceMetrics) { add(rm, "vllm.more") }, "stems from no sample"},
		{"the sentinel", func(rm pmetric.ResourceMetrics) {
			add(rm, "vllm.gpu_prefix_cache.hit_rate", "model_name", "m")
		}, "stems from no sample"},
		{"the created time as a metric", func(rm pmetric.ResourceMetrics) {
			add(rm, "vllm.prompt_tokens_created", "engine", "0", "model_name", "m")
		}, "stems from no sample"},
		{"the process's start as a metric", func(rm pmetric.ResourceMetrics) { add(rm, "process_start_time") }, "stems from no sample"},
		{"the info family as a metric", func(rm pmetric.ResourceMetrics) {
			add(rm, "vllm.cache_config_info", "engine", "0")
		}, "stems from no sample"},
		{"a metric twice", func(rm pmetric.ResourceMetrics) {
			m := found(rm, "vllm.prompt_tokens")
			m.CopyTo(rm.ScopeMetrics().At(0).Metrics().AppendEmpty())
		}, "occurs twice"},
		{"a point twice", func(rm pmetric.ResourceMetrics) {
			points := found(rm, "vllm.prompt_tokens").Sum().DataPoints()
			points.At(0).CopyTo(points.AppendEmpty())
		}, "occurs twice"},
		{"an attribute's value", func(rm pmetric.ResourceMetrics) { attribute(counter(rm).Attributes(), "engine", "1") }, "is missing"},
		{"an attribute too many", func(rm pmetric.ResourceMetrics) { attribute(counter(rm).Attributes(), "pid", "1") }, "is missing"},
		{"an attribute too few", func(rm pmetric.ResourceMetrics) { counter(rm).Attributes().Remove("engine") }, "is missing"},
		{"a reserved attribute", func(rm pmetric.ResourceMetrics) {
			attributes := found(rm, "vllm.new_thing").Sum().DataPoints().At(0).Attributes()
			attributes.Remove("exported_job")
			attribute(attributes, "job", "x")
		}, "is missing"},
		{"a name", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.prompt_tokens").SetName("vllm.prompts")
		}, "is missing"},
		{"a conflicting family under the catalogue's name", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.whatever_is_free").SetName("vllm.prefix_cache.hits")
		}, "no free name has the points"},
		{"a conflicting family's value", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.whatever_is_free").Gauge().DataPoints().At(0).SetDoubleValue(641)
		}, "no free name has the points"},
		{"a conflicting family under a name that nests", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.whatever_is_free").SetName("vllm.prompt_tokens.gauge")
		}, "dotted prefix"},
		{"a unit", func(rm pmetric.ResourceMetrics) { found(rm, "vllm.time_to_first_token").SetUnit("ms") }, `in "ms"`},
		{"an unknown family's unit", func(rm pmetric.ResourceMetrics) { found(rm, "vllm.new_thing").SetUnit("") }, `not a sum in "s"`},
		{"a counter that is not monotonic", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.prompt_tokens").Sum().SetIsMonotonic(false)
		}, "not cumulative and monotonic"},
		{"deltas", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.time_to_first_token").Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		}, "not cumulative and monotonic"},
		{"a start other than the created time", func(rm pmetric.ResourceMetrics) { counter(rm).SetStartTimestamp(900e9) }, "starts at"},
		{"a start other than the process's", func(rm pmetric.ResourceMetrics) { histogram(rm).SetStartTimestamp(scrapedAt) }, "starts at"},
		{"a start after the time", func(rm pmetric.ResourceMetrics) { counter(rm).SetStartTimestamp(scrapedAt + 1e9) }, "after its time"},
		{"a gauge with a start", func(rm pmetric.ResourceMetrics) { gauge(rm).SetStartTimestamp(900e9) }, "with a start time"},
		{"another time", func(rm pmetric.ResourceMetrics) { gauge(rm).SetTimestamp(scrapedAt + 1) }, "is not the scrape's"},
		{"a point that ends", func(rm pmetric.ResourceMetrics) {
			gauge(rm).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}, "ends, though the body is there"},
		{"a number from a label", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.kv_cache.block_size").Gauge().DataPoints().At(0).SetDoubleValue(32)
		}, "the value is 32, not 16"},
		{"a resource attribute", func(rm pmetric.ResourceMetrics) {
			rm.Resource().Attributes().PutStr("vllm.simple_kv_offload.backend", "disk")
		}, "vllm.simple_kv_offload.backend"},
		{"a resource attribute too few", func(rm pmetric.ResourceMetrics) {
			rm.Resource().Attributes().Remove("vllm.simple_kv_offload.backend")
		}, "vllm.simple_kv_offload.backend"},
		{"a resource attribute too many", func(rm pmetric.ResourceMetrics) {
			rm.Resource().Attributes().PutStr("vllm.cache_config.sliding_window", "1")
		}, "vllm.cache_config.sliding_window"},
		{"vllm.up", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.up").Gauge().DataPoints().At(0).SetDoubleValue(0)
		}, "vllm.up: is 0"},
		{"vllm.scrape.samples", func(rm pmetric.ResourceMetrics) {
			found(rm, "vllm.scrape.samples").Gauge().DataPoints().At(0).SetDoubleValue(22)
		}, "vllm.scrape.samples: is 22"},
		{"vllm.scrape.failure", func(rm pmetric.ResourceMetrics) {
			m := rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
			found(rm, "vllm.up").CopyTo(m)
			m.SetName("vllm.scrape.failure")
			m.Gauge().DataPoints().At(0).Attributes().PutStr("outcome", "empty")
		}, "vllm.scrape.failure: is there, though the body can be read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rm := pointsOfPage()
			c.falsify(rm)
			report := Check(Scrape{Body: []byte(page), ContentType: "text/plain"}, rm)
			assert.Contains(t, strings.Join(report.Violations, "\n"), c.want)
		})
	}
}

func TestEveryMetricThatIsLeftOutIsFound(t *testing.T) {
	all := pointsOfPage().ScopeMetrics().At(0).Metrics()
	for i, m := range all.All() {
		t.Run(m.Name(), func(t *testing.T) {
			rm := pointsOfPage()
			at := -1
			rm.ScopeMetrics().At(0).Metrics().RemoveIf(func(pmetric.Metric) bool {
				at++
				return at == i
			})
			report := Check(Scrape{Body: []byte(page), ContentType: "text/plain"}, rm)
			assert.Contains(t, strings.Join(report.Violations, "\n"), "missing")
		})
	}
}

func TestNothingAtAllIsFound(t *testing.T) {
	report := Check(Scrape{Body: []byte(page), ContentType: "text/plain"}, pmetric.NewResourceMetrics())
	assert.Contains(t, strings.Join(report.Violations, "\n"), "nothing came out")
}
