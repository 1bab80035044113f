package scrape

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// seconds is a time as seconds since the first scrape; scrapes are 15 s apart.
func seconds(at pcommon.Timestamp) float64 { return at.AsTime().Sub(firstScrape).Seconds() }

func created(value string) string {
	return "# TYPE vllm:prompt_tokens_created gauge\n" +
		"vllm:prompt_tokens_created{engine=\"0\",model_name=\"m\"} " + value + "\n"
}

// sums returns the points of a counter by engine.
func sums(t *testing.T, metrics pmetric.Metrics, name string) map[string]pmetric.NumberDataPoint {
	t.Helper()
	out := map[string]pmetric.NumberDataPoint{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range m.Sum().DataPoints().All() {
					key := ""
					if engine, ok := p.Attributes().Get("engine"); ok {
						key = engine.AsString()
					}
					out[key] = p
				}
			}
		}
	}
	return out
}

// The start of a counter over the scrapes of a story. The wanted starts are in
// seconds since the first scrape.
func TestStartTimes(t *testing.T) {
	tests := []struct {
		name   string
		bodies []string
		want   []float64
	}{
		{
			"the server's own created time",
			[]string{counter("5") + created(unix(-100)), counter("7") + created(unix(-100))},
			[]float64{-100, -100},
		},
		{
			"a created time wins over the process start",
			[]string{counter("5") + created(unix(-100)) + process(unix(-200))},
			[]float64{-100},
		},
		{
			"a created time after the scrape is a skewed clock's and is ignored",
			[]string{counter("5") + created(unix(+100)) + process(unix(-200))},
			[]float64{-200},
		},
		{
			"the process start without a created time",
			[]string{counter("5") + process(unix(-200)), counter("6") + process(unix(-200))},
			[]float64{-200, -200},
		},
		{
			"a process start after the scrape is ignored",
			[]string{counter("5") + process(unix(+200))},
			[]float64{0},
		},
		{
			"unknown: the first point's own time, which stays",
			[]string{counter("5"), counter("6"), counter("6")},
			[]float64{0, 0, 0},
		},
		{
			"a reset without a better source starts at the scrape before it",
			[]string{counter("5"), counter("9"), counter("2"), counter("3")},
			[]float64{0, 0, 15, 15},
		},
		{
			"a reset to zero",
			[]string{counter("5"), counter("0")},
			[]float64{0, 0},
		},
		{
			"a reset with a newer created time starts there",
			[]string{counter("5") + created(unix(-100)), counter("2") + created(unix(7))},
			[]float64{-100, 7},
		},
		{
			"a newer created time is a reset even if the counter has grown",
			[]string{counter("5") + created(unix(-100)), counter("50") + created(unix(7))},
			[]float64{-100, 7},
		},
		{
			"a reset with a newer process start starts there",
			[]string{counter("5") + process(unix(-200)), counter("2") + process(unix(6))},
			[]float64{-200, 6},
		},
		{
			"a newer process start is a reset even if the counter has grown",
			[]string{counter("5") + process(unix(-200)), counter("50") + process(unix(6))},
			[]float64{-200, 6},
		},
		{
			"two resets",
			[]string{counter("5"), counter("3"), counter("4"), counter("1")},
			[]float64{0, 0, 0, 30},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			for i, body := range tt.bodies {
				point, ok := sums(t, r.scrape(body), "vllm.prompt_tokens")["0"]
				require.True(t, ok, "scrape %d", i)
				assert.InDelta(t, tt.want[i], seconds(point.StartTimestamp()), 0.001, "scrape %d", i)
				assert.InDelta(t, float64(15*i), seconds(point.Timestamp()), 0)
				assert.False(t, point.Flags().NoRecordedValue())
			}
		})
	}
}

// A series that appears in a target already known began after the scrape before.
func TestANewSeriesOfAKnownTargetStartsAtTheScrapeBefore(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("5") + process(unix(-200)))
	r.scrape(counter("6") + process(unix(-200)))
	both := counter("7") + `vllm:prompt_tokens_total{engine="1",model_name="m"} 3` + "\n" + process(unix(-200))
	points := sums(t, r.scrape(both), "vllm.prompt_tokens")
	assert.InDelta(t, -200, seconds(points["0"].StartTimestamp()), 0.001)
	assert.InDelta(t, 15, seconds(points["1"].StartTimestamp()), 0.001)
}

// A restart resets all series of the process: also the one that has already
// grown past its old number, which alone would not show it.
func TestARestartResetsAllSeriesOfTheProcessTogether(t *testing.T) {
	r := newRig(t)
	body := func(first, second string) string {
		return counter(first) + `vllm:prompt_tokens_total{engine="1",model_name="m"} ` + second + "\n"
	}
	r.scrape(body("100", "5"))
	r.scrape(body("110", "6"))
	points := sums(t, r.scrape(body("10", "7")), "vllm.prompt_tokens")
	assert.InDelta(t, 15, seconds(points["0"].StartTimestamp()), 0)
	assert.InDelta(t, 15, seconds(points["1"].StartTimestamp()), 0)
}

// Behind a Ray agent there are several processes in one body.
func TestARestartOfOneRayWorkerLeavesTheOthers(t *testing.T) {
	r := newRig(t)
	body := func(a, b string) string {
		return "# TYPE ray_vllm_prompt_tokens_total counter\n" +
			`ray_vllm_prompt_tokens_total{WorkerId="a",engine="0"} ` + a + "\n" +
			`ray_vllm_prompt_tokens_total{WorkerId="b",engine="1"} ` + b + "\n"
	}
	r.scrape(body("100", "5"))
	points := sums(t, r.scrape(body("10", "7")), "vllm.prompt_tokens")
	assert.InDelta(t, 0, seconds(points["0"].StartTimestamp()), 0.001)
	assert.InDelta(t, 0, seconds(points["1"].StartTimestamp()), 0)
	points = sums(t, r.scrape(body("3", "8")), "vllm.prompt_tokens")
	assert.InDelta(t, 15, seconds(points["0"].StartTimestamp()), 0.001)
	assert.InDelta(t, 0, seconds(points["1"].StartTimestamp()), 0)
}

// A counter of a plug-in that misbehaves does not show a restart of vLLM.
func TestAFallingCounterOfAPlugInResetsOnlyItself(t *testing.T) {
	r := newRig(t)
	body := func(tokens, plugin string) string {
		return counter(tokens) + "# TYPE lmcache:num_hit_tokens_total counter\nlmcache:num_hit_tokens_total " + plugin + "\n"
	}
	r.scrape(body("100", "9"))
	r.scrape(body("101", "9"))
	metrics := r.scrape(body("102", "3"))
	assert.InDelta(t, 0, seconds(sums(t, metrics, "vllm.prompt_tokens")["0"].StartTimestamp()), 0)
	assert.InDelta(t, 15, seconds(sums(t, metrics, "lmcache.num_hit_tokens")[""].StartTimestamp()), 0)
}

// A series that is missing in one scrape and then has a larger value is the same
// series: a new start would make a delta backend count everything twice.
func TestASeriesThatReturnsContinues(t *testing.T) {
	r := newRig(t)
	other := "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"
	r.scrape(other + counter("5"))
	gone := sums(t, r.scrape(other), "vllm.prompt_tokens")["0"]
	assert.True(t, gone.Flags().NoRecordedValue())
	back := sums(t, r.scrape(other+counter("8")), "vllm.prompt_tokens")["0"]
	assert.InDelta(t, 0, seconds(back.StartTimestamp()), 0)
	assert.InDelta(t, 8.0, back.DoubleValue(), 0)

	// With less it was reset in between.
	r.scrape(other)
	back = sums(t, r.scrape(other+counter("2")), "vllm.prompt_tokens")["0"]
	assert.InDelta(t, 45, seconds(back.StartTimestamp()), 0)
}

// The series of a target that was down continue, unless it restarted.
func TestAfterAnOutage(t *testing.T) {
	for name, tt := range map[string]struct {
		value string
		want  float64
	}{
		"the same process":    {"9", 0},
		"a restarted process": {"2", 15},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.scrape(counter("5"))
			r.scrape(counter("6"))
			r.fail(500)
			r.fail(500)
			point := sums(t, r.scrape(counter(tt.value)), "vllm.prompt_tokens")["0"]
			assert.InDelta(t, tt.want, seconds(point.StartTimestamp()), 0)
			assert.InDelta(t, 60, seconds(point.Timestamp()), 0)
		})
	}
}

func TestHistogramsAndSummariesResetByTheirCount(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Metrics = map[string]MetricConfig{"http_request_size": {Enabled: new(true)}} })
	body := func(count, sum string) string {
		return "# TYPE vllm:request_params_max_tokens histogram\n" +
			`vllm:request_params_max_tokens_bucket{le="1.0"} ` + count + "\n" +
			`vllm:request_params_max_tokens_bucket{le="+Inf"} ` + count + "\n" +
			`vllm:request_params_max_tokens_count ` + count + "\n" +
			`vllm:request_params_max_tokens_sum ` + sum + "\n" +
			"# TYPE http_request_size_bytes summary\n" +
			`http_request_size_bytes_count{handler="/"} ` + count + "\n" +
			`http_request_size_bytes_sum{handler="/"} ` + sum + "\n"
	}
	r.scrape(body("5", "7"))
	r.scrape(body("6", "9"))
	out := r.scrape(body("2", "3"))
	for _, name := range []string{"vllm.request.params_max_tokens", "http_request_size"} {
		lines := points(out, name)
		require.Len(t, lines, 1)
		assert.Contains(t, lines[0], "from 2027-01-01T00:00:15.000000 @30 count=2 sum=3", name)
	}
}

// A gauge has no beginning.
func TestGaugesHaveNoStartTime(t *testing.T) {
	r := newRig(t)
	metrics := r.scrape("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n" + process(unix(-200)))
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			require.Equal(t, pmetric.MetricTypeGauge, m.Type())
			assert.Zero(t, m.Gauge().DataPoints().At(0).StartTimestamp(), m.Name())
		}
	}
}

// Counters that fall on every other scrape while the address stays the same.
func TestALoadBalancerIsLoggedOnce(t *testing.T) {
	warnings := func(r *rig) int {
		n := 0
		for _, message := range r.logged("warn") {
			if strings.Contains(message, "load balancer") {
				n++
			}
		}
		return n
	}
	r := newRig(t)
	for i := range 20 {
		r.scrape(counter([]string{"1000", "10"}[i%2]))
	}
	assert.Equal(t, 1, warnings(r))

	// Two restarts within a few scrapes are just that.
	r = newRig(t)
	for _, value := range []string{"5", "1", "2", "3", "0", "1", "2", "3", "4", "5", "6", "7", "8"} {
		r.scrape(counter(value))
	}
	assert.Zero(t, warnings(r))
}
