package scrape

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/cumulativetodeltaprocessor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
)

// deltas is contrib's own cumulative_to_delta behind a rig, with the setting that
// counts the first value of a series whose start is known to it.
type deltaRig struct {
	*rig
	processor processor.Metrics
	sink      *consumertest.MetricsSink
	seen      int
}

// newDeltaRig returns a rig whose first scrape is an hour after the processor has
// started, so that it believes the starts of everything newer than that.
func newDeltaRig(t *testing.T, change ...func(*Config)) *deltaRig {
	t.Helper()
	d := &deltaRig{rig: newRig(t, change...), sink: &consumertest.MetricsSink{}}
	d.now = time.Now().Add(time.Hour).Truncate(time.Second)
	factory := cumulativetodeltaprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"initial_value": "auto"}).Unmarshal(cfg))
	var err error
	d.processor, err = factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), cfg, d.sink)
	require.NoError(t, err)
	require.NoError(t, d.processor.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		require.NoError(t, d.processor.(component.Component).Shutdown(context.WithoutCancel(t.Context())))
	})
	return d
}

// increases scrapes a body and returns what it adds to a metric, by the label x.
// Histograms add their count.
func (d *deltaRig) increases(body, name string) map[string]float64 {
	d.t.Helper()
	require.NoError(d.t, d.processor.ConsumeMetrics(d.t.Context(), d.scrape(body)))
	out := map[string]float64{}
	for _, metrics := range d.sink.AllMetrics()[d.seen:] {
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				switch {
				case m.Name() != name:
				case m.Type() == pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						out[labelX(p.Attributes())] += p.DoubleValue()
					}
				case m.Type() == pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						out[labelX(p.Attributes())] += float64(p.Count())
					}
				}
			}
		}
	}
	d.seen = len(d.sink.AllMetrics())
	return out
}

func labelX(attributes pcommon.Map) string {
	if x, ok := attributes.Get("x"); ok {
		return x.AsString()
	}
	return ""
}

// total scrapes all bodies and returns what they add to a metric.
func (d *deltaRig) total(name string, bodies ...string) float64 {
	d.t.Helper()
	total := 0.0
	for _, body := range bodies {
		for _, n := range d.increases(body, name) {
			total += n
		}
	}
	return total
}

// ago is a process start that many seconds before the first scrape.
func (d *deltaRig) ago(s float64) string {
	return process(fmt.Sprint(float64(d.now.Unix()) - s))
}

const day = 86400

const alive = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"

func xCounter(series ...any) string {
	s := "# TYPE vllm:prompt_tokens_total counter\n"
	for i := 0; i < len(series); i += 2 {
		s += fmt.Sprintf("vllm:prompt_tokens_total{x=\"%v\"} %v\n", series[i], series[i+1])
	}
	return s
}

// xHistogram is a histogram whose buckets and _count have different counts.
func xHistogram(buckets, count any) string {
	return fmt.Sprintf("# TYPE vllm:request_params_max_tokens histogram\n"+
		"vllm:request_params_max_tokens_bucket{le=\"1.0\"} %v\nvllm:request_params_max_tokens_bucket{le=\"+Inf\"} %v\n"+
		"vllm:request_params_max_tokens_count %v\nvllm:request_params_max_tokens_sum 1\n", buckets, buckets, count)
}

// The first usable value of a series that was there before is a baseline: neither
// of a server that is a day old nor of one without a known start is its whole life
// an increase.
func TestTheFirstUsableValueIsNotAnIncrease(t *testing.T) {
	const sum, histogram = "vllm.prompt_tokens", "vllm.request.params_max_tokens"
	for _, tt := range []struct {
		name, metric string
		bodies       []string
		want         float64
	}{
		{"a counter that is not a number", sum, []string{xCounter("a", "NaN"), xCounter("a", 1001), xCounter("a", 1003)}, 2},
		{"a counter that cannot be read", sum, []string{xCounter("a", "12abc"), xCounter("a", 1001), xCounter("a", 1003)}, 2},
		{"a torn histogram", histogram, []string{xHistogram(5, 3), xHistogram(1001, 1001), xHistogram(1003, 1003)}, 2},
		{"a histogram that is not a number", histogram, []string{xHistogram("NaN", 3), xHistogram(1001, 1001), xHistogram(1003, 1003)}, 2},
		{"a histogram without its last bucket", histogram, []string{
			"# TYPE vllm:request_params_max_tokens histogram\nvllm:request_params_max_tokens_bucket{le=\"1.0\"} 5\nvllm:request_params_max_tokens_count 7\n",
			xHistogram(1001, 1001), xHistogram(1003, 1003),
		}, 2},
		{"a histogram without a count", histogram, []string{
			"# TYPE vllm:request_params_max_tokens histogram\nvllm:request_params_max_tokens_bucket{le=\"+Inf\"} 5\n",
			xHistogram(1001, 1001), xHistogram(1003, 1003),
		}, 2},
		{"a histogram of which one line cannot be read", histogram, []string{
			xHistogram(5, "x"), xHistogram(1001, 1001), xHistogram(1003, 1003),
		}, 2},
		{"a counter whose name changes with a TYPE line", sum, []string{
			"# TYPE vllm:prompt_tokens_total gauge\nvllm:prompt_tokens_total{x=\"a\"} 1000\n", xCounter("a", 1001), xCounter("a", 1003),
		}, 2},
		{"a series of which a second process appears", "http_requests", []string{
			"# TYPE http_requests_total counter\nhttp_requests_total{pid=\"1\"} 1000\n",
			"# TYPE http_requests_total counter\nhttp_requests_total{pid=\"1\"} 1001\nhttp_requests_total{pid=\"2\"} 0\n",
			"# TYPE http_requests_total counter\nhttp_requests_total{pid=\"1\"} 1003\nhttp_requests_total{pid=\"2\"} 0\n",
		}, 2},
		{"new: absent before", sum, []string{"", xCounter("a", 1001), xCounter("a", 1003)}, 1003},
		{"new, and not usable at first", sum, []string{"", xCounter("a", "NaN"), xCounter("a", 1001)}, 1001},
	} {
		for _, start := range []string{"", "a day ago"} {
			t.Run(tt.name+"/"+start, func(t *testing.T) {
				d := newDeltaRig(t)
				begin := alive
				if start != "" {
					begin += d.ago(day)
				}
				for i := range tt.bodies {
					tt.bodies[i] = begin + tt.bodies[i]
				}
				assert.InDelta(t, tt.want, d.total(tt.metric, tt.bodies...), 0)
			})
		}
	}
}

// A restart that a series shows only with a value that is not usable: what comes
// next is all the new process's, also where it has grown past the old number.
func TestARestartWhileASeriesIsNotUsable(t *testing.T) {
	d := newDeltaRig(t)
	old, young := alive+d.ago(day), alive+d.ago(-7)
	assert.InDelta(t, 5+1500, d.total("vllm.prompt_tokens",
		old+xCounter("a", 1000), old+xCounter("a", 1005), young+xCounter("a", "NaN"), young+xCounter("a", 1500)), 0)
}

// What limits::series kept out is unknown when it is let in, also where it has come
// and gone in that time.
func TestASeriesAboveTheLimitDoesNotIncreaseWhenItIsLetIn(t *testing.T) {
	for _, start := range []string{"", "a day ago"} {
		d := newDeltaRig(t, func(cfg *Config) { cfg.Limits.Series = 2 })
		begin := ""
		if start != "" {
			begin = d.ago(day)
			d.scraper.shared.plans.options.Enabled["process_start_time"] = false
		}
		d.total("vllm.prompt_tokens", begin+xCounter("a", 1, "b", 1000, "c", 1000))
		assert.Equal(t, map[string]float64{"a": 0, "b": 0}, d.increases(begin+xCounter("a", 1, "b", 1000), "vllm.prompt_tokens"))
		assert.Equal(t, map[string]float64{"a": 0, "b": 0}, d.increases(begin+xCounter("a", 1, "b", 1000, "c", 1001), "vllm.prompt_tokens"))
		assert.Equal(t, map[string]float64{"b": 1}, d.increases(begin+xCounter("b", 1001), "vllm.prompt_tokens"))
		assert.Equal(t, map[string]float64{"b": 0}, d.increases(begin+xCounter("b", 1001, "c", 1003), "vllm.prompt_tokens"),
			"c is let in, and its first value is a baseline")
		assert.Equal(t, map[string]float64{"b": 2, "c": 2}, d.increases(begin+xCounter("b", 1003, "c", 1005), "vllm.prompt_tokens"))
	}
}

// A series that found no room in the memory of what vanished is unknown when it is
// back: what was counted of it before is not counted again.
func TestASeriesThatWasForgottenDoesNotIncreaseWhenItReturns(t *testing.T) {
	for _, age := range []float64{0, day, 60} {
		d := newDeltaRig(t, func(cfg *Config) { cfg.Limits.Series = 5 })
		begin := alive
		if age != 0 {
			begin += d.ago(age)
		}
		names := strings.Split("abcdefghijklmnop", "")
		d.total("vllm.prompt_tokens", begin)
		for i, x := range names {
			assert.LessOrEqual(t, d.total("vllm.prompt_tokens", begin+xCounter(x, 100)), 100.0, "%s is new", x)
			if i == 0 {
				assert.InDelta(t, 3, d.total("vllm.prompt_tokens", begin+xCounter(x, 103)), 0)
			}
		}
		for _, x := range names {
			assert.LessOrEqual(t, d.total("vllm.prompt_tokens", begin+xCounter(x, 103)), 3.0, "%s is back, age %v", x, age)
			assert.InDelta(t, 4, d.total("vllm.prompt_tokens", begin+xCounter(x, 107)), 0, "%s continues, age %v", x, age)
		}
	}
}

// A restart of one of a Ray agent's workers does not make the series of another
// one new that vanished before.
func TestARestartOfOneWorkerKeepsTheStateOfAnother(t *testing.T) {
	body := func(a, more string) string {
		return "# TYPE ray_vllm_prompt_tokens_total counter\n" +
			`ray_vllm_prompt_tokens_total{WorkerId="a",x="a"} ` + a + "\n" +
			`ray_vllm_prompt_tokens_total{WorkerId="b",x="b"} 1` + "\n" + more
	}
	vanishes := `ray_vllm_prompt_tokens_total{WorkerId="b",x="c"} `
	d := newDeltaRig(t)
	d.total("vllm.prompt_tokens", body("100", vanishes+"1000\n"), body("101", ""))
	assert.Equal(t, map[string]float64{"a": 2, "b": 0}, d.increases(body("2", ""), "vllm.prompt_tokens"), "worker a restarts")
	assert.Equal(t, map[string]float64{"a": 1, "b": 0, "c": 3}, d.increases(body("3", vanishes+"1003\n"), "vllm.prompt_tokens"))
}
