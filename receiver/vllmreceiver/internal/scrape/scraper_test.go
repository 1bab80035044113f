package scrape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestASeriesThatVanishesEndsWithOnePoint(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Metrics = map[string]MetricConfig{"http_request_size": {Enabled: new(true)}} })
	histogram := "# TYPE vllm:request_params_max_tokens histogram\n" +
		"vllm:request_params_max_tokens_bucket{le=\"+Inf\"} 1\nvllm:request_params_max_tokens_count 1\nvllm:request_params_max_tokens_sum 1\n"
	summary := "# TYPE http_request_size_bytes summary\nhttp_request_size_bytes_count 1\nhttp_request_size_bytes_sum 1\n"
	assert.Empty(t, ends(r.scrape(gauge("1")+counter("5")+histogram+summary)))
	assert.ElementsMatch(t, []string{"vllm.prompt_tokens", "vllm.request.params_max_tokens", "http_request_size"}, ends(r.scrape(gauge("1"))))
	assert.Empty(t, ends(r.scrape(gauge("1"))))
}

// The Prometheus exporter stops reading a metric at its first end.
func TestEachEndIsAMetricOfItsOwn(t *testing.T) {
	r := newRig(t)
	body := "# TYPE vllm:num_requests_running gauge\n"
	series := func(engine string) string { return "vllm:num_requests_running{engine=\"" + engine + "\"} 1\n" }
	r.scrape(body + series("0") + series("1") + series("2"))
	for _, out := range []pmetric.Metrics{r.scrape(body + series("1")), r.fail(500)} {
		for _, m := range out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			require.Equal(t, 1, m.Gauge().DataPoints().Len())
		}
	}
}

func TestOneSeriesOfSeveralVanishes(t *testing.T) {
	r := newRig(t)
	r.scrape(gauge("1") + `vllm:num_requests_running{engine="1"} 2` + "\n")
	assert.ElementsMatch(t, []string{
		`gauge {request} {engine="1"} @15 end`,
		`gauge {request} {engine="0"} @15 3`,
	}, points(r.scrape(gauge("3")), "vllm.num_requests.running"))
}

// A histogram that does not add up in one scrape has no value then.
func TestAPointThatIsDroppedEndsItsSeries(t *testing.T) {
	r := newRig(t)
	body := func(inf string) string {
		return "# TYPE vllm:request_params_max_tokens histogram\nvllm:request_params_max_tokens_bucket{le=\"1\"} 2\n" +
			"vllm:request_params_max_tokens_bucket{le=\"+Inf\"} " + inf + "\nvllm:request_params_max_tokens_count 3\nvllm:request_params_max_tokens_sum 4\n"
	}
	assert.Empty(t, ends(r.scrape(body("3"))))
	assert.Equal(t, []string{"vllm.request.params_max_tokens"}, ends(r.scrape(body("1"))))
	assert.Empty(t, ends(r.scrape(body("1"))))
	assert.Len(t, points(r.scrape(body("3")), "vllm.request.params_max_tokens"), 1)
}

func TestATargetThatGoesDownEndsItsSeriesAndStaysVisible(t *testing.T) {
	r := newRig(t)
	r.scrape(gauge("1") + counter("5"))
	down := r.fail(500)
	assert.ElementsMatch(t, []string{"vllm.num_requests.running", "vllm.prompt_tokens"}, ends(down))
	assert.Equal(t, []string{"gauge {state} {} @15 0"}, points(down, "vllm.up"))
	still := r.fail(500)
	assert.Empty(t, ends(still))
	assert.Equal(t, []string{"gauge {state} {} @30 0"}, points(still, "vllm.up"))
	assert.Len(t, points(still, "vllm.scrape.duration"), 1)
	assert.Equal(t, []string{"gauge {sample} {} @30 0"}, points(still, "vllm.scrape.samples"))
	back := r.scrape(gauge("1") + counter("5"))
	assert.Equal(t, []string{"gauge {state} {} @45 1"}, points(back, "vllm.up"))
	assert.Equal(t, []string{"gauge {request} {engine=\"0\"} @45 1"}, points(back, "vllm.num_requests.running"))
}

func TestAFailureIsLoggedWhenItStartsAndWhenItEnds(t *testing.T) {
	r := newRig(t)
	r.scrape(gauge("1"))
	for range 5 {
		r.fail(401)
	}
	r.scrape(gauge("1"))
	r.fail(404)
	assert.Equal(t, []string{
		"Scraping failed: the server answered 401 Unauthorized: it wants credentials and none are configured; set auth or headers for this target, " +
			"for an endpoint picker auth with a bearertokenauth extension whose filename is the token of a service account",
		"Scraping failed: the server answered 404 Not Found: there are no metrics at this path; vLLM serves them at /metrics of its API port",
	}, r.logged("warn"))
	assert.Equal(t, []string{"Scraping works again"}, r.logged("info"))
}

func TestABodyWithoutOneReadableLineIsNotPrometheusText(t *testing.T) {
	for name, tt := range map[string]struct{ body, want string }{
		"HTML as text": {"<html>\n<body>hello</body>\n", "not Prometheus text"},
		"only remarks": {"# nothing here\n", "the body has no metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			assert.Equal(t, []string{"gauge {state} {} @0 0"}, points(r.scrape(tt.body), "vllm.up"))
			require.Len(t, r.logged("warn"), 1)
			assert.Contains(t, r.logged("warn")[0], tt.want)
		})
	}
}

// A V0 server without any request has only HELP and TYPE lines.
func TestAFreshServerWithoutSamplesIsUp(t *testing.T) {
	r := newRig(t)
	metrics := r.scrape("# HELP vllm:prompt_tokens_total x\n# TYPE vllm:prompt_tokens_total counter\n")
	assert.Equal(t, []string{"gauge {state} {} @0 1"}, points(metrics, "vllm.up"))
	assert.Empty(t, r.logged("warn"))
}

func TestAServerWithoutVLLMMetricsIsLogged(t *testing.T) {
	r := newRig(t)
	for range 3 {
		r.scrape("# TYPE http_requests_total counter\nhttp_requests_total 5\n")
	}
	require.Len(t, r.logged("warn"), 1)
	assert.Contains(t, r.logged("warn")[0], "--disable-log-stats")
}

// The names are those of the programs' own documentation.
func TestThePageOfAnotherProgramIsNamed(t *testing.T) {
	for family, want := range map[string]string{
		"lmcache:num_hit_tokens": "an LMCache server", "lmcache_mp_lookup_tokens": "an LMCache server", "sglang:token_usage": "an SGLang server",
		"dynamo_planner_gpu_hours": "a worker or the planner of NVIDIA Dynamo", "envoy_cluster_upstream_rq_total": "Envoy itself (Envoy AI Gateway has its metrics on the port 1064",
	} {
		r := newRig(t)
		for range 2 {
			r.scrape("# TYPE python_info gauge\npython_info 1\n# TYPE " + family + " gauge\n" + family + " 5\n")
		}
		require.Len(t, r.logged("warn"), 1, family)
		assert.Contains(t, r.logged("warn")[0], want)
		assert.NotContains(t, r.logged("warn")[0], "--disable-log-stats")
	}
}

func TestTheVersionIsAskedOncePerRunOfTheProcess(t *testing.T) {
	r := newRig(t)
	r.version = "0.20.0"
	for _, value := range []string{"5", "6", "7"} {
		assert.Contains(t, render(r.scrape(counter(value))), `service.version="0.20.0"`)
	}
	assert.Equal(t, 1, r.asked["/version"])

	// It restarts as another release: everything ends under the old resource and
	// continues under the new one, with a start time after the last old point.
	r.version = "0.21.0"
	out := r.scrape(counter("1"))
	require.Equal(t, 2, out.ResourceMetrics().Len())
	text := render(out)
	old, fresh, _ := strings.Cut(text, `service.version="0.21.0"`)
	assert.Contains(t, old, `service.version="0.20.0"`)
	assert.Contains(t, old, "vllm.prompt_tokens counter {token} {engine=\"0\",model_name=\"m\"} from 2027-01-01T00:00:00.000000 @45 end")
	assert.Contains(t, old, "vllm.up gauge {state} {} @45 end")
	assert.Contains(t, fresh, "vllm.prompt_tokens counter {token} {engine=\"0\",model_name=\"m\"} from 2027-01-01T00:00:30.000000 @45 1")
	assert.Equal(t, 2, r.asked["/version"])
	assert.Equal(t, 1, r.scrape(counter("2")).ResourceMetrics().Len())
	assert.Equal(t, 2, r.asked["/version"])
}

// A late version must not make a second stream of each series.
func TestTheResourceDoesNotChangeWhileTheProcessRuns(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.ResourceAttributes.VllmCacheConfigCacheDtype.Enabled = true })
	before := r.scrape(counter("5")).ResourceMetrics().At(0).Resource()
	r.version = "0.20.0"
	config := "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{engine=\"0\",cache_dtype=\"fp8\"} 1\n"
	after := r.scrape(counter("6") + config)
	require.Equal(t, 1, after.ResourceMetrics().Len())
	assert.Equal(t, before.Attributes().AsRaw(), after.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	after = r.scrape(counter("7") + config)
	assert.Equal(t, before.Attributes().AsRaw(), after.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
}

func TestAnotherReleaseAfterAnOutageIsSeenWithoutAFallingCounter(t *testing.T) {
	r := newRig(t)
	r.version = "0.20.0"
	r.scrape(counter("5"))
	r.fail(500)
	r.version = "0.21.0"
	out := r.scrape(counter("6"))
	assert.Contains(t, render(out), `service.version="0.21.0"`)
}

func TestResourceAttributes(t *testing.T) {
	r := newRig(t, func(cfg *Config) {
		cfg.ServiceName = "chat"
		cfg.ResourceAttributes.URLScheme.Enabled = false
		cfg.ResourceAttributes.VllmCacheConfigCacheDtype.Enabled = true
		cfg.ResourceAttributes.VllmCacheConfigGpuMemoryUtilization.Enabled = true
		cfg.ResourceAttributes.VllmCacheConfigSlidingWindow.Enabled = true
	})
	r.scraper.identity.configured = map[string]any{"k8s.pod.name": "vllm-1", "replica": 3, "service.instance.id": "mine"}
	config := func(engine, blocks string) string {
		return fmt.Sprintf("vllm:cache_config_info{engine=%q,cache_dtype=\"fp8\",gpu_memory_utilization=\"0.9\",num_gpu_blocks=%q,sliding_window=\"None\"} 1\n", engine, blocks)
	}
	out := r.scrape("# TYPE vllm:cache_config_info gauge\n" + config("0", "100") + config("1", "200"))
	assert.Equal(t, map[string]any{
		"service.name": "chat", "service.instance.id": "mine", "server.address": "vllm-0", "server.port": int64(8000),
		"k8s.pod.name": "vllm-1", "replica": int64(3),
		"vllm.cache_config.cache_dtype": "fp8", "vllm.cache_config.gpu_memory_utilization": "0.9",
	}, out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	assert.Equal(t, []string{
		`gauge {block} {engine="0"} @0 100`, `gauge {block} {engine="1"} @0 200`,
	}, points(out, "vllm.kv_cache.num_gpu_blocks"))
}

// Known series first, then new ones up to the limit.
func TestTheSeriesLimitKeepsKnownSeries(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Limits.Series = 3 })
	body := func(engines ...string) string {
		out := "# TYPE vllm:num_requests_running gauge\n"
		for _, engine := range engines {
			out += "vllm:num_requests_running{engine=\"" + engine + "\"} 1\n"
		}
		return out
	}
	engines := func(metrics pmetric.Metrics) string {
		out := ""
		for _, line := range points(metrics, "vllm.num_requests.running") {
			if !strings.HasSuffix(line, "end") {
				out += line[strings.Index(line, `="`)+2 : strings.Index(line, `"}`)]
			}
		}
		return out
	}
	assert.Equal(t, "bc", engines(r.scrape(body("b", "c"))))
	assert.Empty(t, r.logged("warn"))
	assert.Equal(t, "abc", engines(r.scrape(body("a", "b", "c", "d"))), "one new series finds room")
	assert.Equal(t, "abc", engines(r.scrape(body("d", "a", "b", "c"))), "the order of the body does not matter")
	require.Len(t, r.logged("warn"), 1)
	assert.Contains(t, r.logged("warn")[0], "limits::series")
	assert.Equal(t, "dac", engines(r.scrape(body("d", "a", "c"))), "room again")
	assert.Equal(t, []string{"The target is within limits::series again"}, r.logged("info"))
}

func TestSwitchesTurnMetricsOnAndOff(t *testing.T) {
	on, off := true, false
	r := newRig(t, func(cfg *Config) {
		cfg.Metrics = map[string]MetricConfig{
			"vllm.num_requests.running": {Enabled: &off}, "vllm.scrape.samples": {Enabled: &off},
			"python_info": {Enabled: &on}, "vllm.prompt_tokens": {},
		}
	})
	out := r.scrape(gauge("1") + counter("5") + "# TYPE python_info gauge\npython_info 1\n")
	for name, want := range map[string]int{
		"vllm.num_requests.running": 0, "vllm.scrape.samples": 0, "python_info": 1, "vllm.prompt_tokens": 1, "vllm.up": 1,
	} {
		assert.Len(t, points(out, name), want, name)
	}
}

// The value of the info family is the time of its writing; what was written
// last holds, in multi-process mode after division by the number of servers.
func TestOnlyTheNewestSetOfLoRAAdaptersCounts(t *testing.T) {
	set := func(running, value string) string {
		return `vllm:lora_requests_info{max_lora="4",running_lora_adapters="` + running + `",waiting_lora_adapters=""} ` + value + "\n"
	}
	twice := fmt.Sprintf("%f", 2*(float64(firstScrape.Unix())-50))
	tests := []struct {
		name, body string
		want       []string
	}{
		{"one process", set("", unix(-90)) + set("a,b", unix(-10)) + set("c", unix(-20)), []string{"a", "b"}},
		{"times of two servers added up", set("a", twice) + set("b", unix(-10)), []string{"b"}},
		{"times of two servers added up, newest", set("a", unix(-60)) + set("b", twice), []string{"b"}},
		{"an imitator that writes 1 and 0", set("a", "1") + set("b", "0"), []string{"a"}},
		{"nothing runs now", set("a", unix(-50)) + set("", unix(-5)), nil},
		{"equal times, and no request", set("a", unix(-5)) + set("", unix(-5)) + set("b,c", unix(-5)) + gauge("0"), nil},
		{"equal times, and a request", set("a", unix(-5)) + set("", unix(-5)) + set("b,c", unix(-5)) + gauge("1"), []string{"b", "c"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			out := r.scrape("# TYPE vllm:lora_requests_info gauge\n" + tt.body)
			var got []string
			for _, line := range points(out, "vllm.lora.adapter.running") {
				assert.Contains(t, line, "@0 1")
				got = append(got, strings.Split(line, `"`)[1])
			}
			assert.ElementsMatch(t, tt.want, got)
			assert.Equal(t, []string{"gauge {adapter} {} @0 4"}, points(out, "vllm.lora.max_adapters"))
		})
	}
}

func TestAnAdapterThatIsUnloadedEnds(t *testing.T) {
	r := newRig(t)
	body := "# TYPE vllm:lora_requests_info gauge\n" +
		`vllm:lora_requests_info{running_lora_adapters="a",waiting_lora_adapters="b"} ` + unix(-9) + "\n"
	r.scrape(body)
	out := r.scrape(body + `vllm:lora_requests_info{running_lora_adapters="b",waiting_lora_adapters=""} ` + unix(14) + "\n")
	assert.ElementsMatch(t, []string{
		`gauge {adapter} {adapter_name="a"} @15 end`, `gauge {adapter} {adapter_name="b"} @15 1`,
	}, points(out, "vllm.lora.adapter.running"))
	assert.Equal(t, []string{`gauge {adapter} {adapter_name="b"} @15 end`}, points(out, "vllm.lora.adapter.waiting"))
}

func TestTheSentinelOfV0IsAbsent(t *testing.T) {
	r := newRig(t)
	body := "# TYPE vllm:gpu_prefix_cache_hit_rate gauge\nvllm:gpu_prefix_cache_hit_rate "
	assert.Empty(t, points(r.scrape(body+"-1.0\n"), "vllm.gpu_prefix_cache.hit_rate"))
	assert.Equal(t, []string{"gauge 1 {} @15 0.25"}, points(r.scrape(body+"0.25\n"), "vllm.gpu_prefix_cache.hit_rate"))
	assert.Equal(t, []string{"gauge 1 {} @30 end"}, points(r.scrape(body+"-1.0\n"), "vllm.gpu_prefix_cache.hit_rate"))
}

// The conventional names, attributes and bounds, and the engine.
func TestTheGenAIMirror(t *testing.T) {
	bounds := []string{
		"0.001", "0.005", "0.01", "0.02", "0.04", "0.06", "0.08", "0.1", "0.25", "0.5", "0.75", "1", "2.5", "5", "7.5", "10", "20", "+Inf",
	}
	body := "# TYPE vllm:time_to_first_token_seconds histogram\n"
	for engine := range 2 {
		for i, bound := range bounds {
			body += fmt.Sprintf("vllm:time_to_first_token_seconds_bucket{engine=\"%d\",model_name=\"m\",le=%q} %d\n", engine, bound, (i+1)*(engine+1))
		}
		body += fmt.Sprintf("vllm:time_to_first_token_seconds_count{engine=\"%d\",model_name=\"m\"} %d\n", engine, len(bounds)*(engine+1))
		body += fmt.Sprintf("vllm:time_to_first_token_seconds_sum{engine=\"%d\",model_name=\"m\"} %d\n", engine, 10*(engine+1))
	}
	r := newRig(t, func(cfg *Config) { cfg.GenAI.Enabled = true })
	// Each bucket has one observation of engine 0 and two of engine 1; the two
	// buckets above 10 become one.
	assert.Equal(t, []string{
		`histogram s {engine="0",gen_ai.operation.name="chat",gen_ai.provider.name="vllm",gen_ai.request.model="m"} from 2027-01-01T00:00:00.000000 @0 count=18 sum=10` +
			" 0.001:1 0.005:1 0.01:1 0.02:1 0.04:1 0.06:1 0.08:1 0.1:1 0.25:1 0.5:1 0.75:1 1:1 2.5:1 5:1 7.5:1 10:1 inf:2",
		`histogram s {engine="1",gen_ai.operation.name="chat",gen_ai.provider.name="vllm",gen_ai.request.model="m"} from 2027-01-01T00:00:00.000000 @0 count=36 sum=20` +
			" 0.001:2 0.005:2 0.01:2 0.02:2 0.04:2 0.06:2 0.08:2 0.1:2 0.25:2 0.5:2 0.75:2 1:2 2.5:2 5:2 7.5:2 10:2 inf:4",
	}, points(r.scrape(body), "gen_ai.server.time_to_first_token"))

	r = newRig(t)
	assert.Empty(t, points(r.scrape(body), "gen_ai.server.time_to_first_token"))
}

func TestWireNaming(t *testing.T) {
	r := newRig(t, func(cfg *Config) { cfg.Naming = NamingWire })
	out := r.scrape(gauge("1") + counter("5") + created(unix(-100)))
	assert.Equal(t, []string{`gauge  {engine="0"} @0 1`}, points(out, "vllm:num_requests_running"))
	assert.Equal(t, []string{`counter  {engine="0",model_name="m"} from 2026-12-31T23:58:20.000000 @0 5`}, points(out, "vllm:prompt_tokens_total"))
	assert.Len(t, points(out, "vllm.up"), 1)
	assert.NotContains(t, render(out), "_created")
}

func TestUnknownFamiliesAreNamedOnce(t *testing.T) {
	r := newRig(t)
	for i := range 4 {
		r.scrape(fmt.Sprintf("# TYPE vllm:brand_new_seconds gauge\nvllm:brand_new_seconds{n=\"%d\"} 1\n", i))
	}
	messages := r.logs.FilterMessageSnippet("These families are unknown").All()
	require.Len(t, messages, 1)
	assert.Equal(t, []any{"vllm:brand_new_seconds"}, messages[0].ContextMap()["families"])
}

func TestDuplicateSeriesAreLoggedOnce(t *testing.T) {
	r := newRig(t)
	for range 3 {
		out := r.scrape(gauge("1") + gauge("2") + counter("5"))
		assert.Len(t, points(out, "vllm.num_requests.running"), 1)
	}
	messages := r.logs.FilterMessageSnippet("more than once").All()
	require.Len(t, messages, 1)
	assert.EqualValues(t, 1, messages[0].ContextMap()["dropped"])
}

func TestABadLineIsLoggedOncePerKindWithItsNumber(t *testing.T) {
	r := newRig(t)
	for range 3 {
		out := r.scrape(gauge("1") + "vllm:num_requests_running{engine=\"1\"} two\nvllm:num_requests_running{engine=\"2\"} three\n" + counter("5"))
		assert.Len(t, points(out, "vllm.num_requests.running"), 1)
		assert.Len(t, points(out, "vllm.prompt_tokens"), 1)
	}
	messages := r.logs.FilterMessageSnippet("could not be read").All()
	require.Len(t, messages, 1)
	assert.EqualValues(t, 3, messages[0].ContextMap()["line"])
	assert.Equal(t, "bad_value", messages[0].ContextMap()["reason"])
}
