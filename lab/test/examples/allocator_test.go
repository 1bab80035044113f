//go:build e2e

package examples

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// allocator answers as the target allocator of the OpenTelemetry operator does (release of
// August 2026): a job or a collector that it does not know has an empty list with the status
// 200. It assigns servers by their addresses only, as the original; which of the collectors has
// which server is decided in a simpler way.
type allocator struct {
	server *httptest.Server

	mu         sync.Mutex
	job        string
	targets    map[string]map[string]string
	collectors []string
	// bad are requests that the original would not understand.
	bad []string
}

// allocated is a server in a list, and all servers of a collector.
type allocated struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

func (a *allocator) serve(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: a}}
	server.Start()
	t.Cleanup(server.Close)
	a.server = server
}

func (a *allocator) setCollectors(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.collectors = names
}

// ownerOf is the collector of an address. It stays the same while its collector is there.
func (a *allocator) ownerOf(address string) string {
	best, owner := uint64(0), ""
	for _, name := range a.collectors {
		h := fnv.New64a()
		h.Write([]byte(name + " " + address))
		// FNV spreads short texts badly over its high bits.
		if score := h.Sum64() * 0x9E3779B97F4A7C15; owner == "" || score > best {
			best, owner = score, name
		}
	}
	return owner
}

// shares are the addresses of each collector.
func (a *allocator) shares() map[string][]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string][]string{}
	for address := range a.targets {
		owner := a.ownerOf(address)
		out[owner] = append(out[owner], address)
	}
	return out
}

func (a *allocator) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer := func(what any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what)
	}
	path := r.URL.EscapedPath()
	switch {
	case path == "/livez" || path == "/readyz":
	case path == "/scrape_configs":
		answer(map[string]any{a.job: map[string]any{"job_name": a.job}})
	case path == "/jobs":
		answer(map[string]any{a.job: map[string]string{"_link": "/jobs/" + url.QueryEscape(a.job) + "/targets"}})
	case strings.HasPrefix(path, "/jobs/") && strings.HasSuffix(path, "/targets"):
		job, err := url.QueryUnescape(strings.TrimSuffix(strings.TrimPrefix(path, "/jobs/"), "/targets"))
		if err != nil || strings.Contains(strings.TrimPrefix(path, "/jobs/"), "//") {
			http.Error(w, "{}", http.StatusInternalServerError)
			return
		}
		if ids := r.URL.Query()["collector_id"]; len(ids) > 0 {
			answer(a.listOf(ids[0], job))
			return
		}
		// Without a collector, the answer is no list, so that discovery cannot use it.
		all := map[string]any{}
		for _, name := range a.collectors {
			all[name] = map[string]any{
				"_link":   "/debug/jobs/" + url.QueryEscape(job) + "/targets?collector_id=" + name,
				"targets": a.listOf(name, job),
			}
		}
		answer(all)
	default:
		a.bad = append(a.bad, r.URL.String())
		http.NotFound(w, r)
	}
}

func (a *allocator) listOf(name, job string) []allocated {
	out := []allocated{}
	for address, labels := range a.targets {
		if job == a.job && name != "" && a.ownerOf(address) == name {
			out = append(out, allocated{[]string{address}, labels})
		}
	}
	return out
}

// allocatedFleet has pods on loopback addresses and counts which collector scrapes which.
type allocatedFleet struct {
	vllmServer
	mu sync.Mutex
	// scrapes are counted by address and collector.
	scrapes map[string]map[string]int
}

func (f *allocatedFleet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if r.URL.Path == f.path {
		f.mu.Lock()
		by := f.scrapes[local.String()]
		if by == nil {
			by = map[string]int{}
			f.scrapes[local.String()] = by
		}
		by[r.Header.Get("X-Collector")]++
		f.mu.Unlock()
	}
	f.vllmServer.ServeHTTP(w, r)
}

// counted returns the scrapes by collector and address since the last call.
func (f *allocatedFleet) counted() map[string][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string][]string{}
	for address, by := range f.scrapes {
		for name := range by {
			out[name] = append(out[name], address)
		}
	}
	f.scrapes = map[string]map[string]int{}
	return out
}

func sorted(shares map[string][]string) map[string][]string {
	for _, addresses := range shares {
		slices.Sort(addresses)
	}
	return shares
}

// Three collectors have each server once; when one goes the others take its servers, and
// keep their own. Without the allocator all stays as it is. An allocator that does not know a
// collector any more, as after its own restart, takes all servers from it.
func TestTheTargetAllocatorDividesAFleet(t *testing.T) {
	t.Parallel()
	const job = "podMonitor/models/vllm/0"
	_, port, err := net.SplitHostPort(collector.FreeAddr(t))
	require.NoError(t, err)
	f := &allocatedFleet{vllmServer: vllmServer{path: "/metrics"}, scrapes: map[string]map[string]int{}}
	a := &allocator{job: job, targets: map[string]map[string]string{}}
	// The port, and so the hashes, are by chance: of 12 servers one collector had none in 2 % of all runs.
	for i := range 30 {
		address := net.JoinHostPort(fmt.Sprintf("127.0.19.%d", i+1), port)
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: f}}
		server.Start()
		t.Cleanup(server.Close)
		a.targets[address] = map[string]string{
			"__address__": address, "__meta_kubernetes_namespace": "models",
			"__meta_kubernetes_pod_name":                                 fmt.Sprintf("inference-%d", i),
			"__meta_kubernetes_pod_label_app_kubernetes_io_model":        fmt.Sprintf("model-%d", i%3),
			"__meta_kubernetes_pod_labelpresent_app_kubernetes_io_model": "true",
		}
	}
	names := []string{"otelcol-vllm-0", "otelcol-vllm-1", "otelcol-vllm-2"}
	a.setCollectors(names...)
	address := collector.FreeAddr(t)
	a.serve(t, address)
	running, pages := map[string]*collector.Process{}, map[string]string{}
	for _, name := range names {
		pages[name] = collector.FreeAddr(t)
		running[name] = startExample(t, example("target-allocator.yaml"), map[string]string{
			"TARGET_ALLOCATOR": "http://" + address, "ALLOCATOR_JOB": url.QueryEscape(job), "POD_NAME": name, "PROMETHEUS_ADDR": pages[name],
			"ALLOCATOR_REFRESH": "1s",
		}, fmt.Sprintf("receivers::vllm::headers::X-Collector: %q", name))
	}
	// settles waits until exactly these servers are scraped by each collector.
	settles := func(what string, want map[string][]string) {
		sorted(want)
		f.counted()
		first := running[names[0]]
		first.WaitFor(t, what, func() bool {
			page := string(collector.Get(t, "http://"+pages[names[0]]+"/metrics"))
			return strings.Count(page, "\nvllm_up{") == len(want[names[0]])
		})
		first.WaitFor(t, what, func() bool {
			f.mu.Lock()
			whole := len(f.scrapes) == len(a.targets)
			f.mu.Unlock()
			if !whole {
				return false
			}
			got := sorted(f.counted())
			return assert.ObjectsAreEqual(want, got)
		})
		t.Logf("%s: %d, %d and %d servers", what, len(want[names[0]]), len(want[names[1]]), len(want[names[2]]))
	}

	three := a.shares()
	require.Len(t, three, 3)
	settles("each server at the collector of the allocator", three)
	cut := map[string]map[string]bool{}
	for name, addresses := range three {
		for _, address := range addresses {
			model := a.targets[address]["__meta_kubernetes_pod_label_app_kubernetes_io_model"]
			if cut[model] == nil {
				cut[model] = map[string]bool{}
			}
			cut[model][name] = true
		}
	}
	for model, by := range cut {
		t.Logf("the pool %s has %d collectors", model, len(by))
	}
	page := string(collector.Get(t, "http://"+pages[names[0]]+"/metrics"))
	line := lineWith(page, "vllm_up{", `k8s_pod_name="inference-`)
	assert.Contains(t, line, `k8s_namespace_name="models"`)
	assert.Contains(t, line, `pool="model-`)

	// A collector goes.
	running[names[2]].Stop(t)
	a.setCollectors(names[:2]...)
	two := a.shares()
	for _, name := range names[:2] {
		assert.Subset(t, two[name], three[name], "who stays keeps its servers")
	}
	settles("the servers of the collector that went", two)

	// The allocator is away.
	a.server.Close()
	running[names[0]].WaitFor(t, "the line about the list", func() bool {
		return strings.Contains(running[names[0]].Log(), "the targets of http_sd_configs stay as they are, because the list could not be read")
	})
	settles("the servers stay", two)

	// The allocator is back, and has not found the collector yet.
	a.setCollectors(names[1])
	a.serve(t, address)
	settles("all servers at the collector that is known", map[string][]string{names[1]: slices.Concat(two[names[0]], two[names[1]])})
	running[names[0]].WaitFor(t, "the line about the targets that are gone", func() bool {
		return strings.Contains(running[names[0]].Log(), fmt.Sprintf(`"gone": %d, "scraped": 0`, len(two[names[0]])))
	})
	for _, name := range names[:2] {
		running[name].Stop(t)
	}
	for _, name := range names {
		assert.Empty(t, running[name].Complaints("the list could not be read"))
	}
	assert.Empty(t, a.bad)
}
