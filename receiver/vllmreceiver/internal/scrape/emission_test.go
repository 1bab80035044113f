package scrape

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

// A start that moves without a reset makes a second stream of the series at a
// delta backend, which then counts everything twice. A created time that was
// ignored once, because the server's clock runs ahead, comes back into the past
// with the next scrape.
func TestACreatedTimeIgnoredOnceDoesNotMoveTheStartLater(t *testing.T) {
	r := newRig(t)
	other := "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"
	r.scrape(other)
	// The series begins shortly before the scrape at 15 s; the server's clock is 5 s ahead.
	first := sums(t, r.scrape(other+counter("5")+created(unix(18))), "vllm.prompt_tokens")["0"]
	second := sums(t, r.scrape(other+counter("7")+created(unix(18))), "vllm.prompt_tokens")["0"]
	require.InDelta(t, 0, seconds(first.StartTimestamp()), 0)
	assert.Equal(t, first.StartTimestamp(), second.StartTimestamp(), "nothing was reset between the two")
}

// A body that lacks the created line once is the same with a process start in the role.
func TestACreatedTimeThatAppearsLaterDoesNotMoveTheStart(t *testing.T) {
	r := newRig(t)
	first := sums(t, r.scrape(counter("5")+process(unix(-200))), "vllm.prompt_tokens")["0"]
	second := sums(t, r.scrape(counter("7")+created(unix(-100))+process(unix(-200))), "vllm.prompt_tokens")["0"]
	assert.Equal(t, first.StartTimestamp(), second.StartTimestamp())
}

// With naming: wire a Ray body has names that begin with "ray_". A restart must
// still reset all series of the process together and ask the version again.
func TestWireNamesOfRayRestartTogether(t *testing.T) {
	for _, prefix := range []string{"vllm:", "ray_vllm_", "ray_vllm:"} {
		t.Run(prefix, func(t *testing.T) {
			r := newRig(t, func(cfg *Config) { cfg.Naming = NamingWire })
			r.version = "0.20.0"
			body := func(a, b string) string {
				return "# TYPE " + prefix + "prompt_tokens_total counter\n" +
					prefix + `prompt_tokens_total{WorkerId="a",engine="0"} ` + a + "\n" +
					prefix + `prompt_tokens_total{WorkerId="a",engine="1"} ` + b + "\n"
			}
			r.scrape(body("100", "5"))
			r.scrape(body("110", "6"))
			out := r.scrape(body("10", "7"))
			var starts []float64
			for _, m := range out.ResourceMetrics().At(out.ResourceMetrics().Len() - 1).ScopeMetrics().At(0).Metrics().All() {
				if m.Type() == pmetric.MetricTypeSum {
					for _, p := range m.Sum().DataPoints().All() {
						starts = append(starts, seconds(p.StartTimestamp()))
					}
				}
			}
			assert.Equal(t, []float64{15, 15}, starts)
			assert.Equal(t, 2, r.asked["/version"])
		})
	}
}

func engineTTFT(counts ...int) string {
	var b strings.Builder
	b.WriteString("# TYPE vllm:time_to_first_token_seconds histogram\n")
	for engine, n := range counts {
		if n < 0 {
			continue
		}
		l := fmt.Sprintf(`engine="%d",model_name="m"`, engine)
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_bucket{%s,le=\"1.0\"} %d\n", l, n)
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_bucket{%s,le=\"+Inf\"} %d\n", l, n)
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_count{%s} %d\n", l, n)
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_sum{%s} %d\n", l, n)
	}
	return b.String()
}

// deltas adds up what a consumer that converts to deltas would count, by series.
type deltas struct {
	last  map[string]pmetric.HistogramDataPoint
	total uint64
}

func (d *deltas) add(t *testing.T, out pmetric.Metrics) {
	t.Helper()
	first := d.last == nil
	if first {
		d.last = map[string]pmetric.HistogramDataPoint{}
	}
	for _, rm := range out.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() != "gen_ai.server.time_to_first_token" {
				continue
			}
			for _, p := range m.Histogram().DataPoints().All() {
				if p.Flags().NoRecordedValue() {
					continue
				}
				key := attributes(p.Attributes())
				last, known := d.last[key]
				switch {
				case first:
				case !known || p.StartTimestamp() != last.StartTimestamp():
					d.total += p.Count()
				default:
					require.GreaterOrEqual(t, p.Count(), last.Count())
					d.total += p.Count() - last.Count()
				}
				d.last[key] = pmetric.NewHistogramDataPoint()
				p.CopyTo(d.last[key])
			}
		}
	}
}

// When an engine leaves (elastic
// data parallelism), what the others have counted long ago must not be counted
// again.
func TestTheMirrorDoesNotCountTwiceWhenAnEngineLeaves(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.GenAI.Enabled = true })
	var d deltas
	d.add(t, r.scrape(engineTTFT(1000, 1000)))
	d.add(t, r.scrape(engineTTFT(1001, 1000)))
	d.add(t, r.scrape(engineTTFT(1002, -1)))
	assert.LessOrEqual(t, d.total, uint64(2), "two requests were served since the first scrape")
}

// An engine that joins brings only what it has counted itself.
func TestTheMirrorWhenOneRayWorkerRestarts(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.GenAI.Enabled = true })
	body := func(a, b int) string {
		s := strings.ReplaceAll(engineTTFT(a, b), "vllm:", "ray_vllm_")
		s = strings.ReplaceAll(s, `engine="0"`, `WorkerId="a",engine="0"`)
		return strings.ReplaceAll(s, `engine="1"`, `WorkerId="b",engine="1"`)
	}
	var d deltas
	d.add(t, r.scrape(body(1000, 1000)))
	d.add(t, r.scrape(body(1001, 1000)))
	d.add(t, r.scrape(body(1002, 3)))
	assert.LessOrEqual(t, d.total, uint64(5))
}

// A version that changed during an outage is a restart, so all series have a
// new start even if their numbers have grown past the old ones.
func TestAnotherReleaseAfterAnOutageIsAReset(t *testing.T) {
	r := newRig(t)
	r.version = "0.19.0"
	r.scrape(counter("5"))
	r.scrape(counter("6"))
	r.fail(500)
	r.version = "0.20.0"
	point := sums(t, r.scrape(counter("50")), "vllm.prompt_tokens")["0"]
	assert.GreaterOrEqual(t, seconds(point.StartTimestamp()), 15.0,
		"the new process did not run before the last scrape of the old one")
}

// A plan is kept for each class of versions. A server that reports
// another one after each restart must not fill the memory.
func TestPlansAreBoundedWhateverVersionsAServerReports(t *testing.T) {
	r := newRig(t)
	for i := range 300 {
		r.mu.Lock()
		r.version = fmt.Sprintf("0.%d.0", i)
		r.mu.Unlock()
		r.scrape(counter(fmt.Sprint(1000 - i)))
	}
	runtime.GC()
	r.scraper.shared.plans.mu.Lock()
	defer r.scraper.shared.plans.mu.Unlock()
	assert.LessOrEqual(t, len(r.scraper.shared.plans.byKey), 32, "one target, one layout")
}

// Old label sets stay in the body for ever, and a set that is used again keeps
// its old place in it. The limit is for adapters that are in use.
func TestTheAdapterLimitCountsTheAdaptersInUse(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Limits.Adapters = 2 })
	line := func(adapters string, at float64) string {
		return `vllm:lora_requests_info{max_lora="2",running_lora_adapters="` + adapters + `",waiting_lora_adapters=""} ` + unix(at) + "\n"
	}
	out := r.scrape("# TYPE vllm:lora_requests_info gauge\n" +
		line("a,b", -1) + line("c", -30) + line("d", -20))
	assert.Len(t, points(out, "vllm.lora.adapter.running"), 2)
}

// A label set whose time is not a number is not the newest.
func TestAnAdapterSetWithoutATimeIsNotTheNewest(t *testing.T) {
	r := newRig(t)
	out := r.scrape("# TYPE vllm:lora_requests_info gauge\n" +
		`vllm:lora_requests_info{running_lora_adapters="a"} ` + unix(-1) + "\n" +
		`vllm:lora_requests_info{running_lora_adapters="b"} NaN` + "\n")
	assert.Contains(t, strings.Join(points(out, "vllm.lora.adapter.running"), "\n"), `"a"`)
}

// The wall clock may be set back; a start after the point's own time is invalid OTLP.
func TestNoStartLiesAfterItsPoint(t *testing.T) {
	r := newRig(t)
	r.scrape(counter("5"))
	r.now = r.now.Add(-time.Hour)
	both := counter("7") + `vllm:prompt_tokens_total{engine="1",model_name="m"} 3` + "\n"
	for engine, p := range sums(t, r.scrape(both), "vllm.prompt_tokens") {
		assert.LessOrEqual(t, p.StartTimestamp(), p.Timestamp(), engine)
	}
}

// --disable-log-stats leaves python_* and process_*, which are off by default.
func TestAServerWithoutStatsIsLogged(t *testing.T) {
	r := newRig(t)
	r.scrape("# TYPE python_info gauge\npython_info{version=\"3.12\"} 1\n" + process(unix(-200)))
	assert.Contains(t, strings.Join(r.logged("warn"), "\n"), "--disable-log-stats")
}

// A restart whose version cannot be asked, because the target is removed just
// then, must not lose the ends of the series.
func TestARemovedTargetEndsAlsoDuringARestart(t *testing.T) {
	r := newRig(t)
	r.version = "0.20.0"
	r.scrape(counter("9"))
	original := r.scraper.origin
	require.NotNil(t, original)
	// The target is removed while the request for the version is under way.
	r.scraper.cancelOnVersion()
	r.scrape(counter("2"))
	out := pmetric.NewMetrics()
	r.scraper.emitter.End(r.now, out)
	text := render(out)
	assert.Contains(t, text, "vllm.prompt_tokens")
	assert.Contains(t, text, `service.version="0.20.0"`)
}

// cancelOnVersion makes the rig's next clock reading after the metrics cancel
// the target, which is what Remove does.
func (s *Target) cancelOnVersion() {
	calls := 0
	now := s.now
	s.now = func() time.Time {
		calls++
		if calls == 2 {
			s.cancel()
		}
		return now()
	}
}

// /health has its own deadline after that of the metrics: both together must
// fit the interval, or the points with vllm.up 0 are too rare.
func TestAHangingServerWithHealthCheckIsReportedEachInterval(t *testing.T) {
	t.Parallel()
	hang := metricsServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	cfg := DefaultConfig()
	cfg.Client.Endpoint = hang
	cfg.HealthCheck = true
	cfg.Controller.CollectionInterval = 2 * time.Second
	cfg.Client.Timeout = 2 * time.Second
	require.NoError(t, cfg.Validate())
	r := newRig(t, func(c *Config) { *c = *cfg })
	began := time.Now()
	_, err := scrapeOnce(context.Background(), r.scraper)
	require.Error(t, err)
	assert.Equal(t, fetch.OutcomeTimeout, fetch.AsError(err).Outcome)
	assert.Less(t, time.Since(began), 3500*time.Millisecond, "timeout is the deadline of one scrape of the target")
}
