//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const statusConfig = `
extensions:
  health_check:
    http: {endpoint: '%[1]s', status: {enabled: true, path: /status}}
    component_health: {include_recoverable_errors: true, recovery_duration: 1ms}
receivers:
  vllm:
    collection_interval: 500ms
    timeout: 500ms
    initial_delay: 0s
    targets: [{endpoint: 'http://%[2]s'}, {endpoint: 'http://%[3]s'}]
exporters:
  file: {path: %[4]s}
service:
  extensions: [health_check]
  telemetry: {metrics: {level: none}}
  pipelines:
    metrics: {receivers: [vllm], exporters: [file]}
`

// componentStatus is what the health check extension reports for a component.
type componentStatus struct {
	Status     string
	Error      string
	Components map[string]componentStatus
}

// serveAt is a vLLM server at an address.
func serveAt(t *testing.T, address string) *httptest.Server {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 1\n"))
	}))
	require.NoError(t, s.Listener.Close())
	s.Listener = listener
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// The health check extension reports a recoverable error while no target can be
// scraped, and not while one of two can.
func TestTheHealthCheckKnowsWhenNoTargetCanBeScraped(t *testing.T) {
	t.Parallel()
	health, first, second := collector.FreeAddr(t), collector.FreeAddr(t), collector.FreeAddr(t)
	one, two := serveAt(t, first), serveAt(t, second)
	dir := t.TempDir()
	file := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, statusConfig, health, first, second, filepath.Join(dir, "out.json")), 0o600))
	c := collector.Start(t, nil, collector.Binary(t), "--config", file,
		"--feature-gates=+extension.healthcheck.useComponentStatus")
	receiver := func() (componentStatus, int) {
		response, err := http.Get("http://" + health + "/status?verbose")
		if err != nil {
			return componentStatus{}, 0
		}
		defer func() { _ = response.Body.Close() }()
		var all componentStatus
		if json.NewDecoder(response.Body).Decode(&all) != nil {
			return componentStatus{}, 0
		}
		return all.Components["pipeline:metrics"].Components["receiver:vllm"], response.StatusCode
	}
	// The extension publishes the status of a component a moment before the code of the answer.
	waitFor := func(what, status string, code int) componentStatus {
		t.Helper()
		var last componentStatus
		c.WaitFor(t, what, func() bool {
			answered := 0
			last, answered = receiver()
			return last.Status == status && answered == code
		})
		return last
	}
	waitFor("the start", "StatusOK", http.StatusOK)

	two.Close()
	c.WaitFor(t, "the first failure in the log", func() bool { return len(c.Complaints()) > 0 })
	status, code := receiver()
	assert.Equal(t, "StatusOK", status.Status, "one target works")
	assert.Equal(t, http.StatusOK, code)

	one.Close()
	status = waitFor("the failure of all", "StatusRecoverableError", http.StatusInternalServerError)
	assert.Regexp(t, `^none of the 2 targets can be scraped; the newest failure: 127\.0\.0\.1:\d+: connection refused: .*`, status.Error)

	serveAt(t, second)
	waitFor("the recovery", "StatusOK", http.StatusOK)
	assert.Empty(t, c.Errors())
	c.Stop(t)
}
