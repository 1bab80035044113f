package vllmprocessor

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// rig is a processor whose clock is that of the batches, with its log and its
// own telemetry.
type rig struct {
	t         *testing.T
	processor *vllmProcessor
	logs      *observer.ObservedLogs
	telemetry *componenttest.Telemetry
}

func newRig(t *testing.T, config string) *rig {
	t.Helper()
	r := &rig{t: t, telemetry: componenttest.NewTelemetry()}
	core, logs := observer.New(zap.DebugLevel)
	r.logs = logs
	settings := metadatatest.NewSettings(r.telemetry)
	settings.Logger = zap.New(core)
	r.processor = create(t, configured(t, config), settings)
	// The line about known defects has tests of its own.
	r.processor.defects = defectlog.New(zap.NewNop(), 0)
	require.NoError(t, r.processor.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, r.processor.shutdown(t.Context()))
		require.NoError(t, r.telemetry.Shutdown(context.WithoutCancel(t.Context())))
	})
	return r
}

// send passes the batches of a story through.
func (r *rig) send(text string) {
	r.t.Helper()
	for _, call := range readStory(r.t, text).calls {
		r.processor.now = func() time.Time { return call.at }
		_, err := r.processor.process(r.t.Context(), call.input)
		require.NoError(r.t, err)
	}
}

func create(tb testing.TB, config *Config, settings processor.Settings) *vllmProcessor {
	tb.Helper()
	p, err := newProcessor(config, settings, consumertest.NewNop(), &archive.Shared{}, realClock{})
	require.NoError(tb, err)
	return p
}

func (r *rig) messages() []string {
	var all []string
	for _, entry := range r.logs.All() {
		all = append(all, entry.Level.String()+": "+entry.Message)
	}
	return all
}

// every is a story of a server that is scraped at these times.
func every(seconds ...int) string {
	var b strings.Builder
	for _, s := range seconds {
		fmt.Fprintf(&b, "at %d\ncounter vllm.generation_tokens{0} %d\n", s, s)
	}
	return b.String()
}

func TestDeltasAreReportedOnce(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	r.send(strings.ReplaceAll(every(0, 15, 30, 45), "counter", "delta_counter"))
	assert.Equal(t, []string{
		"info: counters arrive with delta temporality, so derived values are too low when a batch is lost; " +
			"if cumulative_to_delta is before this processor, move it behind",
	}, r.messages())
}

func TestAWindowThatIsTooShortIsReportedOnce(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	r.send(every(0, 40, 80, 120, 160))
	assert.Equal(t, []string{
		"warn: the window (1m0s) is shorter than twice the time between two scrapes (40s), so nothing is derived when one scrape is missed; " +
			"set window to 1m20s or more, or scrape more often",
	}, r.messages())
}

func TestAWindowOfTwoScrapesIsEnough(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	r.send(every(0, 30, 60, 90))
	assert.Empty(t, r.messages())
}

// A server that is forgotten between any two scrapes is new each time, and nothing
// could ever be derived from it.
func TestAStalenessShorterThanTheScrapeIntervalIsReportedOnce(t *testing.T) {
	r := newRig(t, "{window: 10s, max_staleness: 10s}")
	r.send(every(0, 15, 30, 45, 60))
	assert.Equal(t, []string{
		"warn: a server is scraped only every 15s, longer than max_staleness (10s), so it is forgotten between scrapes " +
			"and nothing is derived from it; set window and max_staleness to 30s or more, or scrape more often",
	}, r.messages())
}

func TestOneSilenceAfterOneScrapeProvesNoShortStaleness(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	r.send(every(0, 400, 415, 430))
	assert.Empty(t, r.messages())
}

func TestOneMissedScrapeProvesNoShortWindow(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	r.send(every(0, 55, 70, 85, 140, 155))
	assert.Empty(t, r.messages())
}

func TestTheSeriesLimitIsReportedOnceAndCounted(t *testing.T) {
	r := newRig(t, "max_series: 1")
	batch := "counter vllm.generation_tokens{0} 1\ncounter vllm.prompt_tokens{0} 1\ncounter vllm.num_preemptions{0} 1\n"
	r.send("at 0\n" + batch + "at 5\n" + batch)
	assert.Empty(t, r.messages(), "other servers may not have been scraped yet")
	r.send("at 15\n" + batch)
	warning := func(n, advised int) string {
		return fmt.Sprintf("warn: there are %d series, more than max_series (1), and nothing is derived from the others; "+
			"set max_series to %d, or keep metrics that are not vLLM's from this processor", n, advised)
	}
	assert.Equal(t, []string{warning(3, 1000)}, r.messages())
	metadatatest.AssertEqualProcessorVllmIgnoredPoints(t, r.telemetry, reasons(map[string]int64{"series_limit": 6}), loosely...)
	metadatatest.AssertEqualProcessorVllmSeries(t, r.telemetry, gauge(1), loosely...)
	// As many as were advised are no news, and one more are.
	many := func(n int) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "counter http_requests{handler=/%d,status=2xx,method=GET} 1\n", i)
		}
		return out.String()
	}
	r.send("at 30\n" + batch + many(997))
	assert.Equal(t, []string{warning(3, 1000)}, r.messages())
	r.send("at 45\n" + batch + many(998))
	assert.Equal(t, []string{warning(3, 1000), warning(1001, 2000)}, r.messages())
}

// The advised number is for all servers, although the first of them fill the limit before
// the others have been seen.
func TestTheAdvisedLimitOfSeriesIsForAllServers(t *testing.T) {
	r := newRig(t, "{max_series: 500, diagnosis: {enabled: false}}")
	var story strings.Builder
	for scrape := range 3 {
		fmt.Fprintf(&story, "at %d\n", 15*scrape)
		for server := range 40 {
			fmt.Fprintf(&story, "server s%d\n", server)
			for i := range 100 {
				fmt.Fprintf(&story, "counter http_requests{handler=/%d,status=2xx,method=GET} 1\n", i)
			}
		}
	}
	r.send(story.String())
	assert.Equal(t, []string{
		"warn: there are 4000 series, more than max_series (500), and nothing is derived from the others; " +
			"set max_series to 5000, or keep metrics that are not vLLM's from this processor",
	}, r.messages())
}

// Also where the limit of engines that follows from max_series refuses their series first.
func TestTheAdvisedLimitOfSeriesHasTheSeriesOfRefusedEngines(t *testing.T) {
	r := newRig(t, "{max_series: 300, diagnosis: {enabled: false}}")
	var story strings.Builder
	for scrape := range 3 {
		fmt.Fprintf(&story, "at %d\n", 15*scrape)
		for server := range 35 {
			fmt.Fprintf(&story, "server s%d\ncounter vllm.prompt_tokens{0} 1\ncounter vllm.prompt_tokens{1} 1\n", server)
			for i := range 20 {
				fmt.Fprintf(&story, "counter http_requests{handler=/%d,status=2xx,method=GET} 1\n", i)
			}
		}
	}
	r.send(story.String())
	messages := r.messages()
	require.Len(t, messages, 2)
	assert.Contains(t, messages[0], "there are more engines and models than the limits")
	assert.Contains(t, messages[1], "there are 770 series, more than max_series (300), and nothing is derived from the others; set max_series to 1000,")
}

// One point from a clock that is wrong must not make all that follows too old.
func TestABatchFromTheFutureIsReportedOnceAndDropped(t *testing.T) {
	r := newRig(t, "")
	r.send(every(0))
	for range 2 {
		r.processor.now = func() time.Time { return storyBegin.Add(15 * time.Second) }
		_, err := r.processor.process(t.Context(), readStory(t, every(3615)).calls[0].input)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{
		"warn: points are 1h0m0s ahead of this machine's clock, and nothing is derived from them; " +
			"synchronize the clocks of both machines",
	}, r.messages())
	later := readStory(t, every(30)).calls[0].input
	_, err := r.processor.process(t.Context(), later)
	require.NoError(t, err)
	assert.Equal(t, 2, later.ResourceMetrics().At(0).ScopeMetrics().Len(), "the next batch is derived from")
	metadatatest.AssertEqualProcessorVllmIgnoredPoints(t, r.telemetry, reasons(map[string]int64{"future": 2}), loosely...)
}

var loosely = []metricdatatest.Option{metricdatatest.IgnoreTimestamp()}

func reasons(counts map[string]int64) (all []metricdata.DataPoint[int64]) {
	for why, n := range counts {
		all = append(all, metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attribute.String("reason", why))})
	}
	return all
}

func one(n int64) []metricdata.DataPoint[int64] { return []metricdata.DataPoint[int64]{{Value: n}} }

// gauge is what the processor vllm has of itself.
func gauge(n int64) []metricdata.DataPoint[int64] {
	return []metricdata.DataPoint[int64]{{Value: n, Attributes: attribute.NewSet(attribute.String("processor", "vllm"))}}
}

func TestWhatIsNotUsedIsCountedByReason(t *testing.T) {
	r := newRig(t, "")
	r.send(`
at 30
counter vllm.generation_tokens{0} 1
counter vllm.generation_tokens{0} 2     # duplicate
counter vllm.prompt_tokens{0} -1        # not_a_number
counter vllm:num_preemptions_total{0} 1 # older_name: the next line is newer
counter vllm.num_preemptions{0} 1
gauge vllm.request.success{0} 1         # type_conflict
counter vllm.time_to_first_token{0} 1   # type_conflict
histogram vllm.inter_token_latency{0} 2:1 1:1 inf:0 sum:1 # bad_histogram
at 15
counter vllm.generation_tokens{0} 0     # out_of_order
`)
	metrics := readStory(t, "at 45\ncounter vllm.generation_tokens{0} 5\ncounter vllm.prompt_tokens{0} 5").calls[0].input
	all := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	all.At(0).Sum().DataPoints().At(0).SetTimestamp(0)
	all.At(1).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
	_, err := r.processor.process(t.Context(), metrics)
	require.NoError(t, err)
	metadatatest.AssertEqualProcessorVllmIgnoredPoints(t, r.telemetry, reasons(map[string]int64{
		"duplicate": 1, "not_a_number": 1, "older_name": 1, "type_conflict": 2, "bad_histogram": 1, "out_of_order": 1,
		"no_timestamp": 1, "unsupported_temporality": 1,
	}), loosely...)
	assert.Empty(t, r.messages(), "what is wrong with single points is counted, not logged")
}

func TestWhatIsDerivedEndedResetAndForgottenIsCounted(t *testing.T) {
	r := newRig(t, "")
	r.send(`
at 0
counter vllm.generation_tokens{0} 100
counter vllm.prefix_cache.hits{0} 0
counter vllm.prefix_cache.queries{0} 0
histogram vllm.inter_token_latency{0} 1:0 inf:0 sum:0
server vllm-1:8000
counter vllm.generation_tokens{0} 100
at 15   # a throughput, a ratio, a mean and three quantiles
counter vllm.generation_tokens{0} 200
counter vllm.prefix_cache.hits{0} 1
counter vllm.prefix_cache.queries{0} 2
histogram vllm.inter_token_latency{0} 1:2 inf:0 sum:1
at 75   # the cache is idle: its ratio ends; the engine has restarted
counter vllm.generation_tokens{0} 7
counter vllm.prefix_cache.hits{0} 1
counter vllm.prefix_cache.queries{0} 2
histogram vllm.inter_token_latency{0} 1:2 inf:0 sum:1
`)
	metadatatest.AssertEqualProcessorVllmResources(t, r.telemetry, gauge(2), loosely...)
	metadatatest.AssertEqualProcessorVllmSeries(t, r.telemetry, gauge(5), loosely...)
	r.send("at 310\ncounter vllm.generation_tokens{0} 7") // the other server has been silent for more than 5m
	metadatatest.AssertEqualProcessorVllmExpiredResources(t, r.telemetry, one(1), loosely...)
	metadatatest.AssertEqualProcessorVllmResources(t, r.telemetry, gauge(1), loosely...)
	metadatatest.AssertEqualProcessorVllmSeries(t, r.telemetry, gauge(4), loosely...)
	metadatatest.AssertEqualProcessorVllmResets(t, r.telemetry, one(1), loosely...)
}

// The two counters of points, over batches whose values the story derives.
func TestPointsAndEndsAreCounted(t *testing.T) {
	r := newRig(t, "")
	r.send(`
at 0
attribute service.version=0.27.0
counter vllm.prefix_cache.hits{0} 0
counter vllm.prefix_cache.queries{0} 0
at 15
attribute service.version=0.27.0
counter vllm.prefix_cache.hits{0} 1
counter vllm.prefix_cache.queries{0} 2
at 75
attribute service.version=0.27.0
counter vllm.prefix_cache.hits{0} 1
counter vllm.prefix_cache.queries{0} 2
`)
	metadatatest.AssertEqualProcessorVllmDerivedPoints(t, r.telemetry, one(1), loosely...)
	metadatatest.AssertEqualProcessorVllmEndedSeries(t, r.telemetry, one(1), loosely...)
	metadatatest.AssertEqualProcessorVllmAbsentValues(t, r.telemetry, reasons(map[string]int64{"first": 1, "idle": 1}), loosely...)
}

func TestMetricsOfOthersAreNoState(t *testing.T) {
	r := newRig(t, "")
	r.send("at 0\ncounter node.cpu.time{0} 1\ngauge node.memory{0} 1\nat 15\ncounter node.cpu.time{0} 2")
	assert.Empty(t, r.processor.resources)
	assert.Zero(t, r.processor.series.Used())
}

func TestShutdownWithoutStart(t *testing.T) {
	p := create(t, configured(t, ""), metadatatest.NewSettings(componenttest.NewTelemetry()))
	require.NoError(t, p.shutdown(t.Context()))
	require.NoError(t, p.shutdown(t.Context()))
}

// Receivers and pipelines call at the same time, for one server and for several.
func TestBatchesMayComeAtTheSameTime(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	telemetry := componenttest.NewTelemetry()
	p, err := NewFactory().CreateMetrics(t.Context(), metadatatest.NewSettings(telemetry), createDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	var group sync.WaitGroup
	const workers, batches = 8, 20
	for worker := range workers {
		group.Go(func() {
			for i := range batches {
				text := fmt.Sprintf("at %d\ncounter vllm.generation_tokens{0} %d\nserver shared\ncounter vllm.generation_tokens{%d} %d\n",
					i*15, i*150, worker, i*150)
				text = strings.Replace(text, "\n", fmt.Sprintf("\nserver vllm-%d:8000\n", worker), 1)
				assert.NoError(t, p.ConsumeMetrics(t.Context(), readStory(t, text).calls[0].input))
			}
		})
	}
	group.Wait()
	metadatatest.AssertEqualProcessorVllmResources(t, telemetry, gauge(workers+1), loosely...)
	require.NoError(t, p.Shutdown(t.Context()))
	last := map[string]float64{}
	for _, metrics := range sink.AllMetrics() {
		for key, value := range points(t, takeAdded(metrics)) {
			if !strings.HasPrefix(key, "shared") && strings.Contains(key, "vllm.generation_throughput") {
				last[key] = value
			}
		}
	}
	assert.Len(t, last, workers*(batches-1))
	for key, value := range last {
		assert.InDelta(t, 10, value, 1e-9, key)
	}
}
