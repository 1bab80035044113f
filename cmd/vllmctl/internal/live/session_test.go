package live

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.uber.org/goleak"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// uptime is for how long a simulated server has been busy when a test begins.
const uptime = 2 * time.Minute

// simulated returns a simulated server with an even load that it copes with. changes are
// counted from the start of the test.
func simulated(t *testing.T, rate float64, config vllmsim.Config, changes ...engine.Change) *vllmsim.Target {
	t.Helper()
	config.Workload = &engine.Workload{
		Rate: rate, Prompt: engine.Lengths{Median: 700, Sigma: 0.3}, Output: engine.Lengths{Median: 160, Sigma: 0.3},
	}
	for _, c := range changes {
		c.At += uptime.Seconds()
		config.Changes = append(config.Changes, c)
	}
	config.Clock, config.Start, config.Seed = time.Now, time.Now().Add(-uptime), 1
	server, err := vllmsim.New(config)
	require.NoError(t, err)
	return server.Targets()[0]
}

// slow is memory that loses most of its bandwidth and gets it back.
func slow(from, until time.Duration) []engine.Change {
	return []engine.Change{
		{At: from.Seconds(), Parameter: engine.ParamBandwidth, Value: 0.3},
		{At: until.Seconds(), Parameter: engine.ParamBandwidth, Value: 1},
	}
}

// recorded keeps the bodies that a server has answered with.
type recorded struct {
	http.Handler

	mu     sync.Mutex
	bodies [][]byte
}

func (r *recorded) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/metrics" {
		r.Handler.ServeHTTP(w, request)
		return
	}
	answer := httptest.NewRecorder()
	r.Handler.ServeHTTP(answer, request)
	r.mu.Lock()
	r.bodies = append(r.bodies, bytes.Clone(answer.Body.Bytes()))
	r.mu.Unlock()
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	_, _ = w.Write(answer.Body.Bytes())
}

// answers are the bodies so far.
func (r *recorded) answers() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.bodies)
}

// families reads a body with Prometheus's own parser.
func families(t *testing.T, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(t, err)
	return all
}

// ofEngine is the series of a family for an engine.
func ofEngine(t *testing.T, all map[string]*dto.MetricFamily, family, engine string) *dto.Metric {
	t.Helper()
	for _, series := range all[family].GetMetric() {
		for _, pair := range series.GetLabel() {
			if pair.GetName() == "engine" && pair.GetValue() == engine {
				return series
			}
		}
	}
	require.Fail(t, "no such series", "%s of engine %s", family, engine)
	return nil
}

// agree compares a row with the body at the end of a window and the one before its begin.
func agree(t *testing.T, r *Row, before, last []byte, seconds float64) {
	t.Helper()
	old, now := families(t, before), families(t, last)
	gauge := func(name string) float64 { return ofEngine(t, now, name, r.Engine).GetGauge().GetValue() }
	mean := func(name string) float64 {
		a, b := ofEngine(t, old, name, r.Engine).GetHistogram(), ofEngine(t, now, name, r.Engine).GetHistogram()
		return (b.GetSampleSum() - a.GetSampleSum()) / float64(b.GetSampleCount()-a.GetSampleCount())
	}
	rate := func(name string) float64 {
		a, b := ofEngine(t, old, name, r.Engine).GetCounter(), ofEngine(t, now, name, r.Engine).GetCounter()
		return (b.GetValue() - a.GetValue()) / seconds
	}
	assert.InDelta(t, gauge("vllm:num_requests_running"), r.Values[Running], 0)
	assert.InDelta(t, gauge("vllm:num_requests_waiting"), r.Values[Waiting], 0)
	assert.InDelta(t, gauge("vllm:kv_cache_usage_perc"), r.Values[KVCache], 1e-12)
	assert.InEpsilon(t, mean("vllm:time_to_first_token_seconds"), r.Values[TTFT], 1e-9)
	assert.InEpsilon(t, mean("vllm:inter_token_latency_seconds"), r.Values[ITL], 1e-9)
	assert.InEpsilon(t, mean("vllm:e2e_request_latency_seconds"), r.Values[E2E], 1e-9)
	assert.InEpsilon(t, rate("vllm:generation_tokens_total"), r.Values[Tokens], 1e-9)
	assert.InEpsilon(t, rate("vllm:prompt_tokens_total"), r.Values[Prompts], 1e-9)
}

// virtual runs a session on hosts that are in the process, in virtual time: do is called after
// each interval with the number of intervals, until it returns false.
func virtual(t *testing.T, hosts func(*network.Network), addresses []string, do func(n int, s *Session, at *network.Network) bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		at := network.New()
		hosts(at)
		client := confighttp.NewDefaultClientConfig()
		client.Timeout = 5 * time.Second
		client.Middlewares = []configmiddleware.Config{{ID: network.ID}}
		plan, err := OfAddresses(addresses, &client, Times{})
		require.NoError(t, err)
		s := NewSession(plan, NewLog())
		require.NoError(t, s.Start(t.Context(), at))
		// Scrapes are at whole intervals and looked at in the middle of them.
		time.Sleep(plan.Interval / 2)
		for n := 1; ; n++ {
			synctest.Wait()
			if !do(n, s, at) {
				break
			}
			time.Sleep(plan.Interval)
		}
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// tableOf has the worst row first.
func tableOf(s *Session) *Table {
	table := s.Table(true)
	Sort(table.Rows, Order{})
	return table
}

func TestEachNumberOfARowIsThatOfTheBodies(t *testing.T) {
	server := &recorded{}
	virtual(t, func(at *network.Network) {
		server.Handler = simulated(t, 16, vllmsim.Config{Engines: 2})
		at.Put("vllm-0:8000", server)
	}, []string{"http://vllm-0:8000"}, func(n int, s *Session, _ *network.Network) bool {
		table, bodies := tableOf(s), server.answers()
		require.Len(t, bodies, n)
		if n == 1 {
			require.Len(t, table.Rows, 2)
			assert.Contains(t, table.Remark(), "need two scrapes")
			assert.Equal(t, "-", table.Rows[0].cell(ByTTFT, table.At))
			assert.Equal(t, "rates need two scrapes", table.Rows[0].Why())
			return true
		}
		oldest := max(1, n-scrapesPerWindow)
		require.Len(t, table.Rows, 2)
		for i := range table.Rows {
			r := &table.Rows[i]
			agree(t, r, bodies[oldest-1], bodies[n-1], 5*float64(n-oldest))
			assert.Equal(t, "0.20.0", r.Version)
			assert.Len(t, r.Details.Quantiles[QuantilesTTFT], 3)
			assert.Equal(t, "vllm-0:8000 #"+r.Engine, r.Name())
		}
		assert.NotEmpty(t, table.Rows[0].Details.Defects.Sure)
		return n < 12
	})
}

func TestSlowStepsAreReportedWithTheirCause(t *testing.T) {
	const from, until = 200 * time.Second, 400 * time.Second
	var reported, ended int
	virtual(t, func(at *network.Network) {
		at.Put("slow:8000", simulated(t, 8, vllmsim.Config{}, slow(from, until)...))
		at.Put("well:8000", simulated(t, 8, vllmsim.Config{}))
	}, []string{"http://well:8000", "http://slow:8000"}, func(n int, s *Session, _ *network.Network) bool {
		table := tableOf(s)
		require.LessOrEqual(t, len(table.Rows), 2)
		for i := range table.Rows {
			if r := &table.Rows[i]; r.Address == "well:8000" {
				assert.Less(t, r.Severity, NeedsAction, "%d: %s", n, r.Verdict.String())
			}
		}
		worst := &table.Rows[0]
		switch {
		case reported == 0 && worst.Severity >= NeedsAction:
			reported = 5 * n
			assert.Equal(t, "slow:8000", worst.Address)
			assert.Equal(t, "degraded: slow_steps", worst.Verdict.String())
			assert.Contains(t, strings.Join(worst.Evidence(), "\n"), "step_time_factor ")
			assert.Contains(t, strings.Join(worst.Evidence(), "\n"), "(usual ")
			assert.Contains(t, worst.Details.Sentence, "The engine itself is slower", "from the line of the log")
		case reported > 0 && ended == 0 && worst.Severity == 0:
			ended = 5 * n
			for _, r := range table.Rows {
				if r.Address != "slow:8000" {
					continue
				}
				var seen []string
				for _, change := range r.Details.History {
					seen = append(seen, strings.TrimSuffix(change.Condition+" "+change.Cause, " "))
				}
				assert.Contains(t, strings.Join(seen, ", "), "healthy, degraded slow_steps, healthy")
			}
		}
		return ended == 0 && n < 200
	})
	assert.Greater(t, reported, int(from.Seconds()))
	assert.Less(t, reported, int(from.Seconds())+90, "three windows of 15 s and more")
	assert.Greater(t, ended, int(until.Seconds()))
}

func TestAServerThatVanishesAndReturns(t *testing.T) {
	var was []string
	virtual(t, func(at *network.Network) {
		at.Put("a:8000", simulated(t, 8, vllmsim.Config{}))
		at.Put("b:8000", simulated(t, 8, vllmsim.Config{}))
	}, []string{"http://a:8000", "http://b:8000"}, func(n int, s *Session, at *network.Network) bool {
		table := tableOf(s)
		for i := range table.Rows {
			r := &table.Rows[i]
			switch {
			case r.Address == "b:8000":
				assert.Empty(t, r.Unread)
				assert.Less(t, r.Severity, NeedsAction)
			case n >= 23 && n <= 29:
				assert.Equal(t, "unreachable", r.Condition, n)
				assert.Contains(t, r.Unread, "connection refused", "the sentence of the receiver")
				assert.Equal(t, "refused", r.UnreadKind)
				assert.Equal(t, "-", r.cell(ByRunning, table.At))
				assert.Equal(t, 1, table.Failing)
				was = append(was, r.UnreadSince.Format(time.TimeOnly))
			case n >= 35:
				assert.Empty(t, r.Unread)
				assert.Less(t, r.Severity, NeedsAction)
				assert.NotEqual(t, "-", r.cell(ByTTFT, table.At))
			}
		}
		switch n {
		case 20:
			at.Put("a:8000", nil)
		case 30:
			at.Put("a:8000", simulated(t, 8, vllmsim.Config{}))
		}
		return n < 40
	})
	require.NotEmpty(t, was)
	for _, since := range was {
		assert.Equal(t, was[0], since, "since the first failure and not the last")
	}
}

func TestAConfigurationWithAPoolHasARowForIt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
receivers:
  vllm/chat:
    collection_interval: 5s
    naming: wire
    middlewares: [{id: simulated_network}]
    targets: [{endpoint: "http://a:8000"}, {endpoint: "http://b:8000"}]
    metrics: {vllm.up: {enabled: false}}
processors:
  vllm:
    window: 20s
    pool: {interval: 5s}
    storage: file_storage
exporters: {debug: {}}
extensions: {file_storage: {directory: /nowhere}}
service:
  extensions: [file_storage]
  pipelines: {metrics: {receivers: [vllm/chat], processors: [vllm], exporters: [debug]}}
`), 0o600))
	synctest.Test(t, func(t *testing.T) {
		at := network.New()
		at.Put("a:8000", simulated(t, 8, vllmsim.Config{}))
		at.Put("b:8000", simulated(t, 8, vllmsim.Config{}))
		read, err := configfile.Read(t.Context(), file)
		require.NoError(t, err)
		require.Empty(t, read.Problems)
		plan, err := OfFile(read, Times{})
		require.NoError(t, err)
		assert.Equal(t, 20*time.Second, plan.Window)
		assert.Equal(t, 5*time.Second, plan.Interval)
		assert.Equal(t, 2, plan.Targets)
		assert.Contains(t, strings.Join(plan.Notes, " "), "the collector keeps its storage")
		s := NewSession(plan, NewLog())
		require.NoError(t, s.Start(t.Context(), at))
		require.NoError(t, s.Wait(t.Context(), plan.TwoScrapes(), (*Table).Scraped))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		table := s.Table(true)
		assert.Equal(t, 1, table.Pools)
		require.Len(t, table.Rows, 3)
		Sort(table.Rows, Order{By: ByServer})
		pool := &table.Rows[0]
		assert.Contains(t, pool.Name(), "pool meta-llama/Llama-3.1-8B-Instruct")
		assert.Equal(t, "healthy", pool.Condition)
		assert.Equal(t, 2, pool.Replicas)
		assert.InDelta(t, table.Rows[1].Values[Running]+table.Rows[2].Values[Running], pool.Values[Running], 4, "scrapes are not at the same moment")
		assert.NotEmpty(t, s.Log())
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestShutdownWithoutStartAndTwice(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	client := confighttp.NewDefaultClientConfig()
	plan, err := OfAddresses([]string{"http://127.0.0.1:1"}, &client, Times{})
	require.NoError(t, err)
	s := NewSession(plan, NewLog())
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, s.Shutdown(t.Context()))
	require.NoError(t, s.Shutdown(t.Context()))
}

func TestASessionThatCannotStartLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	client := confighttp.NewDefaultClientConfig()
	client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewID("missing")})
	plan, err := OfAddresses([]string{"http://127.0.0.1:1", "https://127.0.0.1:2"}, &client, Times{})
	require.NoError(t, err)
	s := NewSession(plan, NewLog())
	err = s.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "the receiver vllm: ")
	require.ErrorContains(t, err, `the extension "missing" does not run`)
}

func TestWaitWaitsForServersThatDoNotAnswerYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := network.New()
		at.Put("a:8000", simulated(t, 8, vllmsim.Config{}))
		at.Put("hangs:8000", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}))
		client := confighttp.NewDefaultClientConfig()
		client.Timeout = 5 * time.Second
		client.Middlewares = []configmiddleware.Config{{ID: network.ID}}
		plan, err := OfAddresses([]string{"http://a:8000", "http://hangs:8000"}, &client, Times{})
		require.NoError(t, err)
		s := NewSession(plan, NewLog())
		require.NoError(t, s.Start(t.Context(), at))
		require.NoError(t, s.Wait(t.Context(), plan.TwoScrapes(), (*Table).Scraped))
		table := s.Table(false)
		assert.Equal(t, 2, table.Servers)
		assert.Equal(t, 1, table.Failing)
		assert.GreaterOrEqual(t, table.Scrapes, 2, "within the limit")
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

// The oracle is the load: requests come four times as fast as the server can answer them.
func TestJudgedTablesHaveTheProblemThatAServerHasHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := network.New()
		at.Put("well:8000", simulated(t, 8, vllmsim.Config{}))
		at.Put("slow:8000", simulated(t, 60, vllmsim.Config{}))
		client := confighttp.NewDefaultClientConfig()
		client.Middlewares = []configmiddleware.Config{{ID: network.ID}}
		plan, err := OfAddresses([]string{"http://well:8000", "http://slow:8000", "http://down:8000"}, &client, Times{})
		require.NoError(t, err)
		s := NewSession(plan, NewLog())
		require.NoError(t, s.Start(t.Context(), at))
		require.NoError(t, s.Wait(t.Context(), plan.Verdicts(), (*Table).Scraped))
		table := s.Table(false)
		assert.Equal(t, 2, table.Early, "two scrapes are not enough")
		for _, r := range table.Rows {
			switch {
			case r.Unread != "":
				assert.Zero(t, r.Early, "this is known at once")
			default:
				assert.Equal(t, "problems show after 35s", r.Why())
				e := r.document()
				assert.True(t, e.Early)
			}
		}
		began := time.Now()
		require.NoError(t, s.Wait(t.Context(), plan.Verdicts(), (*Table).Judged))
		assert.Less(t, time.Since(began), plan.Verdicts(), "it ends before its limit")
		table = s.Table(false)
		assert.Zero(t, table.Early)
		for _, r := range table.Rows {
			assert.Equal(t, map[string]string{"well:8000": "healthy", "slow:8000": "degraded", "down:8000": "unreachable"}[r.Address], r.Condition)
		}
		require.NoError(t, s.Shutdown(t.Context()))
	})
}

func TestWaitEndsWithItsContextAndAtItsLimit(t *testing.T) {
	client := confighttp.NewDefaultClientConfig()
	plan, err := OfAddresses([]string{"http://127.0.0.1:1"}, &client, Times{})
	require.NoError(t, err)
	s := NewSession(plan, NewLog())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Wait(ctx, time.Hour, (*Table).Scraped), context.Canceled)
	require.NoError(t, s.Wait(t.Context(), time.Millisecond, (*Table).Scraped))
}
