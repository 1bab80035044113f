//go:build e2e

package backends

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// shrinking is a stand-in vLLM server whose time advances by seven seconds at every scrape.
// It also has a summary, and can leave out lines.
type shrinking struct {
	collector.Moving
	http *httptest.Server
	// instance is its host and port.
	instance string

	mu    sync.Mutex
	less  *regexp.Regexp
	reads int
}

func startShrinking(t *testing.T, model string) *shrinking {
	t.Helper()
	simulated, err := vllmsim.New(vllmsim.Config{Model: model, Engines: 2, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	simulated.Advance(5 * time.Minute)
	s := &shrinking{Moving: collector.Moving{Simulated: simulated, Step: betweenScrapes}}
	s.http = httptest.NewServer(s)
	t.Cleanup(s.http.Close)
	s.instance = strings.TrimPrefix(s.http.URL, "http://")
	return s
}

func (s *shrinking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		s.Moving.ServeHTTP(w, r)
		return
	}
	recorded := httptest.NewRecorder()
	s.Moving.ServeHTTP(recorded, r)
	body := recorded.Body.Bytes()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	body = fmt.Appendf(body, "# TYPE vllm:step_time summary\n"+
		"vllm:step_time{quantile=\"0.5\"} 0.1\nvllm:step_time{quantile=\"0.99\"} 0.2\nvllm:step_time_sum %d\nvllm:step_time_count %d\n", s.reads, s.reads*8)
	w.Header().Set("Content-Type", recorded.Header().Get("Content-Type"))
	for line := range bytes.Lines(body) {
		if s.less == nil || !s.less.Match(line) {
			_, _ = w.Write(line)
		}
	}
}

// leaveOut removes the lines that match from now on.
func (s *shrinking) leaveOut(pattern string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.less = regexp.MustCompile(pattern)
}

const endsReceivers = `
receivers:
  vllm: {collection_interval: 1s, timeout: 900ms, gen_ai: {enabled: true}, targets: [{endpoint: 'http://%s'}, {endpoint: 'http://%s'}, {endpoint: 'http://%s'}]}
processors:
  vllm: {window: 4500ms, max_staleness: 10s, pool: {interval: 1s}}
`

// A target that is down still has its state and its identity.
var ofTheTarget = regexp.MustCompile(`^(vllm_up|vllm_scrape_.*|target_info|vllm_(pool_)?diagnosis_.*)$`)

// After an end, queries return nothing for a server that stopped, for families that a
// server no longer has, for an engine that is gone, and for what the processor derives from
// them. Three readers confirm this: a real Prometheus behind the remote-write exporter,
// Prometheus's own translation of OTLP with its storage and its query engine, and contrib's
// translator for remote write.
func TestNothingAnswersAfterAnEnd(t *testing.T) {
	t.Parallel()
	_, addr := collector.Prometheus(t, "global: {scrape_interval: 1m}\n")
	otlp := startOTLP(t)
	nothingAnswers(t, fmt.Sprintf(`
  prometheus_remote_write: {endpoint: 'http://%s/api/v1/write', max_batch_request_parallelism: 1, target_info: {enabled: true}}
  otlp_http: {endpoint: '%s'}
`, addr, otlp.url), []reader{
		server(t, "remote write", addr),
		{"OTLP", func(query string) []string { return otlp.names(t, query, time.Now()) }},
		{"contrib's translator", otlp.translated},
	})
}

// The same holds for real servers of the newest versions, which get the series by each protocol or scrape them.
func TestRealServersAnswerNothingAfterAnEnd(t *testing.T) {
	t.Parallel()
	page := collector.FreeAddr(t)
	_, scraping := collector.Newest(t, fmt.Sprintf("scrape_configs: [{job_name: c, honor_labels: true, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n", page))
	exporters, readers := fmt.Sprintf("  prometheus: {endpoint: '%s'}\n", page), []reader{server(t, "scrape", scraping)}
	for _, w := range ways {
		if w.strategy == otlptranslator.UnderscoreEscapingWithSuffixes && w.name != "victoria_otlp" {
			addr, exporter := w.start(t, "")
			exporters += exporter
			readers = append(readers, server(t, w.name, addr))
		}
	}
	nothingAnswers(t, exporters, readers)
}

// server reads what a server has now.
func server(t *testing.T, name, addr string) reader {
	t.Helper()
	return reader{name, func(query string) []string { return namesIn(ask(t, addr, query, time.Now(), time.Now())) }}
}

func nothingAnswers(t *testing.T, exporters string, readers []reader) {
	t.Helper()
	away, families, engines := startShrinking(t, "away"), startShrinking(t, "families"), startShrinking(t, "engines")
	c := sending(t, fmt.Sprintf(endsReceivers, away.instance, families.instance, engines.instance), exporters, "vllm")
	// What must end, by a query. A name of each form must be present before.
	ends := []struct {
		what, query string
		before      []string
		// rest are names that stay.
		rest *regexp.Regexp
	}{
		{"a server that went away", fmt.Sprintf(`{instance=%q}`, away.instance), []string{
			"vllm_num_requests_running", "vllm_prompt_tokens_total", "vllm_time_to_first_token_seconds_bucket", "vllm_time_to_first_token_seconds_sum",
			"vllm_time_to_first_token_seconds_count", "vllm_step_time", "vllm_step_time_sum", "vllm_step_time_count",
			"vllm_prompt_throughput_per_second", "vllm_time_to_first_token_quantile_seconds", "vllm_prefix_cache_hit_ratio",
			"gen_ai_server_time_to_first_token_seconds_bucket",
		}, ofTheTarget},
		{"the pool of a server that went away", `{model_name="away",__name__=~"vllm_pool_.*"}`, []string{
			"vllm_pool_prompt_throughput_per_second", "vllm_pool_time_to_first_token_quantile_seconds",
		}, ofTheTarget},
		{"a histogram", fmt.Sprintf(`{instance=%q,__name__=~"vllm_time_to_first_token_(seconds_.*|quantile_.*)"}`, families.instance), []string{
			"vllm_time_to_first_token_seconds_bucket", "vllm_time_to_first_token_seconds_sum", "vllm_time_to_first_token_seconds_count",
			"vllm_time_to_first_token_quantile_seconds",
		}, nil},
		{"a summary", fmt.Sprintf(`{instance=%q,__name__=~"vllm_step_time.*"}`, families.instance), []string{
			"vllm_step_time", "vllm_step_time_sum", "vllm_step_time_count",
		}, nil},
		{"an engine", fmt.Sprintf(`{instance=%q,engine="1"}`, engines.instance), []string{
			"vllm_num_requests_running", "vllm_prompt_tokens_total", "vllm_time_to_first_token_seconds_bucket", "vllm_prompt_throughput_per_second",
		}, ofTheTarget},
	}
	for _, r := range readers {
		for _, e := range ends {
			c.WaitFor(t, e.what+" before its end, for "+r.name, func() bool {
				there := r.names(e.query)
				return !slices.ContainsFunc(e.before, func(name string) bool { return !slices.Contains(there, name) })
			})
		}
	}

	away.http.CloseClientConnections()
	away.http.Close()
	families.leaveOut(`^vllm:(time_to_first_token_seconds|step_time)|^# .* vllm:(time_to_first_token_seconds|step_time)`)
	engines.leaveOut(`engine="1"`)
	until := time.Now().Add(25 * time.Second)
	left := func(r reader, query string, rest *regexp.Regexp) []string {
		return slices.DeleteFunc(r.names(query), func(name string) bool { return rest != nil && rest.MatchString(name) })
	}
	// After some more scrapes no series may have returned.
	for _, r := range append(readers, readers...) {
		if r.name == readers[0].name {
			time.Sleep(2 * time.Second)
		}
		for _, e := range ends {
			for len(left(r, e.query, e.rest)) > 0 && time.Now().Before(until) {
				time.Sleep(100 * time.Millisecond)
			}
			assert.Empty(t, left(r, e.query, e.rest), "%s: %s still answers", r.name, e.what)
		}
		// What did not end is still present.
		for _, s := range []*shrinking{families, engines} {
			for _, name := range []string{"vllm_num_requests_running", "vllm_prompt_throughput_per_second", "vllm_e2e_request_latency_seconds_bucket"} {
				assert.Contains(t, r.names(fmt.Sprintf(`{instance=%q,engine="0"}`, s.instance)), name, "%s", r.name)
			}
		}
	}
	c.Stop(t)
}

// reader answers which names of metrics a query finds now.
type reader struct {
	name  string
	names func(query string) []string
}

var named = regexp.MustCompile(`__name__:(\S+?)[ \]]`)

// namesIn returns the names of the metrics in an answer.
func namesIn(a answer) []string {
	found := map[string]bool{}
	for series := range a {
		if name := named.FindStringSubmatch(series); name != nil {
			found[name[1]] = true
		}
	}
	return sorted(found)
}
