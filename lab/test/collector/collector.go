// Package collector runs the built distribution in tests: it finds the
// program, starts it with an environment of its own, waits for what it should
// do, reads its log, and stops it, all bounded in time.
package collector

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const (
	// Patience is how long a test waits for something that should take a second
	// or two, on a machine that is busy with other things.
	Patience = time.Minute
	// lifetime is how long a program may run before it is killed: a test that
	// hangs must not leave it behind.
	lifetime = 8 * Patience
	// look is the time between two checks of what a test waits for.
	look = 20 * time.Millisecond
)

// Process is a running program.
type Process struct {
	*fleet.Process
	log *Log
	// ready is when its log was first seen to have the line of a complete start.
	ready time.Time
}

// Start runs a program with these variables added to a nearly empty environment,
// from which nothing that a configuration reads is inherited. The log is shown
// when the test fails.
func Start(t *testing.T, env map[string]string, program string, args ...string) *Process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), lifetime)
	t.Cleanup(cancel)
	variables := []string{"HOME=" + t.TempDir()}
	for name, value := range env {
		variables = append(variables, name+"="+value)
	}
	p := &Process{log: &Log{}}
	var err error
	p.Process, err = fleet.StartTo(ctx, p.log, variables, program, args...)
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s:\n%s", p.Name(), shortened(p.Log()))
		}
	})
	return p
}

// Collector runs the built collector with configurations, each of which
// overrides the ones before. A configuration is a file, or "yaml:" and text. Its
// own metrics are off, because several collectors run at once and would share
// their port.
func Collector(t *testing.T, env map[string]string, configs ...string) *Process {
	t.Helper()
	configs = append(configs, "yaml:service::telemetry::metrics::level: none")
	var args []string
	for _, config := range configs {
		args = append(args, "--config", config)
	}
	return Start(t, env, Binary(t), args...)
}

// RunWith runs the built collector with a configuration given as text.
func RunWith(t *testing.T, config string) *Process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	return Collector(t, nil, file)
}

// WaitFor waits until ok, and fails at once when the program ends meanwhile.
func (p *Process) WaitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(Patience)
	for !ok() {
		select {
		case <-p.Done():
			require.FailNow(t, p.Name()+" ended by itself", "while waiting for %s: %v", what, p.Exit())
		case <-deadline:
			require.FailNow(t, "waited too long for "+what)
		case <-time.After(look):
		}
	}
}

// Ready reports whether all components have started, by the collector's log, and the
// collector can be stopped.
func (p *Process) Ready() bool {
	if p.ready.IsZero() && strings.Contains(p.Log(), fleet.ReadyLine) {
		p.ready = time.Now()
	}
	return !p.ready.IsZero() && time.Since(p.ready) >= fleet.Listening
}

// Stop asks the program to end and checks that it does so cleanly and soon.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	_, err := p.Process.Stop(fleet.StopLimit)
	require.NoError(t, err, "the exit status of %s", p.Name())
}

// Signal sends a signal to the program.
func (p *Process) Signal(t *testing.T, signal os.Signal) {
	t.Helper()
	require.NoError(t, p.Process.Signal(signal))
}

// WaitForFailure waits until the program has ended by itself, and checks that it
// reports a failure.
func (p *Process) WaitForFailure(t *testing.T) {
	t.Helper()
	select {
	case <-p.Done():
		require.Error(t, p.Exit(), "%s ended without a failure", p.Name())
	case <-time.After(Patience):
		require.FailNow(t, p.Name()+" did not end by itself")
	}
}

// Kill ends the program as a crash would.
func (p *Process) Kill(t *testing.T) {
	t.Helper()
	p.Process.Kill()
	require.Error(t, p.Exit(), "it had ended by itself")
}

// Log returns what the program has written so far.
func (p *Process) Log() string { return p.log.String() }

// logEntry is the first line of a log entry of the collector; a stack trace may
// follow it.
var logEntry = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\S+\t(\w+)\t`)

// Complaints returns the collector's log lines of a level above info, without those that
// contain one of the expected texts.
func (p *Process) Complaints(expected ...string) []string {
	return p.lines([]string{"debug", "info"}, expected)
}

// Errors returns the collector's log lines of level error and above.
func (p *Process) Errors() []string {
	return p.lines([]string{"debug", "info", "warn"}, nil)
}

// lines returns the entries of the log that have another level and contain none of the
// expected texts.
func (p *Process) lines(levels, expected []string) []string {
	var found []string
lines:
	for line := range strings.Lines(p.Log()) {
		entry := logEntry.FindStringSubmatch(line)
		if len(entry) == 0 {
			continue
		}
		for _, level := range levels {
			if entry[1] == level {
				continue lines
			}
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

// shortened keeps the beginning and the end of a long log.
func shortened(log string) string {
	const most = 20000
	if len(log) > most {
		return log[:most/2] + "\n...\n" + log[len(log)-most/2:]
	}
	return log
}
