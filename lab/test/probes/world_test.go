//go:build e2e

package probes

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const (
	// scrape is the time between two scrapes, patience how long a client waits for an answer.
	scrape   = 5 * time.Second
	patience = 8 * time.Second
	// started is how long a collector may take until all servers are known to serve.
	started = 2 * time.Minute
)

// node is a server behind the proxy.
type node struct {
	*httptest.Server
	inner http.Handler
	// metrics answers the collector in place of the server, which clients still reach.
	metrics atomic.Pointer[http.HandlerFunc]

	mu sync.Mutex
	// sent are the times at which requests came, by the way that they took.
	sent map[string][]time.Time
}

func newNode(t *testing.T, inner http.Handler) *node {
	t.Helper()
	n := &node{inner: inner, sent: map[string][]time.Time{}}
	n.Server = httptest.NewServer(n)
	t.Cleanup(n.Server.Close)
	return n
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if instead := n.metrics.Load(); instead != nil && r.URL.Path == "/metrics" {
		(*instead)(w, r)
		return
	}
	if way := r.Header.Get("Way"); way != "" {
		n.mu.Lock()
		n.sent[way] = append(n.sent[way], time.Now())
		n.mu.Unlock()
	}
	n.inner.ServeHTTP(w, r)
}

// between counts the requests that came on a way in a time.
func (n *node) between(way string, from, to time.Time) (count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, at := range n.sent[way] {
		if !at.Before(from) && at.Before(to) {
			count++
		}
	}
	return count
}

// last is when the last request came on a way.
func (n *node) last(way string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	if sent := n.sent[way]; len(sent) > 0 {
		return sent[len(sent)-1]
	}
	return time.Time{}
}

func (n *node) address() string { return n.Listener.Addr().String() }

// simulated are three servers without requests of their own. Changes are those of the first one.
func simulated(t *testing.T, changes ...engine.Change) []*node {
	t.Helper()
	sim, err := vllmsim.New(vllmsim.Config{
		Targets: 3, Clock: time.Now, TargetChanges: [][]engine.Change{changes, {}, {}},
		Workload: &engine.Workload{Prompt: engine.Lengths{Median: 1}, Output: engine.Lengths{Median: 1}},
	})
	require.NoError(t, err)
	var nodes []*node
	for _, target := range sim.Targets() {
		nodes = append(nodes, newNode(t, target))
	}
	return nodes
}

// world is servers, the collector that reads them, and the proxy that asks it.
type world struct {
	nodes []*node
	// dir has the configuration and the storage of the collector, fleet is where its extension listens.
	dir, fleet string
	collector  *collector.Process
	// ways are the addresses of the proxy for clients: "probe" is the example, "health" asks the servers only.
	ways   map[string]string
	socket string

	mu   sync.Mutex
	lost map[string][]time.Time
}

func newWorld(t *testing.T, nodes []*node) *world {
	t.Helper()
	w := &world{
		nodes: nodes, dir: t.TempDir(), fleet: collector.FreeAddr(t), lost: map[string][]time.Time{},
		ways: map[string]string{"probe": collector.FreeAddr(t), "health": collector.FreeAddr(t)},
	}
	var targets strings.Builder
	for _, n := range nodes {
		fmt.Fprintf(&targets, "      - endpoint: %s\n", n.URL)
	}
	w.write(t, "config.yaml", fmt.Sprintf(`
extensions:
  vllm_fleet: {endpoint: '%s'}
  file_storage: {directory: '%s', create_directory: true}
receivers:
  vllm:
    collection_interval: %s
    initial_delay: 0s
    targets:
%s
processors:
  vllm: {storage: file_storage}
exporters:
  nop:
service:
  extensions: [vllm_fleet, file_storage]
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [nop]}
`, w.fleet, filepath.Join(w.dir, "storage"), scrape, targets.String()))
	w.startProxy(t)
	return w
}

func (w *world) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

func (w *world) startCollector(t *testing.T) {
	t.Helper()
	w.collector = collector.Collector(t, nil, filepath.Join(w.dir, "config.yaml"))
}

// startProxy runs the example with the addresses of this world. What is added asks the servers only ("health"), or the
// collector without the example's protection ("bare").
func (w *world) startProxy(t *testing.T) {
	t.Helper()
	program := collector.Tool(t, "haproxy")
	example, err := os.ReadFile(filepath.Join(captures.Root(t), "examples", "probes", "haproxy.cfg"))
	require.NoError(t, err)
	_, guard, err := net.SplitHostPort(collector.FreeAddr(t))
	require.NoError(t, err)
	replace := []string{"127.0.0.1:55690", w.fleet, "8405", guard, "bind :8080", "bind " + w.ways["probe"]}
	servers := ""
	for i, n := range w.nodes {
		there := fmt.Sprintf("127.0.0.%d:8000", i+1)
		replace = append(replace, there, n.address())
		require.Equal(t, 2, strings.Count(string(example), there))
		servers += fmt.Sprintf("    server %s %[1]s check inter 2s fall 2 rise 2\n", n.address())
	}
	w.write(t, "example.cfg", withoutServers(strings.NewReplacer(replace...).Replace(string(example))))
	w.socket = filepath.Join(w.dir, "socket")
	host, port, err := net.SplitHostPort(w.fleet)
	require.NoError(t, err)
	w.write(t, "more.cfg", fmt.Sprintf(`
global
    stats socket %s
frontend health
    bind %s
    default_backend health
backend health
    balance leastconn
    option httpchk GET /health
%s
backend bare
    option httpchk
    http-check connect addr %s port %s
    http-check send meth GET uri /probe ver HTTP/1.1 hdr Host "%%[srv_name]"
    http-check expect status 200
%[3]s`, w.socket, w.ways["health"], servers, host, port))
	libraries, err := filepath.Glob(filepath.Join(filepath.Dir(program), "..", "lib", "*-linux-gnu"))
	require.NoError(t, err)
	proxy := collector.Start(t, map[string]string{"LD_LIBRARY_PATH": strings.Join(libraries, ":")}, program, "-db",
		"-f", filepath.Join(w.dir, "example.cfg"), "-f", filepath.Join(w.dir, "more.cfg"))
	proxy.WaitFor(t, "HAProxy", func() bool {
		_, err := os.Stat(w.socket)
		return err == nil
	})
}

// withoutServers leaves out the servers of the example that a world does not have.
func withoutServers(config string) string {
	var kept []string
	for line := range strings.Lines(config) {
		if !strings.Contains(line, ":8000 ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// fitness is what the extension says of a server; nothing where it does not answer.
func (w *world) fitness(t *testing.T, n *node) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.fleet+"/probe/"+n.address(), http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	response.Body.Close()
	return response.Header.Get("Vllm-Fleet")
}

// outs is how often the proxy took a server of a backend out, of all servers.
func (w *world) outs(t *testing.T, backend string) (outs []int) {
	t.Helper()
	connection, err := net.Dial("unix", w.socket)
	require.NoError(t, err)
	defer connection.Close()
	_, err = io.WriteString(connection, "show stat\n")
	require.NoError(t, err)
	rows, err := csv.NewReader(connection).ReadAll()
	require.NoError(t, err)
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows {
		if row[0] == backend && row[1] != "BACKEND" && row[1] != "FRONTEND" {
			times, err := strconv.Atoi(row[column["chkdown"]])
			require.NoError(t, err)
			outs = append(outs, times)
		}
	}
	require.Len(t, outs, len(w.nodes))
	return outs
}

// send lets clients send requests on a way, one each time, until the test ends. A client that gets no answer in time
// gives up.
func (w *world) send(t *testing.T, way, model string, every time.Duration) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"prompt": "Why is the sky blue?", "max_tokens": 150, "model": model})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	one := func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		at := time.Now()
		request, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.ways[way]+"/v1/completions", strings.NewReader(string(body)))
		request.Header.Set("Way", way)
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		if err != nil || response.StatusCode != http.StatusOK {
			w.mu.Lock()
			w.lost[way] = append(w.lost[way], at)
			w.mu.Unlock()
		}
	}
	clients.Go(func() {
		for ticker := time.NewTicker(every); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				clients.Go(one)
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		clients.Wait()
	})
}

// lostBetween counts the requests that were sent in a time and got no answer.
func (w *world) lostBetween(way string, from, to time.Time) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.lost[way] {
		if !at.Before(from) && at.Before(to) {
			count++
		}
	}
	return count
}

// waitUntilServing waits until the collector knows all servers.
func (w *world) waitUntilServing(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, n := range w.nodes {
			if w.fitness(t, n) != "serving" {
				return false
			}
		}
		return true
	}, started, time.Second, "the collector knows all servers")
}
