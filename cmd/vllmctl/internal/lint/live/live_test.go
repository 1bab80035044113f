package live

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// body is the text of a server with two engines, written for this test.
const body = `# HELP vllm:num_requests_running Requests.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama"} 1.0
vllm:num_requests_running{engine="1",model_name="llama"} 0.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="llama"} 0.5
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="llama"} 3.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="llama"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0",model_name="llama"} 1.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="llama"} 1.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="llama"} 0.2
vllm:time_to_first_token_seconds_count{engine="0",model_name="llama"} 1.0
# TYPE vllm:nixl_num_failed_transfers_total counter
# TYPE vllm:something_new gauge
vllm:something_new{engine="0"} 1.0
# TYPE http_requests_total counter
http_requests_total{handler="/v1",method="POST",status="2xx"} 1.0`

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

func vllm(t *testing.T, text, kind, version string) string {
	t.Helper()
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write([]byte(text))
		case "/version":
			if version == "" {
				http.NotFound(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"version": version})
		default:
			http.NotFound(w, r)
		}
	})
}

var client = &http.Client{Timeout: 5 * time.Second}

func found(t *testing.T, from Source, expr string, spelling querylint.Spelling) []string {
	t.Helper()
	r, err := Check(t.Context(), from, expr, spelling, []string{"team"})
	require.NoError(t, err)
	var all []string
	for _, f := range r.Findings {
		assert.Regexp(t, `^[A-Z].*\.$`, f.Message)
		all = append(all, fmt.Sprintf("%s %s", f.Severity, f.Code))
	}
	return all
}

func TestExpressionsAreComparedWithAServer(t *testing.T) {
	s, err := ReadServers(t.Context(), client, []string{vllm(t, body, "text/plain; version=0.0.4; charset=utf-8", "0.20.0")})
	require.NoError(t, err)
	assert.Equal(t, "0.20.0", s.Version())
	for _, c := range []struct {
		expr     string
		spelling querylint.Spelling
		want     []string
	}{
		{`vllm:num_requests_running{job="a", pod=~"b.*", team="c"}`, querylint.Wire, nil},
		{`ray_vllm_num_requests_running`, querylint.Wire, nil},
		{`vllm_num_requests_running`, querylint.Suffixed, nil},
		{`{"vllm.kv_cache.utilization"}`, querylint.Dotted, nil},
		{`vllm_kv_cache_utilization_ratio{model_name="llama"}`, querylint.Suffixed, nil},
		{`vllm_slo_burn_rate_ratio`, querylint.Suffixed, nil}, // No server has it.
		{`node_load1`, querylint.Wire, nil},
		{`vllm:num_requests_running{model_name="$model"}`, querylint.Wire, nil},
		{`vllm:gpu_cache_usage_perc`, querylint.Wire, []string{"error not-exposed"}},
		{`vllm:num_requests_swapped`, querylint.Wire, []string{"error not-exposed"}},
		{`vllm:kv_block_lifetime_seconds_count`, querylint.Wire, []string{"warning not-exposed"}},
		{`rate(vllm:nixl_num_failed_transfers_total[5m])`, querylint.Wire, []string{"info not-exposed"}},
		{`rate(vllm:mm_cache_hits_total[5m])`, querylint.Wire, []string{"error not-exposed"}},
		{`vllm:num_requests_running{model="llama"}`, querylint.Wire, []string{"error label-absent"}},
		{`vllm:num_requests_running{model_name="qwen"}`, querylint.Wire, []string{"warning value-absent"}},
		{`vllm:num_requests_running{model_name=~"lla.*"}`, querylint.Wire, nil},
		{`vllm:num_requests_running{model_name!="qwen", model!="x"}`, querylint.Wire, nil},
		{`rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m])`, querylint.Wire, []string{"error bound-absent"}},
		{`rate(vllm:time_to_first_token_seconds_bucket{le="1"}[5m])`, querylint.Wire, nil}, // How it is stored is not known.
		{`rate(vllm:time_to_first_token_seconds_bucket{le="x"}[5m])`, querylint.Wire, []string{"error bound-absent"}},
		{`vllm:something_new`, querylint.Wire, nil},
		{`sum(`, querylint.Wire, nil},
	} {
		assert.Equal(t, c.want, found(t, s, c.expr, c.spelling), c.expr)
	}
	r, err := Check(t.Context(), s, `vllm:gpu_cache_usage_perc`, querylint.Wire, nil)
	require.NoError(t, err)
	assert.Contains(t, r.Findings[0].Message, "vLLM 0.20.0 has it as vllm:kv_cache_usage_perc")
}

// What the catalogue does not know or calls removed, but is there, is no mistake.
func TestWhatIsThereRefutesTheCatalogue(t *testing.T) {
	text := body + "\nvllm:gpu_cache_usage_perc{engine=\"0\",extra=\"x\"} 0.1\n"
	s, err := ReadServers(t.Context(), client, []string{vllm(t, text, "text/plain", "")})
	require.NoError(t, err)
	l := querylint.New(querylint.Options{Spelling: querylint.Wire})
	for _, expr := range []string{`vllm:something_new`, `vllm:gpu_cache_usage_perc{extra="x"}`} {
		static := l.Expr(expr, querylint.Context{Kind: querylint.Panel})
		require.NotEmpty(t, static, expr)
		r, err := Check(t.Context(), s, expr, querylint.Wire, nil)
		require.NoError(t, err)
		assert.Empty(t, r.Merge(static), expr)
	}
	static := l.Expr(`vllm:no_such_thing`, querylint.Context{Kind: querylint.Panel})
	r, err := Check(t.Context(), s, `vllm:no_such_thing`, querylint.Wire, nil)
	require.NoError(t, err)
	assert.Len(t, r.Merge(static), 1, "the same mistake is reported once")
}

func TestOpenMetricsOfTheRustFrontEndIsRead(t *testing.T) {
	text := "# TYPE vllm:prompt_tokens counter\nvllm:prompt_tokens_total{model_name=\"a\",engine=\"0\"} 5\n# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"a\"} 1\n# EOF\n"
	s, err := ReadServers(t.Context(), client, []string{vllm(t, text, "application/openmetrics-text; version=1.0.0; charset=utf-8", "")})
	require.NoError(t, err)
	assert.Nil(t, found(t, s, `rate(vllm:prompt_tokens_total[5m])`, querylint.Wire))
}

func TestServersThatCannotBeReadAreNamed(t *testing.T) {
	good := vllm(t, body, "text/plain", "0.20.0")
	endless := serve(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat("# x\n", 4096))); err != nil {
				return
			}
		}
	})
	slow := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(10 * time.Second):
		}
	})
	quick := &http.Client{Timeout: time.Second}
	for name, c := range map[string]struct{ address, message string }{
		"no address":     {"localhost:8000", "http://"},
		"nobody listens": {"http://127.0.0.1:1", "cannot be read"},
		"not found":      {vllm(t, body, "text/plain", "") + "/nothing", "404"},
		"HTML":           {vllm(t, "<html>", "text/html", ""), "a web page and not metrics; check the address"},
		"JSON":           {vllm(t, `{"status":"error"}`, "application/json", ""), "--prometheus"},
		"binary":         {vllm(t, "\x00\x01\xff\n", "text/plain", ""), "no metrics"},
		"empty":          {vllm(t, "", "text/plain", ""), "no metrics"},
		"slow":           {slow, "cannot be read"},
		"endless":        {endless, "answer"},
	} {
		begin := time.Now()
		_, err := ReadServers(t.Context(), quick, []string{good, c.address})
		if assert.Error(t, err, name) {
			assert.Contains(t, err.Error(), c.message, name)
			assert.Contains(t, err.Error(), c.address, name)
			assert.NotContains(t, err.Error(), good, name)
		}
		assert.Less(t, time.Since(begin), 8*time.Second, name)
	}
}

func TestManyNamesAndValuesAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range maxValues + 10 {
		fmt.Fprintf(&text, "vllm:num_requests_running{model_name=\"m%d\"} 1\n", i)
	}
	for i := range 2 * maxNames {
		fmt.Fprintf(&text, "x_%d 1\n", i)
	}
	s, err := ReadServers(t.Context(), client, []string{vllm(t, text.String(), "text/plain", "")})
	require.NoError(t, err)
	assert.LessOrEqual(t, len(s.metrics), maxNames)
	assert.Nil(t, found(t, s, `vllm:num_requests_running{model_name="m99999"}`, querylint.Wire), "a list that is not whole proves nothing")
}

// api is a small Prometheus: labels and their values of some series.
func api(t *testing.T, series []map[string]string) string {
	t.Helper()
	name := regexp.MustCompile(`__name__="([^"]+)"`)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		wanted := r.URL.Query().Get("match[]")
		if found := name.FindStringSubmatch(wanted); found != nil {
			wanted = found[1]
		}
		path := strings.TrimPrefix(r.URL.Path, "/prometheus/api/v1/")
		values := map[string]bool{}
		for _, s := range series {
			if s["__name__"] != wanted {
				continue
			}
			for label, value := range s {
				if path == "labels" {
					values[label] = true
				} else if rest, _ := url.PathUnescape(path); rest == "label/"+label+"/values" {
					values[value] = true
				}
			}
		}
		list := []string{}
		for v := range values {
			list = append(list, v)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": list})
	})
}

func TestExpressionsAreComparedWithAPrometheus(t *testing.T) {
	address := api(t, []map[string]string{
		{"__name__": "vllm:num_requests_running", "job": "a", "instance": "x", "model_name": "llama"},
		{"__name__": "vllm:num_requests_running", "job": "router", "instance": "r", "server": "http://x"},
		{"__name__": "vllm:time_to_first_token_seconds_bucket", "job": "a", "le": "1"},
		{"__name__": "vllm:time_to_first_token_seconds_bucket", "job": "a", "le": "2.5"},
	})
	p, err := NewPrometheus(client, address+"/prometheus/", time.Unix(1_800_000_000, 0))
	require.NoError(t, err)
	require.NoError(t, p.Reach(t.Context()))
	for expr, want := range map[string][]string{
		`vllm:num_requests_running{job="a"}`:                              {"warning double-count"},
		`vllm:num_requests_running{server=""}`:                            nil,
		`vllm:num_requests_running{server="", namespace="x"}`:             {"error label-absent"},
		`vllm:num_requests_running{server="", job="b"}`:                   {"warning value-absent"},
		`vllm:num_requests_waiting`:                                       {"error not-exposed"},
		`vllm_slo_burn_rate_ratio`:                                        {"error not-exposed"},
		`rate(vllm:time_to_first_token_seconds_bucket{le="1.0"}[5m])`:     {"error bound-absent"},
		`rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m])`:     nil,
		`rate(vllm:time_to_first_token_seconds_bucket{le=~"1(.0)?"}[5m])`: nil,
		`node_load1`: nil,
	} {
		assert.Equal(t, want, found(t, p, expr, querylint.Wire), expr)
	}
	before := p.queries
	found(t, p, `vllm:num_requests_running{job="a"}`, querylint.Wire)
	assert.Equal(t, before, p.queries, "the answers are kept")
}

func TestAPrometheusThatDoesNotAnswerIsAnError(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"an error of the API": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"error","error":"no org id"}`))
		},
		"a reason": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = w.Write([]byte(`{"status":"error","error":"too many series"}`))
		},
		"another program": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) },
		"not allowed":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"a huge answer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"status":"success","data":["` + strings.Repeat("a", maxAnswer) + `"]}`))
		},
	} {
		p, err := NewPrometheus(client, serve(t, handler), time.Now())
		require.NoError(t, err)
		err = p.Reach(t.Context())
		require.Error(t, err, name)
		switch name {
		case "a reason":
			require.ErrorContains(t, err, "422 Unprocessable Entity: too many series")
		case "not allowed":
			require.ErrorContains(t, err, "--token-file")
		}
		if name == "a huge answer" {
			require.ErrorContains(t, err, "larger than 16 MiB")
		}
		_, err = Check(t.Context(), p, `vllm:num_requests_running`, querylint.Wire, nil)
		assert.Error(t, err, name)
	}
	_, err := NewPrometheus(client, "prometheus:9090", time.Now())
	assert.Error(t, err)
	p, err := NewPrometheus(client, api(t, nil)+"/prometheus", time.Now())
	require.NoError(t, err)
	p.queries = maxQueries
	_, err = p.Metric(context.Background(), "vllm:num_requests_running", nil)
	assert.ErrorContains(t, err, "queries")
}

// A server with one line that is wrong is read but for that line, and what stands in it is not said to be
// missing.
func TestOneWrongLineDoesNotHideTheOthers(t *testing.T) {
	for name, text := range map[string]string{
		"a type that does not exist": "# TYPE vllm:num_requests_waiting gauges\nvllm:num_requests_waiting{model_name=\"a\"} 1\n# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total{model_name=\"a\"} 5\n",
		"a type that is missing":     "# TYPE vllm:num_requests_waiting\nvllm:num_requests_waiting{model_name=\"a\"} 1\nvllm:prompt_tokens_total{model_name=\"a\"} 5\n",
		"a value that is none":       "# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{model_name=\"a\"} one\nvllm:prompt_tokens_total{model_name=\"a\"} 5\n",
		"half a line at the end":     "vllm:prompt_tokens_total{model_name=\"a\"} 5\nvllm:num_requests_waiting{model_na",
	} {
		s, err := ReadServers(t.Context(), client, []string{vllm(t, text, "text/plain", "")})
		require.NoError(t, err, name)
		for _, metric := range []string{"vllm:num_requests_waiting", "vllm:prompt_tokens_total"} {
			m, err := s.Metric(t.Context(), metric, nil)
			require.NoError(t, err)
			assert.NotNil(t, m, "%s: %s", name, metric)
		}
		m, _ := s.Metric(t.Context(), "vllm:prompt_tokens_total", nil)
		assert.Equal(t, map[string][]string{"model_name": {"a"}}, m.Labels, name)
		m, _ = s.Metric(t.Context(), "vllm:num_requests_running", nil)
		assert.Nil(t, m, name)
	}
	_, err := ReadServers(t.Context(), client, []string{vllm(t, "this is\nno text of metrics\n", "text/plain", "")})
	assert.ErrorContains(t, err, "cannot be read")
}

// An address can have secrets in several places. All of them are sent, and none is shown.
func TestAnAddressIsShownWithoutSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"http://u:hunter2@h:1/a?token=hunter2#hunter2": "http://h:1/a",
		"https://hunter2@h/":                           "https://h/",
		"http://h?hunter2":                             "http://h",
	} {
		assert.Equal(t, want, Shown(address))
	}
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("token") + r.URL.Query().Get("match[]")
		_, _ = w.Write([]byte(`{"status":"success","data":[]}`))
	}))
	t.Cleanup(server.Close)
	p, err := NewPrometheus(client, server.URL+"/api/v1?token=hunter2", time.Unix(1e9, 0))
	require.NoError(t, err)
	require.NoError(t, p.Reach(t.Context()))
	assert.Equal(t, "hunter2up", asked)
	assert.NotContains(t, p.Where(), "hunter2")
}

// The router's names are not those of a server, and one of them can be absent without being wrong.
func TestTheRoutersNamesAreNotComparedWithAServer(t *testing.T) {
	s, err := ReadServers(t.Context(), client, []string{vllm(t, "vllm:prompt_tokens_total 5\n", "text/plain", "")})
	require.NoError(t, err)
	for _, expr := range []string{"vllm:current_qps", "vllm_router_num_requests_running", "rate(vllm:request_errors_total[5m])"} {
		r, err := Check(t.Context(), s, expr, querylint.Wire, nil)
		require.NoError(t, err)
		assert.Empty(t, r.Findings, expr)
	}
}
