//go:build e2e

package probes

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// failure is what befalls the collector. The servers serve all the time.
type failure struct {
	name string
	// again is done every second while it lasts, and begin once before that.
	begin, again, end func(*testing.T, *world)
	// harms is true where a check without the example's protection takes servers out.
	harms bool
}

// lasting is how long each failure lasts: longer than it takes the collector to say "unreachable", which is two scrapes,
// and the proxy to act on it. after is how long is watched afterwards.
const (
	lasting = 75 * time.Second
	after   = 20 * time.Second
)

var failures = []failure{
	{name: "killed", begin: kill, end: start, harms: true},
	{name: "stopped (SIGSTOP)", begin: signal(syscall.SIGSTOP), end: signal(syscall.SIGCONT), harms: true},
	{name: "restarted, with storage", begin: func(t *testing.T, w *world) {
		t.Helper()
		w.collector.Stop(t)
		start(t, w)
	}},
	{name: "restarted, without storage", begin: func(t *testing.T, w *world) {
		t.Helper()
		w.collector.Stop(t)
		require.NoError(t, os.RemoveAll(filepath.Join(w.dir, "storage")))
		start(t, w)
	}},
	{name: "its network to all servers is cut", begin: metrics(3, abort), end: metrics(3, nil)},
	{name: "its network to two of three is cut", begin: metrics(2, abort), end: metrics(2, nil)},
	{name: "its network to one of three is cut", begin: metrics(1, abort), end: metrics(1, nil), harms: true},
	{name: "scrapes get no answer", begin: metrics(3, hang), end: metrics(3, nil)},
	{name: "scrapes get an empty page", begin: metrics(3, empty), end: metrics(3, nil)},
	{name: "killed at each start", begin: kill, again: func(t *testing.T, w *world) {
		t.Helper()
		start(t, w)
		time.Sleep(50 * time.Millisecond)
		kill(t, w)
	}, end: start, harms: true},
	{name: "it does not start: wrong configuration", begin: func(t *testing.T, w *world) {
		t.Helper()
		w.collector.Stop(t)
		wrong := collector.Collector(t, nil, filepath.Join(w.dir, "config.yaml"), "yaml:processors::vllm::windows: 1m")
		wrong.WaitForFailure(t)
	}, end: start, harms: true},
	{name: "its port answers 503, from somebody else", begin: func(t *testing.T, w *world) {
		t.Helper()
		w.collector.Stop(t)
		w.stranger(t)
	}, harms: true},
}

func kill(t *testing.T, w *world) {
	t.Helper()
	w.collector.Kill(t)
}

func start(t *testing.T, w *world) {
	t.Helper()
	w.startCollector(t)
}

func signal(what syscall.Signal) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		w.collector.Signal(t, what)
	}
}

// metrics lets the first servers answer scrapes in another way.
func metrics(servers int, answer http.HandlerFunc) func(*testing.T, *world) {
	return func(_ *testing.T, w *world) {
		for _, n := range w.nodes[:servers] {
			if answer == nil {
				n.metrics.Store(nil)
			} else {
				n.metrics.Store(&answer)
			}
		}
	}
}

func abort(http.ResponseWriter, *http.Request)     { panic(http.ErrAbortHandler) }
func hang(_ http.ResponseWriter, r *http.Request)  { <-r.Context().Done() }
func empty(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }

// stranger answers 503 in place of the collector.
func (w *world) stranger(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", w.fleet)
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { require.NoError(t, server.Close()) })
}

// No failure of the collector takes a server out that serves, and no client loses a request. All failures are at the
// same time, each in a world of its own.
func TestNoFailureOfTheCollectorTakesAServerOut(t *testing.T) {
	worlds := make([]*world, len(failures))
	for i := range failures {
		worlds[i] = newWorld(t, simulated(t))
		worlds[i].startCollector(t)
		worlds[i].send(t, "probe", "", 500*time.Millisecond)
	}
	for _, w := range worlds {
		w.waitUntilServing(t)
	}
	began := time.Now()
	for i, f := range failures {
		f.begin(t, worlds[i])
	}
	for time.Since(began) < lasting {
		for i, f := range failures {
			if f.again != nil {
				f.again(t, worlds[i])
			}
		}
		time.Sleep(time.Second)
	}
	for i, f := range failures {
		if f.end != nil {
			f.end(t, worlds[i])
		}
	}
	time.Sleep(after)
	end := time.Now().Add(-patience)
	t.Logf("%-42s requests to each server   lost   taken out   without the example's protection", "failure")
	for i, f := range failures {
		w, sent, outs, bare := worlds[i], []int{}, outOf(worlds[i].outs(t, "vllm")), outOf(worlds[i].outs(t, "bare"))
		for _, n := range w.nodes {
			sent = append(sent, n.between("probe", began, end))
		}
		lost := w.lostBetween("probe", began, end)
		t.Logf("%-42s %25s %6d %11d %34d", f.name, fmt.Sprint(sent), lost, outs, bare)
		assert.Zero(t, outs, f.name)
		assert.Zero(t, lost, f.name)
		assert.Equal(t, f.harms, bare > 0, "%s: without the protection %d are taken out", f.name, bare)
		for _, n := range sent {
			assert.Positive(t, n, f.name)
		}
	}
}

// outOf counts the servers that were taken out at least once.
func outOf(outs []int) (servers int) {
	for _, times := range outs {
		if times > 0 {
			servers++
		}
	}
	return servers
}
