package scrape

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A process that started when it started before has not been restarted, whatever
// one of its counters does.
func TestAnUnchangedProcessStartIsNotARestart(t *testing.T) {
	r := newRig(t)
	body := func(tokens, other string) string {
		return counter(tokens) + "# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total " + other + "\n" + process(unix(-200))
	}
	r.scrape(body("100", "9"))
	r.scrape(body("101", "9"))
	start := sums(t, r.scrape(body("102", "3")), "vllm.prompt_tokens")["0"].StartTimestamp()
	assert.InDelta(t, -200, seconds(start), 0.001)
}

// A plug-in may call its counter "vllm:..." as well. What the catalogue does not
// know does not speak for the process.
func TestAnUnknownFallingCounterResetsOnlyItself(t *testing.T) {
	r := newRig(t)
	body := func(tokens, plugin string) string {
		return counter(tokens) + "# TYPE vllm:my_plugin_things_total counter\nvllm:my_plugin_things_total " + plugin + "\n"
	}
	r.scrape(body("100", "9"))
	r.scrape(body("101", "9"))
	start := sums(t, r.scrape(body("102", "3")), "vllm.prompt_tokens")["0"].StartTimestamp()
	assert.InDelta(t, 0, seconds(start), 0)
}

// A gauge whose TYPE line says counter is emitted under another name; its falls
// are not restarts.
func TestAGaugeTypedAsACounterDoesNotShowARestart(t *testing.T) {
	r := newRig(t)
	body := func(tokens, running string) string {
		return counter(tokens) + "# TYPE vllm:num_requests_running counter\nvllm:num_requests_running " + running + "\n"
	}
	r.scrape(body("100", "9"))
	r.scrape(body("101", "9"))
	start := sums(t, r.scrape(body("102", "3")), "vllm.prompt_tokens")["0"].StartTimestamp()
	assert.InDelta(t, 0, seconds(start), 0)
}

// A histogram that does not add up is dropped; it does not show a restart.
func TestADroppedHistogramDoesNotShowARestart(t *testing.T) {
	r := newRig(t)
	body := func(tokens, bucket, count string) string {
		return counter(tokens) + "# TYPE vllm:request_params_max_tokens histogram\n" +
			`vllm:request_params_max_tokens_bucket{le="1.0"} ` + bucket + "\n" +
			`vllm:request_params_max_tokens_bucket{le="+Inf"} ` + bucket + "\n" +
			`vllm:request_params_max_tokens_count ` + count + "\n" +
			`vllm:request_params_max_tokens_sum 1` + "\n"
	}
	r.scrape(body("100", "5", "5"))
	r.scrape(body("101", "6", "6"))
	out := r.scrape(body("102", "7", "2"))
	require.Contains(t, strings.Join(points(out, "vllm.request.params_max_tokens"), ""), "end", "it is dropped")
	start := sums(t, out, "vllm.prompt_tokens")["0"].StartTimestamp()
	assert.InDelta(t, 0, seconds(start), 0)
}

// What a server writes is not repeated in the log: it is remote input.
func TestARedirectsAddressIsNotInTheLog(t *testing.T) {
	address := metricsServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://127.0.0.1:%zz/?token=hunter2"+strings.Repeat("A", 5000))
		w.WriteHeader(http.StatusFound)
	})
	r := newRig(t, func(cfg *Config) { cfg.Client.Endpoint = address })
	_, err := scrapeOnce(t.Context(), r.scraper)
	require.Error(t, err)
	log := fmt.Sprint(r.logged("warn"))
	assert.NotContains(t, log, "hunter2")
	assert.Less(t, len(log), 1000)
}

// A series over the limit that takes the place of one that left must not be
// pushed out when that one returns.
func TestTheSeriesLimitIsSticky(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Limits.Series = 2 })
	body := func(engines ...string) string {
		s := "# TYPE vllm:prompt_tokens_total counter\n"
		for i, e := range engines {
			s += fmt.Sprintf("vllm:prompt_tokens_total{engine=%q} %d\n", e, 10+i+r.asked["/metrics"]*10)
		}
		return s
	}
	live := func(engines ...string) []string {
		var out []string
		for e, p := range sums(t, r.scrape(body(engines...)), "vllm.prompt_tokens") {
			if !p.Flags().NoRecordedValue() {
				out = append(out, e)
			}
		}
		return out
	}
	assert.ElementsMatch(t, []string{"a", "b"}, live("a", "b", "c"))
	assert.ElementsMatch(t, []string{"a", "b"}, live("c", "a", "b"))
	assert.ElementsMatch(t, []string{"b", "c"}, live("b", "c"))
	assert.ElementsMatch(t, []string{"b", "c"}, live("a", "b", "c"))
}

// A downgrade passes through a plan of the new body by the old version. A series
// that this plan lacks and the right one has must not end in the scrape that has it.
func TestASeriesDoesNotEndInTheScrapeThatHasIt(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.ResourceAttributes.ServiceVersion.Enabled = false })
	r.version = "0.20.0"
	line := func(family, value string) string {
		return "# TYPE vllm:" + family + " counter\nvllm:" + family + `{engine="0",model_name="m"} ` + value + "\n"
	}
	r.scrape(counter("100") + line("prefix_cache_hits_total", "50"))
	r.version = "0.10.2"
	out := r.scrape(counter("2") + line("gpu_prefix_cache_hits_total", "1"))
	assert.Len(t, points(out, "vllm.prefix_cache.hits"), 1, "%v", points(out, "vllm.prefix_cache.hits"))
}

// Two counts of one family mean different things before and after 0.9. One
// request for the version that times out must not give the metric another name
// for a whole life of the process.
func TestALateVersionDoesNotRenameAMetric(t *testing.T) {
	r := newRig(t)
	r.version = "0.10.2"
	body := func(value string) string {
		return counter(value) + "# TYPE vllm:gpu_prefix_cache_hits_total counter\nvllm:gpu_prefix_cache_hits_total{engine=\"0\"} " + value + "\n"
	}
	r.scrape(body("100"))
	r.version = "" // A server that has just started answers 404 or 503 once.
	r.scrape(body("2"))
	r.version = "0.10.2"
	assert.Len(t, points(r.scrape(body("3")), "vllm.prefix_cache.hits"), 1)
}

// After an outage the version is asked again. The same answer is not a restart: the series
// keep their resource and their start times.
func TestAnOutageOfTheSameReleaseIsNotARestart(t *testing.T) {
	r := newRig(t)
	r.version = "0.20.0"
	counter := func(n int) string {
		return fmt.Sprintf("# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total %d\n", n)
	}
	r.scrape(counter(5))
	before := r.scrape(counter(6))
	r.fail(http.StatusInternalServerError)
	after := r.scrape(counter(7))
	start := func(m pmetric.Metrics) pcommon.Timestamp {
		for _, sm := range m.ResourceMetrics().At(0).ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() == "vllm.prompt_tokens" {
					return metric.Sum().DataPoints().At(0).StartTimestamp()
				}
			}
		}
		return 0
	}
	require.NotZero(t, start(before))
	assert.Equal(t, start(before), start(after))
	assert.Equal(t, 2, r.asked["/version"], "once at the start and once after the outage")
	r.scrape(counter(8))
	assert.Equal(t, 2, r.asked["/version"])

	r.version = "0.21.0"
	r.fail(http.StatusInternalServerError)
	other := r.scrape(counter(9))
	assert.Contains(t, render(other), `service.version="0.21.0"`, "another release has another resource")
}
