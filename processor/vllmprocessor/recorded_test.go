package vllmprocessor

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// client is what the load generator of a recording knew at one time.
type client struct {
	Sent             float64            `json:"sent"`
	OK               float64            `json:"ok"`
	PromptTokens     float64            `json:"prompt_tokens"`
	CompletionTokens float64            `json:"completion_tokens"`
	CachedTokens     float64            `json:"cached_tokens"`
	SumTTFT          float64            `json:"sum_ttft"`
	SumE2E           float64            `json:"sum_e2e"`
	SumITL           float64            `json:"sum_itl"`
	NumITL           float64            `json:"n_itl"`
	Rejected         map[string]float64 `json:"rejected"`
	E2EQuantiles     map[string]float64 `json:"e2e_quantiles"`
}

func (c *client) rejected() (n float64) {
	for _, r := range c.Rejected {
		n += r
	}
	return n
}

// recording is one scenario: bodies of a server, and the client's truth.
type recording struct {
	Scrapes []recordedScrape `json:"scrapes"`
	dir     string
}

type recordedScrape struct {
	File   string  `json:"file"`
	Time   float64 `json:"time"`
	Client client  `json:"client_cumulative"`
}

func record(t *testing.T, scenario string) recording {
	t.Helper()
	dir := filepath.Join(captures.Dir(t), "series", "inference-sim", scenario)
	content, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	require.NoError(t, err)
	r := recording{dir: dir}
	require.NoError(t, json.Unmarshal(content, &r))
	require.NotEmpty(t, r.Scrapes)
	return r
}

// derivedValues are what the processor derived last: by name and, where a metric has several
// series, by name and attribute, as "vllm.e2e_request_latency_quantile 0.95".
type derivedValues map[string]float64

// startWith starts a processor whose default configuration is changed, and returns it with
// what takes its output. A nil change is none.
func startWith(t *testing.T, change func(*Config)) (processor.Metrics, *consumertest.MetricsSink) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	if change != nil {
		change(cfg)
	}
	require.NoError(t, cfg.Validate())
	sink := &consumertest.MetricsSink{}
	factory := NewFactory()
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host()))
	return p, sink
}

// play sends the bodies of a file pattern through a processor.
func (r recording) play(t *testing.T, file func(i int) string, change func(*Config)) derivedValues {
	t.Helper()
	p, sink := startWith(t, change)
	for i, scrape := range r.Scrapes {
		body, err := os.ReadFile(filepath.Join(r.dir, file(i)))
		require.NoError(t, err)
		require.NoError(t, p.ConsumeMetrics(t.Context(), wirePoints(t, body, time.Unix(0, int64(scrape.Time*1e9)))))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	all := sink.AllMetrics()
	return readDerived(all[len(all)-1])
}

func (r recording) file(i int) string { return r.Scrapes[i].File }

// readDerived reads what a batch has in the processor's scope.
func readDerived(metrics pmetric.Metrics) derivedValues {
	values := derivedValues{}
	scopes := metrics.ResourceMetrics().At(0).ScopeMetrics()
	for i := 1; i < scopes.Len(); i++ {
		for j := range scopes.At(i).Metrics().Len() {
			metric := scopes.At(i).Metrics().At(j)
			for k := range metric.Gauge().DataPoints().Len() {
				point := metric.Gauge().DataPoints().At(k)
				key := metric.Name()
				for _, name := range []string{"quantile", "bound", "finished_reason", "condition", "cause", "role"} {
					if value, ok := point.Attributes().Get(name); ok {
						key += " " + value.AsString()
					}
				}
				if !point.Flags().NoRecordedValue() {
					values[key] = point.DoubleValue()
				}
			}
		}
	}
	return values
}

// wirePoints turns a body into points under the names of the wire, cumulative
// and without start times, as the stock Prometheus receiver does.
func wirePoints(t *testing.T, body []byte, at time.Time) pmetric.Metrics {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(t, err)
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "sim")
	rm.Resource().Attributes().PutStr("service.instance.id", "sim:8000")
	sm := rm.ScopeMetrics().AppendEmpty()
	timestamp := pcommon.NewTimestampFromTime(at)
	for name, family := range families {
		metric := sm.Metrics().AppendEmpty()
		metric.SetName(name)
		for _, m := range family.GetMetric() {
			attributes := func(to pcommon.Map) {
				for _, l := range m.GetLabel() {
					to.PutStr(l.GetName(), l.GetValue())
				}
			}
			switch family.GetType() {
			case dto.MetricType_COUNTER:
				if metric.Type() != pmetric.MetricTypeSum {
					metric.SetEmptySum().SetIsMonotonic(true)
					metric.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				}
				point := metric.Sum().DataPoints().AppendEmpty()
				point.SetTimestamp(timestamp)
				point.SetDoubleValue(m.GetCounter().GetValue())
				attributes(point.Attributes())
			case dto.MetricType_HISTOGRAM:
				if metric.Type() != pmetric.MetricTypeHistogram {
					metric.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				}
				point := metric.Histogram().DataPoints().AppendEmpty()
				point.SetTimestamp(timestamp)
				point.SetCount(m.GetHistogram().GetSampleCount())
				point.SetSum(m.GetHistogram().GetSampleSum())
				before := uint64(0)
				for _, b := range m.GetHistogram().GetBucket() {
					if !math.IsInf(b.GetUpperBound(), 1) {
						point.ExplicitBounds().Append(b.GetUpperBound())
					}
					point.BucketCounts().Append(b.GetCumulativeCount() - before)
					before = b.GetCumulativeCount()
				}
				attributes(point.Attributes())
			default:
				if metric.Type() != pmetric.MetricTypeGauge {
					metric.SetEmptyGauge()
				}
				point := metric.Gauge().DataPoints().AppendEmpty()
				point.SetTimestamp(timestamp)
				point.SetDoubleValue(m.GetGauge().GetValue() + m.GetUntyped().GetValue())
				attributes(point.Attributes())
			}
		}
	}
	return metrics
}

// between is what happened at the client between the scrapes that the last
// window compares: with a window of a minute, the first and the last.
func (r recording) between() (first, last client, seconds float64) {
	a, b := r.Scrapes[0], r.Scrapes[len(r.Scrapes)-1]
	return a.Client, b.Client, b.Time - a.Time
}

// What the processor derives from a recording is what its client saw, within
// what was under way at the two scrapes. Where it is not, the recorded simulator
// differs from vLLM, and the test says how.
func TestDerivedValuesOfRecordedServersMatchTheirClients(t *testing.T) {
	for _, scenario := range []string{"steady", "overload", "long-prefill", "lora"} {
		t.Run(scenario, func(t *testing.T) {
			r := record(t, scenario)
			first, last, seconds := r.between()
			got := r.play(t, r.file, func(c *Config) {
				c.Preset = catalog.Full
				on := true
				c.Metrics = map[string]MetricConfig{"vllm.e2e_request_latency_quantile_bound": {Enabled: &on}}
			})
			ok := last.OK - first.OK
			near := func(name string, want, tolerance float64) {
				t.Helper()
				value, has := got[name]
				if assert.True(t, has, name) {
					assert.InEpsilon(t, want, value, tolerance, name)
				}
			}
			near("vllm.request_throughput", ok/seconds, 1e-6)
			near("vllm.prompt_throughput", (last.PromptTokens-first.PromptTokens)/seconds, 0.02)
			near("vllm.generation_throughput", (last.CompletionTokens-first.CompletionTokens)/seconds, 0.02)
			near("vllm.request.prompt_tokens_mean", (last.PromptTokens-first.PromptTokens)/ok, 1e-6)
			near("vllm.request.generation_tokens_mean", (last.CompletionTokens-first.CompletionTokens)/ok, 1e-6)
			near("vllm.input_output_ratio", (last.PromptTokens-first.PromptTokens)/(last.CompletionTokens-first.CompletionTokens), 1e-6)
			near("vllm.e2e_request_latency_mean", (last.SumE2E-first.SumE2E)/ok, 0.002)
			// The client's gaps include its own network and reading.
			near("vllm.inter_token_latency_mean", (last.SumITL-first.SumITL)/(last.NumITL-first.NumITL), 0.045)
			if last.CachedTokens > 0 {
				// The simulator asks its cache in whole blocks, and for requests that
				// have not finished as well.
				near("vllm.prefix_cache.hit_ratio", last.CachedTokens/last.PromptTokens, 0.06)
			}
			for _, q := range []string{"0.5", "0.95", "0.99"} {
				name := "vllm.e2e_request_latency_quantile_bound " + q
				assert.LessOrEqual(t, got[name+" lower"], last.E2EQuantiles[q]*1.002, q)
				assert.GreaterOrEqual(t, got[name+" upper"]*1.002, last.E2EQuantiles[q], q)
			}
			// This simulator's time to first token leaves out the queue, vLLM's does
			// not: the client's is the sum of both. The queue is known of all that have
			// left it, the client's time of those that have finished: in the overload
			// the four that still run waited longest.
			queued := got["vllm.request.queue_time_ratio"] * got["vllm.e2e_request_latency_mean"] * ok
			queue := queued / (got["vllm.first_token_rate"] * seconds)
			tolerance := map[bool]float64{false: 0.03, true: 0.12}[scenario == "overload"]
			assert.InDelta(t, (last.SumTTFT-first.SumTTFT)/ok, got["vllm.time_to_first_token_mean"]+queue,
				0.02+tolerance*(last.SumTTFT/ok), "time to first token")
		})
	}
}

func TestARecordedOverloadShowsItsQueue(t *testing.T) {
	r := record(t, "overload")
	first, last, seconds := r.between()
	got := r.play(t, r.file, nil)
	arrived := last.Sent - first.Sent - last.rejected()
	assert.InEpsilon(t, arrived/seconds, got["vllm.arrival_rate"], 0.03)
	// No request is served out of turn, so one that joins the queue now waits for all
	// before him: about 79 requests at 1.1 a second.
	assert.InDelta(t, 79/(58/seconds), got["vllm.request.queue_wait_estimate"], 6)
	assert.Greater(t, got["vllm.request.queue_time_ratio"], 0.8)
}

func TestARecordedRestartLosesOnlyWhatNoScrapeSaw(t *testing.T) {
	r := record(t, "restart")
	first, last, seconds := r.between()
	got := r.play(t, r.file, nil)
	// The server was killed 1.5 s after the fourth scrape: what finished in
	// between was never reported.
	unseen := r.Scrapes[4].Client.OK - r.Scrapes[3].Client.OK
	reported := got["vllm.request_throughput"] * seconds
	assert.LessOrEqual(t, reported, last.OK-first.OK+1e-6)
	assert.GreaterOrEqual(t, reported, last.OK-first.OK-unseen-1e-6)
	assert.Greater(t, unseen, 0.0)
}

func TestARecordedIdleServerHasRatesOfZeroAndNoRatios(t *testing.T) {
	r := record(t, "idle-after-load")
	got := r.play(t, r.file, nil)
	rates := 0
	for name, value := range got {
		switch {
		case strings.HasSuffix(name, "_throughput"), strings.HasSuffix(name, "_rate"):
			rates++
			assert.Zero(t, value, name)
		default:
			assert.NotRegexp(t, "ratio|mean|quantile|estimate|per_", name, "an idle server has none")
		}
	}
	assert.GreaterOrEqual(t, rates, 4)

	r = record(t, "idle")
	for name := range r.play(t, r.file, nil) {
		assert.NotRegexp(t, "ratio|mean|quantile|estimate|throughput|rate", name, "the server has no counters yet")
	}
}

// Two ranks behind two ports carry the same model and no engine: they are two
// resources, whose throughputs add up to what the client got.
func TestRecordedDataParallelRanksAddUp(t *testing.T) {
	r := record(t, "data-parallel")
	both := r.Scrapes
	first, last, total := both[0], both[len(both)-1], 0.0
	for _, rank := range []string{"rank0-", "rank1-"} {
		r.Scrapes = slices.Clone(both)
		r.Scrapes = slices.DeleteFunc(r.Scrapes, func(s recordedScrape) bool { return !strings.HasPrefix(s.File, rank) })
		require.Len(t, r.Scrapes, 4)
		_, _, seconds := r.between()
		total += r.play(t, r.file, nil)["vllm.request_throughput"] * seconds
	}
	assert.InDelta(t, last.Client.OK-first.Client.OK, total, 1e-6)
}

// Failures that the simulator injects are answered before they are counted.
func TestRecordedErrorsAreNotInTheServersOwnCounters(t *testing.T) {
	r := record(t, "errors")
	first, last, seconds := r.between()
	got := r.play(t, r.file, nil)
	assert.InDelta(t, (last.OK-first.OK)/seconds, got["vllm.request_throughput"], 1e-6)
	assert.Greater(t, last.rejected(), 0.0)
	assert.NotContains(t, got, "vllm.http.error_ratio")
}

// The windows of the recordings are short, and there is no time to learn what is
// usual: the diagnosis rests on the documented defaults.
func TestRecordedServersAreDiagnosed(t *testing.T) {
	for scenario, want := range map[string]string{
		"idle":            "idle",
		"idle-after-load": "idle",
		"steady":          "healthy",
		"lora":            "healthy",
		"errors":          "healthy", // The client's mistakes, of which the engine does not hear.
		"overload":        "degraded demand_exceeds_capacity",
		"long-prefill":    "degraded", // It is not known yet whether this is usual there.
		"restart":         "starting",
	} {
		t.Run(scenario, func(t *testing.T) {
			r := record(t, scenario)
			values := r.play(t, r.file, func(c *Config) { c.Window = 10 * time.Second })
			got := ""
			for key, value := range values {
				if condition, is := strings.CutPrefix(key, "vllm.diagnosis.condition "); is && value == 1 {
					got = condition + got
				}
				if cause, is := strings.CutPrefix(key, "vllm.diagnosis.cause "); is && value == 1 && strings.HasSuffix(cause, " primary") {
					got += " " + strings.TrimSuffix(cause, " primary")
				}
			}
			assert.Equal(t, want, got)
		})
	}
}
