package discover

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"go.yaml.in/yaml/v3"
)

// These tests wait more than they compute, so many of them run at once, also on a
// machine with few processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// within is how long a test waits. What it waits for takes a second or two, or some
// seconds where the library first tries again.
const within = 40 * time.Second

// defaults are those of the runners in these tests.
var defaults = Defaults{Interval: 15 * time.Second, Timeout: 10 * time.Second}

// rig is a running discovery.
type rig struct {
	t      *testing.T
	runner *Runner
	logs   *observer.ObservedLogs

	mu      sync.Mutex
	targets []Target
	over    int
	// history has the addresses of each call of Wanted.
	history []string
}

// section reads YAML as the collector does.
func section(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &out))
	return out
}

func parse(t *testing.T, text string) *Settings {
	t.Helper()
	settings, mistakes := Parse(section(t, text))
	require.Empty(t, mistakes)
	return settings
}

func run(t *testing.T, limit int, text string) *rig {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	r := &rig{t: t, logs: logs}
	runner, err := NewRunner(parse(t, text), Options{
		Logger: zap.New(core), Defaults: defaults, Limit: limit, Wanted: r.wanted,
		Delay: 100 * time.Millisecond, Hold: 5 * time.Second, Retry: 200 * time.Millisecond,
	})
	require.NoError(t, err)
	r.runner = runner
	require.NoError(t, runner.Start())
	t.Cleanup(func() { assert.NoError(t, runner.Shutdown(context.Background())) })
	return r
}

func (r *rig) wanted(_ context.Context, targets []Target, over int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets, r.over = slices.Clone(targets), over
	r.history = append(r.history, addresses(targets))
	// Like a receiver that could not start a target.
	return len(r.history)%2 == 0
}

func addresses(targets []Target) string {
	out := make([]string, len(targets))
	for i := range targets {
		out[i] = targets[i].URL.String()
	}
	return strings.Join(out, " ")
}

// waitFor waits until exactly these addresses are the targets.
func (r *rig) waitFor(what string, want ...string) {
	r.t.Helper()
	got := func() string {
		r.mu.Lock()
		defer r.mu.Unlock()
		return addresses(r.targets)
	}
	assert.Eventually(r.t, func() bool { return got() == strings.Join(want, " ") }, within, 10*time.Millisecond)
	require.Equal(r.t, strings.Join(want, " "), got(), "%s, in %v", what, r.lines())
}

// waitForLog waits for a line and returns how many lines contain the text.
func (r *rig) waitForLog(text string) int {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return r.logged(text) > 0 }, within, 10*time.Millisecond, "%s in %v", text, r.lines())
	return r.logged(text)
}

func (r *rig) logged(text string) int {
	n := 0
	for _, line := range r.lines() {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (r *rig) lines() []string {
	var out []string
	for _, entry := range r.logs.All() {
		out = append(out, fmt.Sprintf("%s %s %v", entry.Level, entry.Message, entry.ContextMap()))
	}
	return out
}

// attributes returns those of the target at an address.
func (r *rig) attributes(address string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.targets {
		if t.URL.String() == address {
			return t.Attributes
		}
	}
	return nil
}

// waitForPod waits until the pod of the target at an address has this state.
func (r *rig) waitForPod(what, address string, want Pod) {
	r.t.Helper()
	got := func() *Pod {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, t := range r.targets {
			if t.URL.String() == address {
				return t.Pod
			}
		}
		return nil
	}
	assert.Eventually(r.t, func() bool { p := got(); return p != nil && *p == want }, within, 10*time.Millisecond)
	require.Equal(r.t, &want, got(), "%s, in %v", what, r.lines())
}
