package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// simulator serves a simulated server that is busy between any two scrapes, and returns its
// address.
func simulator(t *testing.T, edit func(body string) string) string {
	t.Helper()
	sim, err := vllmsim.New(vllmsim.Config{Seed: 3})
	require.NoError(t, err)
	sim.Advance(2 * time.Minute)
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path != "/metrics" || edit == nil {
			if r.URL.Path == "/metrics" {
				sim.Advance(5 * time.Second)
			}
			sim.Targets()[0].ServeHTTP(w, r)
			return
		}
		body, contentType, _ := sim.Targets()[0].Body()
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, edit(string(body)))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func refusedAddress(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	return server.URL
}

// The exit status is the same with and without --json, and that of the document.
func TestCheckExitsWithWhatItFound(t *testing.T) {
	good := simulator(t, nil)
	odd := simulator(t, func(body string) string { return body + "vllm:bad{ 1\n" })
	for name, c := range map[string]struct {
		args []string
		want status.Status
	}{
		"well":                 {[]string{good}, status.OK},
		"well, strict":         {[]string{good, "--strict"}, status.OK},
		"warning":              {[]string{odd}, status.OK},
		"warning, strict":      {[]string{odd, good, "--strict"}, status.Warning},
		"problem":              {[]string{refusedAddress(t), good}, status.Problem},
		"problem, strict":      {[]string{refusedAddress(t), odd, "--strict"}, status.Problem},
		"objective":            {[]string{good, "--objective", "ttft=2s", "--strict"}, status.Warning},
		"objective at a bound": {[]string{good, "--objective", "ttft=2500ms", "--strict"}, status.OK},
	} {
		args := append([]string{"check", "--delay", "20ms"}, c.args...)
		code, out, errs := ctl(t, args...)
		assert.Equal(t, c.want, code, "%s: %s", name, out)
		assert.Empty(t, errs, name)
		assert.NotContains(t, out, "\x1b", "no terminal, so no colours")

		code, out, errs = ctl(t, append(args, "--json")...)
		assert.Equal(t, c.want, code, name)
		assert.Empty(t, errs, name)
		var report check.Report
		decoder := json.NewDecoder(strings.NewReader(out))
		decoder.DisallowUnknownFields()
		require.NoError(t, decoder.Decode(&report), name)
		assert.ErrorIs(t, decoder.Decode(&report), io.EOF, "one document")
		assert.Equal(t, 1, report.Version)
		assert.Equal(t, int(c.want), report.Status, name)
	}
}

func TestCheckSaysWhatIsWrongWithTheCommandLine(t *testing.T) {
	folder := t.TempDir()
	broken := filepath.Join(folder, "broken.yaml")
	require.NoError(t, os.WriteFile(broken, []byte("receivers: ["), 0o600))
	const good = "http://127.0.0.1:1"
	for says, args := range map[string][]string{
		"name the servers":   {},
		"either servers or":  {good, "--config", broken},
		"--running has the ": {"--running", "--config", broken},
		"leave out servers":  {"--running", good},
		"a configuration; ":  {"--running", "--header", "A: b"},
		"does not exist":     {"--config", filepath.Join(folder, "none.yaml")},
		"cannot be read":     {"--config", broken},
		"--delay":            {good, "--delay", "0s"},
		"--interval":         {good, "--interval", "0s"},
		"--objective":        {good, "--objective", "ttft"},
		"no effect":          {"--config", broken, "--header", "A: b"},
		"--kubeconfig":       {good, "--kubeconfig", broken},
		"--ca-file":          {good, "--ca-file", filepath.Join(folder, "none.pem")},
		"server is empty":    {good, ""},
		"only http and":      {"ftp://127.0.0.1"},
		"port that does not": {"127.0.0.1:99999"},
		"is not a URL":       {"http://[::1"},
		"longer than --int":  {good, "--interval", "1s", "--timeout", "5s"},
		"invalid argument":   {good, "--delay", "soon"},
	} {
		code, out, errs := ctl(t, append([]string{"check"}, args...)...)
		assert.Equal(t, status.Failed, code, says)
		assert.Empty(t, out, says)
		assert.Contains(t, errs, says)
		assert.Equal(t, 1, strings.Count(errs, "vllmctl: "), errs)
	}
}

// Neither the output nor a message has a secret of the command line.
func TestCheckDoesNotShowSecrets(t *testing.T) {
	good := simulator(t, nil)
	for _, address := range []string{good, refusedAddress(t), "ftp://127.0.0.1"} {
		address = strings.Replace(address, "://", "://bob:hunter2@", 1) + "/metrics?token=hunter2"
		for _, more := range [][]string{nil, {"--json"}, {"--verbose"}} {
			_, out, errs := ctl(t, append([]string{"check", "--delay", "10ms", "--header", "X-Api-Key: hunter2", address}, more...)...)
			assert.NotContains(t, out+errs, "hunter2")
		}
	}
}

func TestCheckOfAConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "otelcol.yaml")
	require.NoError(t, os.WriteFile(path, []byte("receivers: {vllm: {endpoint: "+simulator(t, nil)+"}}\nprocessors: {vllm: {}}\nexporters: {debug: {}}\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n"), 0o600))
	code, out, errs := ctl(t, "check", "--delay", "20ms", "--config", path, "--strict")
	assert.Equal(t, status.OK, code, out)
	assert.Empty(t, errs)
	assert.Contains(t, out, "(receiver vllm)")
	assert.NotContains(t, out, "A configuration to begin with", "there is one already")
}

// brokenPipe is a pipe whose reader is gone.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestCheckThatCannotWriteIsNoResult(t *testing.T) {
	var errs strings.Builder
	code := run(t.Context(), []string{"check", "--delay", "10ms", simulator(t, nil)}, strings.NewReader(""), brokenPipe{}, &errs)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, errs.String(), "cannot be written")
}

func TestCheckThatIsInterruptedIsNoResult(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var out, errs strings.Builder
	code := run(ctx, []string{"check", "--delay", "1h", simulator(t, nil)}, strings.NewReader(""), &out, &errs)
	assert.Equal(t, status.Failed, code)
	assert.Empty(t, out.String())
	assert.Contains(t, errs.String(), "interrupted")
}
