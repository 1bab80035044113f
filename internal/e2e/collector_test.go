//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"net"
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
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	// root is the repository's top folder.
	root = "../.."
	// patience is how long a test waits for something that should take a second
	// or two, on a machine that is busy with other things.
	patience = 40 * time.Second
	// stopLimit is how long the collector may take to end after SIGTERM.
	stopLimit = 15 * time.Second
)

// binary is the built distribution: OTELCOL_VLLM_BIN, or where "make build" puts
// it. OTELCOL_VLLM_REQUIRED turns its absence into a failure.
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

// startCollector runs the built collector with a configuration given as text.
func startCollector(t *testing.T, config string) *collector {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	t.Cleanup(cancel)
	c := &collector{log: &lockedBuffer{}, ended: make(chan error, 1)}
	c.cmd = exec.CommandContext(ctx, binary(t), "--config", file,
		// Several collectors run at once; their own metrics would share a port.
		"--config", "yaml:service::telemetry::metrics::level: none")
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	require.NoError(t, c.cmd.Start())
	go func() { c.ended <- c.cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the collector's log:\n%s", shortened(c.log.String()))
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

// logEntry is the first line of a log entry.
var logEntry = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(\w+)\t`)

// errors are the log lines of level error and above.
func (c *collector) errors() []string {
	var found []string
	for line := range strings.Lines(c.log.String()) {
		entry := logEntry.FindStringSubmatch(line)
		if len(entry) > 0 && entry[1] != "debug" && entry[1] != "info" && entry[1] != "warn" {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

func shortened(log string) string {
	const most = 20000
	if len(log) > most {
		return log[:most/2] + "\n...\n" + log[len(log)-most/2:]
	}
	return log
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

// scrapes reads a file of the file exporter: the scrapes of each target by its
// service.instance.id, in their order. One line is one scrape of one target.
func scrapes(t *testing.T, file string) map[string][]pmetric.ResourceMetrics {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string][]pmetric.ResourceMetrics{}
	number := 0
	for line := range bytes.Lines(content) {
		number++
		if !bytes.HasSuffix(line, []byte("\n")) {
			// The collector is still writing it.
			break
		}
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err, "line %d", number)
		for _, rm := range metrics.ResourceMetrics().All() {
			id, ok := rm.Resource().Attributes().Get("service.instance.id")
			require.True(t, ok, "line %d: a resource without service.instance.id", number)
			all[id.Str()] = append(all[id.Str()], rm)
		}
	}
	return all
}
