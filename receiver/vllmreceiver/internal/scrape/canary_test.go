package scrape

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

var oneCanary = []string{"POST /v1/completions"}

func TestACanaryIsForServersWithoutTraffic(t *testing.T) {
	r := newCanaryRig(t)
	assert.Empty(t, r.turn(), "it was not scraped, so it may be starting")
	r.scrape(100)
	assert.Empty(t, r.turn(), "one scrape does not show whether there is traffic")
	r.scrape(100)
	assert.Equal(t, oneCanary, r.turn())
	r.scrape(101)
	assert.Equal(t, oneCanary, r.turn(), "this was the canary")
	r.scrape(103)
	assert.Empty(t, r.turn(), "this was a canary, and somebody else")
	r.pass(14 * time.Second)
	assert.Empty(t, r.turn())
	r.pass(time.Hour)
	assert.Empty(t, r.turn(), "the last scrape shows traffic")
	r.scrape(103)
	assert.Equal(t, oneCanary, r.turn())
	r.scrape(50)
	assert.Empty(t, r.turn(), "fewer than before cannot be compared")
}

// After a burst a server is left alone for an interval, which may be longer than that of the scrapes.
func TestACanaryWaitsForAnIntervalAfterTraffic(t *testing.T) {
	r := newCanaryRig(t, func(cfg *Config) { cfg.Canary.Get().Interval = time.Minute })
	r.ready()
	r.scrape(9)
	for range 3 {
		r.scrape(9)
		assert.Empty(t, r.turn())
	}
	r.scrape(9)
	assert.Equal(t, oneCanary, r.turn())
}

// vLLM's change #58078 counts a first token when its request ends.
func TestALongRequestIsTraffic(t *testing.T) {
	const first = "# TYPE vllm:time_to_first_token_seconds histogram\n" +
		"vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 1\n" +
		"vllm:time_to_first_token_seconds_count{engine=\"0\"} 1\nvllm:time_to_first_token_seconds_sum{engine=\"0\"} 1\n"
	r := newCanaryRig(t)
	r.ready()
	for tokens := range 5 {
		r.scrape(100*tokens+100, first)
		r.pass(time.Hour)
		assert.Empty(t, r.turn())
	}
	r.scrape(500, first)
	assert.Equal(t, oneCanary, r.turn())
}

// The server counts the token of a canary at some time between its beginning and its end.
func TestACanaryIsNotTakenForTraffic(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.answer(func(w http.ResponseWriter, request *http.Request) {
		r.scrape(1)
		answers(w, request)
	})
	assert.Equal(t, oneCanary, r.turn(), "a scrape comes before its end")
	r.answer(answers)
	r.scrape(1)
	assert.Equal(t, oneCanary, r.turn())
	r.scrape(2)
	r.also = func() { assert.Equal(t, oneCanary, r.turn()) }
	r.scrape(2)
	r.also = nil
	r.scrape(3)
	assert.Equal(t, oneCanary, r.turn(), "one was sent and answered after the body was made")
}

func TestServersThatGetNoCanary(t *testing.T) {
	const second = "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine=\"1\"} 0\n"
	const transfer = "# TYPE vllm:nixl_num_failed_transfers_total counter\nvllm:nixl_num_failed_transfers_total 0\n"
	sleep := func(awake, offloaded string) string {
		return "# TYPE vllm:engine_sleep_state gauge\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"awake\"} " + awake +
			"\nvllm:engine_sleep_state{engine=\"0\",sleep_state=\"weights_offloaded\"} " + offloaded + "\n"
	}
	also := func(words ...string) func(*Config) {
		return func(cfg *Config) { cfg.Canary.Get().Also = words }
	}
	for name, tc := range map[string]struct {
		lines  string
		change func(*Config)
		sent   bool
		says   string
	}{
		"any server":           {"", also(), true, ""},
		"awake":                {sleep("1", "0"), also(), true, ""},
		"asleep":               {sleep("0", "1"), also(), false, ""},
		"KV transfer":          {transfer, also(), false, "add kv_transfer"},
		"KV transfer, listed":  {transfer, also(alsoTransfer), true, ""},
		"several engines":      {second, also(alsoTransfer), false, "add data_parallel"},
		"several, listed":      {second, also(alsoParallel), true, ""},
		"both, one listed":     {second + transfer, also(alsoParallel), false, "add kv_transfer"},
		"both listed":          {second + transfer, also(alsoParallel, alsoTransfer), true, ""},
		"a router":             {"# TYPE vllm_router:num_requests_running gauge\nvllm:healthy_pods_total{server=\"http://a\"} 1\n", also(), false, "list the servers themselves"},
		"a gateway, by source": {"", func(cfg *Config) { cfg.Source = normalize.SourceGateway }, false, "list the servers themselves"},
	} {
		t.Run(name, func(t *testing.T) {
			// A configuration with canaries for a gateway is refused, so it is changed later.
			r := newCanaryRig(t)
			tc.change(r.group.Config)
			r.group.plans.options = planOptions(r.group.Config)
			r.ready(tc.lines)
			if tc.sent {
				assert.Equal(t, oneCanary, r.turn())
			} else {
				assert.Empty(t, r.turn())
			}
			r.scrape(0, tc.lines)
			said := 0
			for _, line := range r.logged("info") {
				if strings.HasPrefix(line, "No canaries are sent") {
					said++
					assert.Contains(t, line, tc.says)
				}
			}
			assert.Equal(t, tc.says != "", said == 1, said)
		})
	}
}

func TestNoCanaryForAServerThatIsGoneOrLeaving(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.show("")
	r.again()
	assert.Empty(t, r.turn(), "the last scrape failed")
	r.scrape(0)
	assert.Equal(t, oneCanary, r.turn())
	r.scraper.pod.Store(&emit.Pod{Ready: true})
	r.scrape(1)
	assert.Equal(t, oneCanary, r.turn())
	r.scraper.pod.Store(&emit.Pod{Terminating: true})
	assert.Empty(t, r.turn())
	r.scraper.pod.Store(nil)
	r.scraper.cancel()
	assert.Empty(t, r.turn(), "the target stops")
}

// What is unanswered counts from the first of at least two, and only if one was answered before.
func TestAServerThatStandsStill(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.standsStill()
	assert.Len(t, r.turn(), 2, "the second one follows at once")
	assert.Equal(t, []string{"success timeout 0"}, canaryPoints(r.scrape(0)), "none was answered yet")
	r.answer(answers)
	assert.Len(t, r.turn(), 1)
	assert.Equal(t, []string{"success timeout end", "success ok 1", "unanswered  0"}, canaryPoints(r.scrape(1)))

	r.standsStill()
	assert.Len(t, r.turn(), 2)
	assert.Equal(t, []string{"success ok end", "success timeout 0", "unanswered  45"}, canaryPoints(r.scrape(1)))
	assert.Len(t, r.turn(), 1, "the third one")
	assert.Equal(t, []string{"success timeout 0", "unanswered  75"}, canaryPoints(r.scrape(1)))
	r.answer(answers)
	r.turn()
	assert.Equal(t, []string{"success timeout end", "success ok 1", "unanswered  0"}, canaryPoints(r.scrape(2)))
}

func TestOneTimeoutIsNotYetUnanswered(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.turn()
	r.scrape(1)
	r.standsStill(func() {
		assert.Equal(t, []string{"success ok 1", "unanswered  0"}, canaryPoints(r.scrape(1)), "it is still open")
		r.answer(func(w http.ResponseWriter, request *http.Request) {
			assert.Equal(t, []string{"success ok end", "success timeout 0", "unanswered  0"}, canaryPoints(r.scrape(1)))
			answers(w, request)
		})
	})
	assert.Len(t, r.turn(), 2)
	assert.Equal(t, []string{"success timeout end", "success ok 1", "unanswered  0"}, canaryPoints(r.scrape(2)))
}

// Requests of users that are served say more than a canary that waited too long.
func TestTrafficEndsWhatIsUnanswered(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.turn()
	r.scrape(1)
	r.standsStill()
	r.turn()
	assert.Equal(t, []string{"success ok end", "success timeout 0", "unanswered  45"}, canaryPoints(r.scrape(1)))
	assert.Equal(t, []string{"success timeout end", "unanswered  0"}, canaryPoints(r.scrape(20)))
	assert.Empty(t, r.turn())
	// The same while a canary is on its way: it is not the first of a row, and none follows.
	r.scrape(20)
	r.standsStill(func() { r.scrape(30) })
	assert.Len(t, r.turn(), 1)
	assert.Equal(t, []string{"success timeout 0", "unanswered  0"}, canaryPoints(r.scrape(30)))
	r.scrape(30)
	r.standsStill()
	assert.Len(t, r.turn(), 2, "a new row begins")
}

func TestTheOutcomesAreMetrics(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	for want, handler := range map[string]http.HandlerFunc{
		"ok 1":         answers,
		"http_error 0": status(503),
		"refused 0":    func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"invalid 0":    func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 1<<20)) },
	} {
		r := newCanaryRig(t)
		r.ready()
		r.answer(handler)
		// net/http sends a request again where a connection that it kept is closed.
		assert.NotEmpty(t, r.turn(), want)
		assert.Equal(t, "success "+want, canaryPoints(r.scrape(1))[0])
		// Of a server that cannot be scraped, only a failure is still true.
		r.show("")
		left := canaryPoints(r.again())
		if want == "ok 1" {
			assert.Equal(t, []string{"success ok end", "unanswered  end"}, left)
		} else {
			assert.Equal(t, []string{"success " + want}, left)
		}
	}
}

func TestTheHistogramOfAServerProcess(t *testing.T) {
	r := newCanaryRig(t)
	r.ready(startedAt(100))
	r.answer(func(w http.ResponseWriter, request *http.Request) {
		r.pass(300 * time.Millisecond)
		answers(w, request)
	})
	r.turn()
	line := points(r.scrape(1, startedAt(100)), emit.MetricCanaryDuration)
	require.Len(t, line, 1)
	assert.Contains(t, line[0], "from 2027-01-01T00:00:00.000000 @45.3 count=1 sum=0.3 ")
	assert.Contains(t, line[0], " 0.25:0 0.5:1 ")
	r.standsStill()
	r.turn()
	assert.Contains(t, points(r.scrape(1, startedAt(100)), emit.MetricCanaryDuration)[0], "count=1 ")
	assert.Equal(t, []string{"success timeout 0", "unanswered  60"}, canaryPoints(r.again()))

	// Another process: nothing is known of it, and it may still be loading.
	out := r.scrape(0, startedAt(-80))
	assert.Equal(t, []string{"success timeout end", "unanswered  end"}, canaryPoints(out))
	require.Len(t, points(out, emit.MetricCanaryDuration), 1)
	assert.Contains(t, points(out, emit.MetricCanaryDuration)[0], " end")
	assert.Empty(t, r.turn())
	r.answer(answers)
	r.scrape(0, startedAt(-80))
	r.turn()
	line = points(r.scrape(1, startedAt(-80)), emit.MetricCanaryDuration)
	require.Len(t, line, 1)
	assert.Contains(t, line[0], "from 2027-01-01T00:02:00.300000 ")
	assert.Contains(t, line[0], "count=1 sum=0 ")
}

// An answer of the process that is gone does not count for the new one.
func TestACanaryThatARestartOvertakes(t *testing.T) {
	r := newCanaryRig(t)
	r.ready(startedAt(100))
	r.answer(func(w http.ResponseWriter, request *http.Request) {
		r.scrape(0, startedAt(-40))
		answers(w, request)
	})
	assert.Len(t, r.turn(), 1)
	assert.Empty(t, canaryPoints(r.scrape(0, startedAt(-40))))
}

func TestAServerThatRejectsCanariesIsLeftAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		model  string
		status int
		says   string
	}{
		"a wrong model": {"m", 404, "check canary::model"},
		"no key":        {"m", 401, "set canary::api_key"},
		"no models":     {"", 404, "set canary::model"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newCanaryRig(t, func(cfg *Config) { cfg.Canary.Get().Model = tc.model })
			reject := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }
			models := r.models
			r.completion, r.models = reject, reject
			r.ready(startedAt(100))
			assert.Len(t, r.turn(), 1)
			for range 3 {
				assert.Empty(t, canaryPoints(r.scrape(0, startedAt(100))))
				assert.Empty(t, r.turn())
			}
			require.Len(t, r.logged("warn"), 1)
			assert.Contains(t, r.logged("warn")[0], tc.says)
			r.completion, r.models = answers, models
			r.scrape(0, startedAt(-100))
			r.scrape(0, startedAt(-100))
			assert.NotEmpty(t, r.turn(), "it has restarted")
			assert.Equal(t, []string{"success ok 1", "unanswered  0"}, canaryPoints(r.scrape(1, startedAt(-100))))
			assert.Len(t, r.logged("warn"), 1)
		})
	}
}

func TestTheModelIsAskedOnceForAServerProcess(t *testing.T) {
	r := newCanaryRig(t, func(cfg *Config) { cfg.Canary.Get().Model = "" })
	body := ""
	r.completion = func(w http.ResponseWriter, request *http.Request) {
		content, _ := io.ReadAll(request.Body)
		body = string(content)
		answers(w, request)
	}
	both := []string{"GET /v1/models", "POST /v1/completions"}
	models := r.models
	r.models = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }
	r.ready(startedAt(100))
	assert.Equal(t, both[:1], r.turn())
	assert.Empty(t, canaryPoints(r.again()), "the engine was not asked")
	r.models = models
	assert.Equal(t, both, r.turn())
	assert.Contains(t, body, `"model":"m"`)
	r.scrape(1, startedAt(100))
	assert.Equal(t, both[1:], r.turn())
	r.scrape(0, startedAt(-100))
	r.scrape(0, startedAt(-100))
	assert.Equal(t, both, r.turn())
}

func TestACanaryOfATargetThatStopsFreesItsPlace(t *testing.T) {
	r := newCanaryRig(t)
	r.ready()
	r.answer(func(w http.ResponseWriter, request *http.Request) {
		assert.Len(t, r.group.canaries, 1)
		r.scraper.Stop()
		hangs(w, request)
	})
	r.turn()
	assert.Empty(t, r.group.canaries)
}

func TestACanaryThatIsOffCostsNothing(t *testing.T) {
	off := false
	r := newCanaryRig(t, func(cfg *Config) {
		cfg.Metrics = map[string]MetricConfig{"vllm.canary.success": {Enabled: &off}, "vllm.canary.duration": {Enabled: &off}}
	})
	r.ready()
	r.turn()
	out := r.scrape(1)
	assert.Equal(t, []string{"unanswered  0"}, canaryPoints(out))
	assert.Empty(t, points(out, emit.MetricCanaryDuration))
	assert.NotNil(t, r.scraper.Canary(r.group.Config.Canary.Get()))

	all := newCanaryRig(t, func(cfg *Config) {
		cfg.Metrics = map[string]MetricConfig{
			"vllm.canary.success": {Enabled: &off}, "vllm.canary.duration": {Enabled: &off}, "vllm.canary.unanswered": {Enabled: &off},
		}
	})
	assert.Nil(t, all.scraper.Canary(all.group.Config.Canary.Get()), "nobody sees the result")
}
