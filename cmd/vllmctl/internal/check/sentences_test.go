package check_test

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// said returns the sentences of the findings of a code, with their details.
func said(report *check.Report, code string) string {
	var out []string
	for _, f := range all(report) {
		if f.Code == code {
			out = append(append(out, f.What), f.Details...)
		}
	}
	return strings.Join(out, "\n")
}

func TestATimeoutNamesTheStepThatDidNotEnd(t *testing.T) {
	t.Parallel()
	hold := func(answer string) string {
		return raw(t, func(c net.Conn) {
			for {
				if _, err := c.Read(make([]byte, 4096)); err != nil {
					return
				}
				_, _ = c.Write([]byte(answer))
			}
		})
	}
	silent := hold("")
	for address, want := range map[string]string{
		silent: "accepted the connection and did not answer",
		strings.Replace(silent, "http:", "https:", 1):                                    "the TLS handshake did not end",
		hold("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; a=b\r\n\r\ndata: 1\n"): `started an answer of the type "text/event-stream" and did not finish it`,
	} {
		report := checked(t, configuration(t, "timeout: 300ms, endpoint: "+address, ""))
		assert.Contains(t, said(report, check.CodeTimeout), want)
		assert.Contains(t, said(report, check.CodeTimeout), "300ms")
	}
}

// All mistakes of both components are there, each as a sentence.
func TestAllMistakesOfAConfigurationAreSaid(t *testing.T) {
	t.Parallel()
	report := checked(t, configuration(t, "intervall: 15s, naming: no, endpoint: \"http://127.0.0.1:1\"", "windows: 1m, objectives: [{name: a, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9, models: [\"llama[(\"]}]"))
	for _, want := range []string{
		"receivers::vllm: intervall: is unknown; did you mean collection_interval.", `receivers::vllm: naming: "no" is unknown; write canonical or wire.`,
		"processors::vllm: windows: is unknown; did you mean window.", "the pattern \"llama[(\" has '[', and a pattern is not a regular expression: write * for any characters and ? for a single one.",
	} {
		assert.Contains(t, said(report, check.CodeConfigInvalid), want)
	}
}

func TestARefusedConnectionNamesTheProxyThatRefused(t *testing.T) {
	t.Parallel()
	report := checked(t, configuration(t, "proxy_url: \"http://user:hidden@127.0.0.1:1\", endpoint: \"http://127.0.0.2:8000\"", ""))
	assert.Contains(t, said(report, check.CodeRefused), "The proxy 127.0.0.1:1")
	assert.Equal(t, 1, strings.Count(said(report, check.CodeRefused), "127.0.0.1:1"), "once")
	assert.NotContains(t, said(report, check.CodeRefused), "hidden")
	report = checked(t, configuration(t, "endpoint: \"http://127.0.0.1:1\"", ""))
	assert.NotContains(t, said(report, check.CodeRefused), "proxy")

	report = checked(t, whole(t, "vllm", "otlphttp: {endpoint: \"http://127.0.0.2:4318\", proxy_url: \"http://user:hidden@127.0.0.1:1\"}", "otlphttp", ""))
	assert.Contains(t, said(report, check.CodeExporterRefused), "the proxy 127.0.0.1:1 refuses")
	report = checked(t, whole(t, "vllm", "otlphttp: {endpoint: \"http://127.0.0.1:1\"}", "otlphttp", ""))
	assert.NotContains(t, said(report, check.CodeExporterRefused), "proxy")
}

func TestAPlainRequestToAServerWithTLSSaysSo(t *testing.T) {
	t.Parallel()
	address, _ := secure(t, healthy(t), nil, nil)
	report := checked(t, configuration(t, "endpoint: "+strings.Replace(address, "https:", "http:", 1), ""))
	assert.Equal(t, "The server speaks TLS, and the request was plain HTTP.", said(report, check.CodeTLSNeeded))
}

func TestAForbiddenRequestWithoutCredentialsSaysSo(t *testing.T) {
	t.Parallel()
	report := checked(t, configuration(t, "endpoint: "+answers(t, http.StatusForbidden, "text/plain", "no"), ""))
	assert.Contains(t, said(report, check.CodeAuthForbidden), "without credentials")
	report = checked(t, configuration(t, "headers: {Authorization: a}, endpoint: "+answers(t, http.StatusForbidden, "text/plain", "no"), ""))
	assert.NotContains(t, said(report, check.CodeAuthForbidden), "without credentials")
}

// The families of another program say which program it is. Those of its client library do not.
func TestABodyOfAnotherProgramIsNamedByAFamily(t *testing.T) {
	t.Parallel()
	body := "# TYPE go_goroutines gauge\ngo_goroutines 1\n# TYPE node_load1 gauge\nnode_load1 1\n"
	report := checked(t, configuration(t, "endpoint: "+answers(t, http.StatusOK, text, body), ""))
	assert.Contains(t, said(report, check.CodeNotVLLM), "node_load1")
}

// The agent of Ray counts all prompt tokens under the last source, which is that of a transfer.
func TestARayAgentIsNotTakenForADecodeServer(t *testing.T) {
	t.Parallel()
	s := newSimulated(t, vllmsim.Config{Dialect: "ray-new"})
	require.Contains(t, s.bodies[0], `source="external_kv_transfer"`)
	report := checked(t, configuration(t, "endpoint: "+serve(t, s), ""))
	assert.Empty(t, said(report, check.CodeDecode))
}

// vLLM 0.10 shows the prefix cache under its old name too, which means another metric.
func TestAFamilyThatChangedItsMeaningIsNotCalledIdle(t *testing.T) {
	t.Parallel()
	for dialect, version := range map[string]string{"v1-multiproc": "0.10.2", "v1": "0.8.5"} {
		s := newSimulated(t, vllmsim.Config{Dialect: dialect, Version: version})
		require.Contains(t, s.bodies[0], "vllm:gpu_prefix_cache_hits_total{")
		report := checked(t, configuration(t, "endpoint: "+serve(t, s), ""))
		assert.NotContains(t, said(report, check.CodeMissingIdle), "prefix_cache.hits", version)
		assert.Contains(t, said(report, check.CodeMissingAge), "prefix_cache.hits", version)
	}
}

// What is advised must be possible: the Rust front end has no blocks to derive a capacity from.
func TestTheReasonsOfDerivedMetricsCanBeFollowed(t *testing.T) {
	t.Parallel()
	reasons := func(cfg vllmsim.Config) string {
		return said(checked(t, configuration(t, "endpoint: "+serve(t, newSimulated(t, cfg)), "")), check.CodeDerived)
	}
	blocks := reasons(vllmsim.Config{})
	assert.Contains(t, blocks, "capacity is not sent by the server (since vLLM 0.24.0); the setting `capacity_from_blocks` of the processor derives it")
	assert.Contains(t, blocks, "hit_ratio needs a KV connector (`--kv-transfer-config`), which is not in use")
	assert.NotContains(t, reasons(vllmsim.Config{Dialect: "rust", Version: "0.24.0"}), "capacity_from_blocks")
	assert.NotContains(t, reasons(vllmsim.Config{Dialect: "ray-old"}), "(removed in")
}

// What is said of a hang between two requests is what the server can show: its open files, where its body has
// them, and the requests that /load counts. A count above 0 shows it, so nothing has to be done.
func TestWhatShowsAHangBetweenRequestsIsSaid(t *testing.T) {
	t.Parallel()
	const files, zero, flag, canary = "process_open_fds (if", "if the server counts", "--enable-server-load-tracking", "canary: {interval: 15s, timeout: 15s}"
	several := vllmsim.Config{Dialect: "v1-multiproc", Version: "0.20.0"}
	for _, c := range []struct {
		name      string
		cfg       vllmsim.Config
		load      string
		says, not []string
	}{
		{"open files and a load of 0", vllmsim.Config{}, `{"server_load":0}`, []string{files, zero, flag, canary}, []string{"does not show"}},
		{"open files", vllmsim.Config{}, "", []string{files, canary}, []string{zero, flag, "does not show"}},
		{"a load of 0", several, `{"server_load":0}`, []string{zero, flag, canary}, []string{files, "does not show"}},
		{"nothing", several, "", []string{"does not show", canary}, []string{files, zero, flag}},
		{"a load that counts", vllmsim.Config{}, `{"server_load":2}`, nil, []string{files, zero, flag, canary}},
		{"an agent of Ray, which has no requests", vllmsim.Config{Dialect: "ray-new"}, "", nil, []string{"hang"}},
	} {
		s := newSimulated(t, c.cfg)
		s.load = c.load
		report := checked(t, configuration(t, "endpoint: "+serve(t, s), ""))
		words := said(report, check.CodeHang)
		for _, part := range c.says {
			assert.Contains(t, words, part, c.name)
		}
		for _, part := range c.not {
			assert.NotContains(t, words, part, c.name)
		}
		assert.Equal(t, c.name == "a load that counts", slices.ContainsFunc(report.Targets[0].Passes, func(p check.Pass) bool {
			return strings.HasPrefix(p.Text, "/load counts")
		}), c.name)
		assert.Zero(t, report.Status, c.name)
	}
}

// Requests that ran at one of the two scrapes show that /load counts them. A dead server has one finding.
func TestAHangIsSaidOnceAndByBothScrapes(t *testing.T) {
	t.Parallel()
	busy, free := healthy(t), healthy(t)
	busy.load, free.load = `{"server_load":1}`, `{"server_load":0}`
	for _, order := range [][]*simulated{{busy, free}, {free, busy}} {
		report := checked(t, configuration(t, "endpoint: "+inTurns(t, order[0], order[1]), ""))
		assert.Empty(t, said(report, check.CodeHang))
	}
	dead := healthy(t)
	dead.health, dead.load = http.StatusServiceUnavailable, `{"server_load":0}`
	report := checked(t, configuration(t, "endpoint: "+serve(t, dead), ""))
	assert.NotEmpty(t, said(report, check.CodeUnhealthy))
	assert.Empty(t, said(report, check.CodeHang))
}

// The directory of a queue can be meant from where the collector runs.
func TestARelativeDirectoryOfAQueueIsShownAsAWhole(t *testing.T) {
	t.Parallel()
	report := checked(t, whole(t, "vllm", "otlphttp: {endpoint: "+backend(t, http.StatusOK)+", sending_queue: {storage: file_storage}}", "otlphttp",
		"extensions: {file_storage: {directory: ./none}}\n"))
	assert.Regexp(t, `directory \./none \(here /.*/none\) of`, said(report, check.CodeQueueDirectory))
}

func TestAVersionThatCannotBeReadIsNotBlamedOnAProxy(t *testing.T) {
	t.Parallel()
	s := healthy(t)
	report := checked(t, configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			_, _ = w.Write([]byte("hello"))
		case "/health":
			w.WriteHeader(http.StatusMethodNotAllowed)
		default:
			s.ServeHTTP(w, r)
		}
	})), ""))
	assert.Contains(t, said(report, check.CodeVersionNone), "the answer of /version is unreadable")
	assert.Empty(t, said(report, check.CodeUnhealthy), "the engine does not answer 4xx")
	assert.Less(t, report.Seconds, time.Minute.Seconds())
}
