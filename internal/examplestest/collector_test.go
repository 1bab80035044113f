//go:build e2e

package examplestest

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stopLimit is how long the collector may take to end after SIGTERM. It flushes
// what it holds, to backends that answer at once or refuse at once.
const stopLimit = 15 * time.Second

// patience is how long a test waits for something that should take a second or
// two, on a machine that is busy with other things.
const patience = 60 * time.Second

// binary is the built distribution. OTELCOL_VLLM_BIN names it; without that it
// is where "make build" puts it. OTELCOL_VLLM_REQUIRED turns its absence, which
// skips the test on a developer's machine, into a failure.
func binary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("OTELCOL_VLLM_BIN")
	if file == "" {
		file = filepath.Join(root, "bin", "otelcol-vllm")
	}
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("OTELCOL_VLLM_REQUIRED") != "" {
			require.NoError(t, err, "the built binary is required")
		}
		t.Skip("the distribution is not built; run make build:", err)
	}
	return file
}

// collector is a running distribution.
type collector struct {
	cmd   *exec.Cmd
	log   *lockedBuffer
	ended chan error
}

// startCollector runs an example. env stands over this process's environment,
// from which nothing that an example reads is inherited; settings, each as
// "path::to::key: value", stand over the example.
func startCollector(t *testing.T, example string, env map[string]string, settings ...string) *collector {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	c := &collector{log: &lockedBuffer{}, ended: make(chan error, 1)}
	args := []string{"--config", example}
	for _, setting := range append([]string{
		// Several collectors run at once; their own metrics would share a port.
		"service::telemetry::metrics::level: none",
		// A test does not wait for the intervals of production.
		"receivers::vllm::collection_interval: 1s",
		"receivers::vllm::timeout: 1s",
	}, settings...) {
		args = append(args, "--config", "yaml:"+setting)
	}
	c.cmd = exec.CommandContext(ctx, binary(t), args...)
	// A queue in the working folder would be found by the next test.
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "QUEUE_DIR=" + t.TempDir()}
	for name, value := range env {
		c.cmd.Env = append(c.cmd.Env, name+"="+value)
	}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	require.NoError(t, c.cmd.Start())
	go func() { c.ended <- c.cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the collector's log:\n%s", c.log)
		}
	})
	return c
}

// waitFor waits until ok, and fails at once when the collector ends meanwhile.
func (c *collector) waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case err := <-c.ended:
			c.ended <- err
			require.FailNow(t, "the collector ended by itself", "while waiting for %s: %v", what, err)
		case <-deadline:
			require.FailNow(t, "waited too long for "+what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ready tells whether the collector says that all components have started.
func (c *collector) ready() bool {
	return strings.Contains(c.log.String(), "Everything is ready. Begin running and processing data.")
}

// stop asks the collector to end and demands that it does so cleanly and soon.
func (c *collector) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-c.ended:
		assert.NoError(t, err, "the exit status")
	case <-time.After(stopLimit):
		_ = c.cmd.Process.Kill()
		require.FailNow(t, "the collector did not end", "within %s of SIGTERM", stopLimit)
	}
}

// logEntry is the first line of a log entry; a stack trace may follow it.
var logEntry = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(\w+)\t`)

// complaints are the log lines of a level above info, without those that contain
// one of the expected texts.
func (c *collector) complaints(expected ...string) []string {
	var found []string
lines:
	for line := range strings.Lines(c.log.String()) {
		entry := logEntry.FindStringSubmatch(line)
		if len(entry) == 0 || entry[1] == "info" || entry[1] == "debug" {
			continue
		}
		for _, text := range expected {
			if strings.Contains(line, text) {
				continue lines
			}
		}
		found = append(found, strings.TrimSpace(line))
	}
	return found
}

// lockedBuffer is written by the process and read by the test.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// freeAddr is a loopback address on which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// get returns a page, or nothing as long as it is not there.
func get(t *testing.T, url string) string {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return ""
	}
	return string(body)
}
