//go:build e2e

package backendstest

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
)

const (
	// root is the repository's top folder.
	root = "../.."
	// patience is how long a test waits for something that should take a second
	// or two, on a machine that is busy with other things.
	patience = 60 * time.Second
	// stopLimit is how long the collector may take to end after SIGTERM.
	stopLimit = 20 * time.Second
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

// process is a running program.
type process struct {
	cmd   *exec.Cmd
	log   *lockedBuffer
	ended chan error
}

// start runs a program with this environment and no other, bounded in time.
func start(t *testing.T, env map[string]string, program string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	p := &process{log: &lockedBuffer{}, ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(ctx, program, args...)
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	for name, value := range env {
		p.cmd.Env = append(p.cmd.Env, name+"="+value)
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	require.NoError(t, p.cmd.Start())
	go func() { p.ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s:\n%s", filepath.Base(program), shortened(p.log.String()))
		}
	})
	return p
}

// startCollector runs the built collector with configurations, each of which
// overrides the ones before.
func startCollector(t *testing.T, env map[string]string, configs ...string) *process {
	t.Helper()
	// Several collectors run at once; their own metrics would share a port.
	configs = append(configs, "yaml:service::telemetry::metrics::level: none")
	var args []string
	for _, config := range configs {
		args = append(args, "--config", config)
	}
	return start(t, env, binary(t), args...)
}

// waitFor waits until ok, and fails at once when the program ends meanwhile.
func (p *process) waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !ok() {
		select {
		case err := <-p.ended:
			p.ended <- err
			require.FailNow(t, "the program ended by itself", "while waiting for %s: %v", what, err)
		case <-deadline:
			require.FailNow(t, "waited too long for "+what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ready tells whether the collector says that all components have started.
func (p *process) ready() bool {
	return strings.Contains(p.log.String(), "Everything is ready. Begin running and processing data.")
}

// stop asks the program to end and demands that it does so cleanly and soon.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.ended:
		assert.NoError(t, err, "the exit status")
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		require.FailNow(t, "the program did not end", "within %s of SIGTERM", stopLimit)
	}
}

// kill ends the program as a crash would.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Kill())
	<-p.ended
}

// logEntry is the first line of a log entry.
var logEntry = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(\w+)\t`)

// complaints are the log lines of a level above info.
func (p *process) complaints() []string {
	var found []string
	for line := range strings.Lines(p.log.String()) {
		entry := logEntry.FindStringSubmatch(line)
		if len(entry) > 0 && entry[1] != "info" && entry[1] != "debug" {
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
