package realruns

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// defaults are the settings of a replay that says nothing else.
func defaults() Settings { return Settings{Interval: 10 * time.Second, Source: Clients} }

// overloaded is a server of four sequences on which up to sixty requests wait. It hangs from
// 600 s to 700 s, and another process answers from 900 s on, without any request.
func overloaded() *Recording {
	r := &Recording{Name: "overloaded", Version: "0.15.0", Capacity: 1000, Counts: Counts{Usage: true, Lookups: true, Preemptions: true, Finished: true}}
	for i := range 1200 {
		at := float64(i)
		row := Row{
			At: at, Usage: 0.1, Running: 4, Waiting: min(at, 60), Generated: 100 * at, Prompt: 50 * at,
			Queries: 50 * at, Hits: 10 * at, Finished: math.Floor(at / 2),
		}
		switch {
		case i >= 900:
			row = Row{At: at}
		case i >= 600 && i < 700:
			continue
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

func when(reports []Reported, from, until float64) []string {
	var out []string
	for i := range reports {
		if r := &reports[i]; r.At >= from && r.At < until && (len(out) == 0 || out[len(out)-1] != r.Text()) {
			out = append(out, r.Text())
		}
	}
	return out
}

func TestAReplayReportsWhatHappened(t *testing.T) {
	reports, err := Play(t.Context(), overloaded(), defaults())
	require.NoError(t, err)
	require.Len(t, reports, 120)
	assert.Equal(t, []string{"degraded, demand_exceeds_capacity/seqs"}, when(reports, 300, 600))
	assert.Contains(t, when(reports, 650, 720), "unreachable")
	failed := 0
	for i := range reports {
		if r := &reports[i]; !r.Answered {
			failed++
			assert.Truef(t, r.At > 600 && r.At < 700, "no answer at %v", r.At)
		}
	}
	assert.Equal(t, 9, failed, "610 to 690 s, when the answer would come at the moment of the timeout")
	last := &reports[len(reports)-1]
	assert.False(t, last.Alarms(), last.Text())
	assert.InDelta(t, 0.2, reports[30].Value("vllm.prefix_cache.hit_ratio"), 1e-9)
	assert.InDelta(t, 100, reports[30].Value("vllm.generation_throughput"), 1e-9)
	assert.True(t, math.IsNaN(reports[30].Value("no such metric")))
}

func TestAReplayIsTheSameEachTime(t *testing.T) {
	once, err := Play(t.Context(), overloaded(), defaults())
	require.NoError(t, err)
	again, err := Play(t.Context(), overloaded(), defaults())
	require.NoError(t, err)
	assert.Equal(t, once, again)
}

func TestSettingsOfAReplay(t *testing.T) {
	for want, settings := range map[string]Settings{
		"is not between 1s and 1h":    {Interval: time.Millisecond, Source: Clients},
		"is not between 0 and":        {Interval: time.Minute, Offset: 2 * time.Minute, Source: Clients},
		`the source of latencies "x"`: {Interval: time.Minute, Source: "x"},
		"window":                      {Interval: time.Minute, Source: Clients, Processor: map[string]any{"window": "-1s"}},
		"no_such_setting":             {Interval: time.Minute, Source: Clients, Processor: map[string]any{"no_such_setting": 1}},
	} {
		_, err := Play(t.Context(), overloaded(), settings)
		require.ErrorContains(t, err, want)
	}
	reports, err := Play(t.Context(), overloaded(), Settings{Interval: 30 * time.Second, Offset: 7 * time.Second, Source: Gauges})
	require.NoError(t, err)
	assert.InDelta(t, 7, reports[0].At, 0)
	assert.InDelta(t, 37, reports[1].At, 0)
	r := overloaded()
	r.Version = "of today"
	_, err = Play(t.Context(), r, defaults())
	require.ErrorContains(t, err, "overloaded: ")
}

func TestAReplayCanBeStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Play(ctx, overloaded(), defaults())
	require.ErrorIs(t, err, context.Canceled)
}

// points are the numbers of a scrape by the name of the metric; the ends are NaN.
func points(metrics pmetric.Metrics) map[string]float64 {
	out := map[string]float64{}
	number := func(name string, all pmetric.NumberDataPointSlice) {
		for _, p := range all.All() {
			out[name] = p.DoubleValue()
			if p.Flags().NoRecordedValue() {
				out[name] = math.NaN()
			}
		}
	}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			number(m.Name(), m.Gauge().DataPoints())
		case pmetric.MetricTypeSum:
			number(m.Name(), m.Sum().DataPoints())
			out[m.Name()+" since"] = m.Sum().DataPoints().At(0).StartTimestamp().AsTime().Sub(judge.Begin()).Seconds()
		default:
			out[m.Name()] = float64(m.Histogram().DataPoints().At(0).Count())
		}
	}
	return out
}

func TestAScrapeHasWhatTheRecordingHas(t *testing.T) {
	r := overloaded()
	r.Requests = []Request{{Sent: 0.5, First: 1.5, Last: 2.5, Prompt: 30, Output: 11, Queued: math.NaN(), Scheduled: math.NaN()}}
	s, err := newScraper(r, Clients, judge.Begin())
	require.NoError(t, err)
	metrics, _ := s.scrape(10, 10)
	got := points(metrics)
	for name, want := range map[string]float64{
		"vllm.up": 1, "vllm.num_requests.running": 4, "vllm.num_requests.waiting": 10, "vllm.kv_cache.utilization": 0.1,
		"vllm.kv_cache.capacity": 1000, "vllm.generation_tokens": 1000, "vllm.prompt_tokens": 500, "vllm.prefix_cache.queries": 500,
		"vllm.prefix_cache.hits": 100, "vllm.num_preemptions": 0, "vllm.request.success": 5, "vllm.e2e_request_latency": 1,
		"vllm.request.prompt_tokens": 1, "vllm.generation_tokens since": -60,
	} {
		assert.InDelta(t, want, got[name], 1e-9, name)
	}
	assert.NotContains(t, got, "vllm.request.queue_time")
	attributes := metrics.ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, map[string]any{"service.name": "vllm", "service.instance.id": "overloaded", "service.version": "0.15.0"}, attributes)

	// No answer: all series end, once.
	metrics, _ = s.scrape(620, 10)
	got = points(metrics)
	assert.InDelta(t, 0, got["vllm.up"], 0)
	assert.InDelta(t, 1, got["vllm.scrape.failure"], 0)
	assert.True(t, math.IsNaN(got["vllm.generation_tokens"]))
	metrics, _ = s.scrape(630, 10)
	assert.Len(t, points(metrics), 2)
	// The answer comes late.
	metrics, answered := s.scrape(695, 10)
	assert.InDelta(t, 700, answered, 0)
	got = points(metrics)
	assert.True(t, math.IsNaN(got["vllm.scrape.failure"]))
	assert.InDelta(t, 70_000, got["vllm.generation_tokens"], 0)
	first := got["vllm.time_to_first_token"]
	assert.Greater(t, first, 100.0)
	// Another process has counted nothing.
	metrics, _ = s.scrape(910, 10)
	got = points(metrics)
	assert.InDelta(t, 0, got["vllm.time_to_first_token"], 0)
	assert.InDelta(t, 0, got["vllm.e2e_request_latency"], 0)
	assert.InDelta(t, 899, got["vllm.generation_tokens since"], 0)
}

// The histogram of a scrape has all that was observed until then, whatever was scraped
// before.
func TestHistogramsGrow(t *testing.T) {
	r := overloaded()
	often, err := newScraper(r, Gauges, judge.Begin())
	require.NoError(t, err)
	for at := 0.0; at < 500; at += 7 {
		often.scrape(at, 10)
	}
	once, err := newScraper(r, Gauges, judge.Begin())
	require.NoError(t, err)
	a, _ := often.scrape(500, 10)
	b, _ := once.scrape(500, 10)
	assert.Equal(t, points(b), points(a))
}
