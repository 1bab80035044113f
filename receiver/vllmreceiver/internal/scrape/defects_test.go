package scrape

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// queueTimes is a histogram of times in the queue, of which all but the failed requests
// waited for less than the first bound. A request that failed before it was scheduled is in
// the first bucket too, because its time is negative.
func queueTimes(count int, sum float64) string {
	return "# TYPE vllm:request_queue_time_seconds histogram\n" + fmt.Sprintf(
		"vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"0.3\"} %d\n"+
			"vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"+Inf\"} %d\n"+
			"vllm:request_queue_time_seconds_count{engine=\"0\"} %d\n"+
			"vllm:request_queue_time_seconds_sum{engine=\"0\"} %v\n", count, count, count, sum)
}

// A request that ends before it is scheduled adds minus the uptime of the machine to the sum
// of the queue time. The sum falls, also below 0, while the count rises: this is neither a
// reset of the histogram nor a restart, whatever else the body says about the process.
func TestASumThatFallsIsNoReset(t *testing.T) {
	const uptime = 864000.25
	for name, rest := range map[string]string{
		"unknown process start": "", "known process start": process(unix(-200)),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			first := -200.0
			if rest == "" {
				first = 0
			}
			for i, story := range []struct {
				count int
				sum   float64
			}{{10, 1.5}, {12, 1.75}, {13, 1.75 - uptime}, {20, 2.5 - uptime}, {21, 2.5 - 2*uptime}} {
				metrics := r.scrape(queueTimes(story.count, story.sum) + counter(fmt.Sprint(1000*(i+1))) + rest)
				lines := points(metrics, "vllm.request.queue_time")
				require.Len(t, lines, 1)
				assert.Contains(t, lines[0], fmt.Sprintf("count=%d sum=%v ", story.count, story.sum), "the raw numbers are unchanged")
				for _, m := range histograms(metrics, "vllm.request.queue_time") {
					assert.InDelta(t, first, seconds(m.StartTimestamp()), 0.001, "scrape %d", i)
				}
				tokens := sums(t, metrics, "vllm.prompt_tokens")["0"]
				assert.InDelta(t, first, seconds(tokens.StartTimestamp()), 0.001, "scrape %d: another counter", i)
			}
		})
	}
}

func TestASumThatFallsLeavesTheIncreasesRight(t *testing.T) {
	d := newDeltaRig(t)
	since := d.ago(60)
	assert.InDelta(t, 21, d.total("vllm.request.queue_time",
		queueTimes(10, 1.5)+since, queueTimes(13, 1.75-864000)+since, queueTimes(21, 2.5-2*864000)+since), 0)
}

// histograms returns the points of a histogram.
func histograms(metrics pmetric.Metrics, name string) (out []pmetric.HistogramDataPoint) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == name {
					for _, p := range m.Histogram().DataPoints().All() {
						out = append(out, p)
					}
				}
			}
		}
	}
	return out
}

// scaled is a server with a number of engines, each with that many prompt tokens, and with
// counters of its HTTP front end, which is not made again when engines are added.
func scaled(http int, began string, tokens ...int) string {
	body := "# TYPE vllm:prompt_tokens_total counter\n"
	for engine, n := range tokens {
		body += fmt.Sprintf("vllm:prompt_tokens_total{engine=\"%d\"} %d\n", engine, n)
	}
	if began != "" {
		body += "# TYPE vllm:prompt_tokens_created gauge\n"
		for engine := range tokens {
			body += fmt.Sprintf("vllm:prompt_tokens_created{engine=\"%d\"} %s\n", engine, began)
		}
	}
	return body + fmt.Sprintf("# TYPE http_requests_total counter\nhttp_requests_total{handler=\"/v1/completions\"} %d\n", http) + process(unix(-200))
}

// Elastic scale-up makes all counters of the engines again in a process that goes on. Each
// series that begins again needs a new start. Nothing may say that the process restarted:
// the series of the front end keep their start, and no restart is counted.
func TestCountersBeginAgainWhereEnginesAreAdded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		bodies []string
		// want are the starts of the engines after the last body.
		want []float64
	}{
		{
			"with created times",
			[]string{scaled(5, unix(-100), 1000, 1000), scaled(6, unix(-100), 1100, 1100), scaled(9, unix(20), 50, 60, 70)},
			[]float64{20, 20, 20},
		},
		{
			"with created times, and one engine has already grown past its old value",
			[]string{scaled(5, unix(-100), 1000, 10), scaled(6, unix(-100), 1100, 11), scaled(9, unix(20), 50, 60, 70)},
			[]float64{20, 20, 20},
		},
		{
			"without created times: the scrape before",
			[]string{scaled(5, "", 1000, 1000), scaled(6, "", 1100, 1100), scaled(9, "", 50, 60, 70)},
			[]float64{15, 15, 15},
		},
		{
			"twice",
			[]string{scaled(5, unix(-100), 1000), scaled(6, unix(7), 50, 60), scaled(9, unix(20), 5, 6, 7)},
			[]float64{20, 20, 20},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			restarts := countRestarts(t, r)
			var metrics pmetric.Metrics
			for _, body := range tt.bodies {
				metrics = r.scrape(body)
			}
			tokens := sums(t, metrics, "vllm.prompt_tokens")
			require.Len(t, tokens, len(tt.want))
			for engine, want := range tt.want {
				assert.InDelta(t, want, seconds(tokens[fmt.Sprint(engine)].StartTimestamp()), 0.001, "engine %d", engine)
			}
			assert.InDelta(t, -200, seconds(sums(t, metrics, "http_requests")[""].StartTimestamp()), 0.001, "the front end goes on")
			assert.Zero(t, restarts())
			assert.Empty(t, r.logged("warn"))
		})
	}
}

// countRestarts returns a function for the number of restarts that a rig's receiver has
// counted.
func countRestarts(t *testing.T, r *rig) func() int64 {
	t.Helper()
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	builder, err := metadata.NewTelemetryBuilder(recorded.NewTelemetrySettings())
	require.NoError(t, err)
	t.Cleanup(builder.Shutdown)
	r.scraper.shared.telemetry = newTelemetry(builder)
	return func() int64 {
		m, err := recorded.GetMetric("otelcol_receiver_vllm_resets")
		if err != nil {
			return 0 // nothing was counted
		}
		return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	}
}

// The counter of restarts that the tests above want at 0 does count.
func TestARestartOfTheProcessIsCounted(t *testing.T) {
	r := newRig(t)
	restarts := countRestarts(t, r)
	r.scrape(counter("5") + process(unix(-200)))
	r.scrape(counter("2") + process(unix(7)))
	assert.Equal(t, int64(1), restarts())
}

func TestCountersThatBeginAgainAreCountedFromZero(t *testing.T) {
	d := newDeltaRig(t)
	at := float64(d.now.Unix())
	began := func(since float64) string { return fmt.Sprint(at + since) }
	start := process(fmt.Sprint(at - 200))
	body := func(created string, tokens int) string {
		return fmt.Sprintf("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{x=\"0\"} %d\n"+
			"# TYPE vllm:prompt_tokens_created gauge\nvllm:prompt_tokens_created{x=\"0\"} %s\n", tokens, created) + start
	}
	// 1000 before the first scrape, 100 more, then a scale-up and 50, then 10 more. After the
	// second scale-up the counter passes its old value within one interval.
	assert.InDelta(t, 1000+100+50+10+2000, d.total("vllm.prompt_tokens",
		body(began(-100), 1000), body(began(-100), 1100), body(began(20), 50), body(began(20), 60), body(began(50), 2000)), 0)
}
