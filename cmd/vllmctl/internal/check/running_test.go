//go:build linux

package check_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

// process returns a /proc whose process 1 has a command line.
func process(t *testing.T, arguments ...string) string {
	t.Helper()
	proc := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(proc, "1"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(proc, "1", "cmdline"), []byte(strings.Join(arguments, "\x00")+"\x00"), 0o600))
	return proc
}

func TestRunningReadsWhatProcess1WasToldToRead(t *testing.T) {
	for _, c := range []struct{ arguments, want []string }{
		{[]string{"/otelcol-vllm", "--config=/etc/otelcol-vllm/collector.yaml"}, []string{"/etc/otelcol-vllm/collector.yaml"}},
		{[]string{"otelcol", "--feature-gates=+a,--config=x", "--config", "b.yaml", "--config=a.yaml", "--config=env:MORE"}, []string{"b.yaml", "a.yaml", "env:MORE"}},
		{[]string{"ours", "--set=service.telemetry.metrics.level=none", "--config=a=b.yaml"}, []string{"a=b.yaml", "yaml:service::telemetry::metrics::level: none"}},
	} {
		got, err := check.Running(process(t, c.arguments...))
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	for says, proc := range map[string]string{
		`process 1 is "pause" and not a collector`: process(t, "/pause"),
		`process 1 is "vllmctl" and not`:           process(t, "/vllmctl", "check", "--config", "a.yaml"),
		`"otelcol-vllm", has no --config`:          process(t, "/otelcol-vllm", "components"),
		`process 1 is "sh" and not`:                process(t, "sh", "-c", "otelcol --config=a.yaml"),
		"cannot be read; name its files":           t.TempDir(),
	} {
		_, err := check.Running(proc)
		assert.ErrorContains(t, err, says)
		assert.ErrorContains(t, err, "--config")
	}
}

// The running collector has the port of its exporter and the other end of its outbox. A port that it does not have is a problem.
func TestTheAddressesOfTheRunningCollectorAreItsOwn(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	_, port, err := net.SplitHostPort(taken.Addr().String())
	require.NoError(t, err)
	outbox := strings.TrimPrefix(backend(t, http.StatusOK), "http://")
	path := written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}, otlp: {protocols: {http: {endpoint: \""+outbox+"\"}}}}\nprocessors: {vllm: {}}\n"+
		"exporters: {prometheus: {endpoint: \"0.0.0.0:"+port+"\"}, prometheus/free: {endpoint: 127.0.0.1:1}, otlp_http: {endpoint: \"http://"+outbox+"\"}, debug: {}}\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [prometheus, prometheus/free, otlp_http]}, metrics/2: {receivers: [otlp], exporters: [debug]}}}\n")
	report, err := check.Configured(t.Context(), []string{path}, check.Settings{Delay: delay, Running: true})
	require.NoError(t, err)
	assert.Equal(t, []string{check.CodeExporterRefused}, codesOf(report, check.Problem, check.Warning))
	text := shown(t, report)
	assert.Contains(t, text, "prometheus: the running collector listens at 0.0.0.0:"+port)
	assert.Contains(t, text, "exporters::prometheus/free: nothing listens at 127.0.0.1:1, although the collector runs.")
	assert.Contains(t, text, "otlp_http: "+outbox+" accepts an empty request")
	assert.Contains(t, codesOf(checked(t, path), check.Problem), check.CodePortTaken, "another program has it")
}
