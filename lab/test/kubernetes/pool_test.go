//go:build e2e

package kubernetes

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// What an engine does. Every scrape of one that works sees new requests: those of a quick one
// get their first token in less than half a second, those of a slow one after 2.5 to 5 s,
// because others wait before them.
const (
	idle int64 = iota
	quick
	slow
	gone
)

// engine is a vLLM server whose load a test sets.
type engine struct {
	does atomic.Int64
	// fast and late are how many requests there were.
	fast, late atomic.Int64
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	running, waiting, kv := 0, 0, 0.0
	does := e.does.Load()
	switch {
	case does == gone:
		// Cuts the connection.
		panic(http.ErrAbortHandler)
	case r.URL.Path != "/metrics":
		http.NotFound(w, r)
		return
	case does == quick:
		running, waiting, kv = 4, 0, 0.2
		e.fast.Add(100)
	case does == slow:
		running, waiting, kv = 16, 40, 0.6
		e.late.Add(10)
	}
	fast, all := e.fast.Load(), e.fast.Load()+e.late.Load()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	const labels = `engine="0",model_name="llama"`
	for _, gauge := range []struct {
		name  string
		value float64
	}{{"num_requests_running", float64(running)}, {"num_requests_waiting", float64(waiting)}, {"kv_cache_usage_perc", kv}} {
		fmt.Fprintf(w, "# TYPE vllm:%[1]s gauge\nvllm:%[1]s{%[2]s} %[3]g\n", gauge.name, labels, gauge.value)
	}
	for name, each := range map[string]int64{"prompt_tokens": 500, "generation_tokens": 200} {
		fmt.Fprintf(w, "# TYPE vllm:%[1]s_total counter\nvllm:%[1]s_total{%[2]s} %[3]d\n", name, labels, all*each)
	}
	fmt.Fprintf(w, "# TYPE vllm:request_success_total counter\nvllm:request_success_total{%s,finished_reason=\"stop\"} %d\n", labels, all)
	for name, seconds := range map[string][2]float64{
		"time_to_first_token_seconds": {0.3, 4}, "request_queue_time_seconds": {0.1, 3.5}, "e2e_request_latency_seconds": {0.4, 4.9},
	} {
		fmt.Fprintf(w, "# TYPE vllm:%s histogram\n", name)
		for _, bound := range []string{"0.5", "1.0", "2.5"} {
			fmt.Fprintf(w, "vllm:%s_bucket{%s,le=%q} %d\n", name, labels, bound, fast)
		}
		for _, bound := range []string{"5.0", "10.0", "+Inf"} {
			fmt.Fprintf(w, "vllm:%s_bucket{%s,le=%q} %d\n", name, labels, bound, all)
		}
		sum := seconds[0]*float64(fast) + seconds[1]*float64(all-fast)
		fmt.Fprintf(w, "vllm:%[1]s_count{%[2]s} %[3]d\nvllm:%[1]s_sum{%[2]s} %[4]g\n", name, labels, all, sum)
	}
}

// picker is an endpoint picker with requests in its queue.
type picker struct {
	queued  atomic.Int64
	refused atomic.Int64
}

func (p *picker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer sesame" {
		p.refused.Add(1)
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "# TYPE inference_extension_flow_control_queue_size gauge\n"+
		"inference_extension_flow_control_queue_size{fairness_id=\"a\",inference_pool=\"vllm-llama\",model_name=\"llama\",priority=\"0\",target_model_name=\"llama\"} %d\n",
		p.queued.Load())
}

// series are the newest values that a backend was sent, by metric and one attribute or none.
type series struct {
	mu     sync.Mutex
	values map[string]float64
	// instances are the service.instance.id of the resources with pools.
	instances map[string]bool
	// away is true while the backend answers that it is not there.
	away atomic.Bool
	// history has all points in their order, for tests that set it.
	history *history
}

func (s *series) get(name string) (float64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value, ok := s.values[name]
	return value, ok
}

func (s *series) is(name string, value float64) func() bool {
	return func() bool {
		got, ok := s.get(name)
		return ok && got == value
	}
}

func (s *series) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	metrics, err := fleet.Metrics(r)
	if err != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
		s.history.add(rm)
		for p := range fleet.Points(rm) {
			if p.Metric == "vllm.pool.replicas" {
				s.instances[fmt.Sprint(rm.Resource().Attributes().AsRaw()["service.instance.id"])] = true
			}
			name := p.Metric
			for _, attribute := range []string{"cause", "role", "objective"} {
				if v, ok := p.Attributes.Get(attribute); ok {
					name += " " + v.AsString()
				}
			}
			s.values[name] = p.Value
		}
	}
}

// serveOn starts servers with one port on several loopback addresses, as pods of one
// InferencePool have it, and returns the port.
func serveOn(t *testing.T, handlers map[string]http.Handler) int {
	t.Helper()
	hosts, err := fleet.NewHosts(t.Context(), func(ip string) http.Handler { return handlers[ip] })
	require.NoError(t, err)
	t.Cleanup(hosts.Close)
	return hosts.Port
}

// fixture is a pool in the stand-in for a cluster, with what surrounds it.
type fixture struct {
	api     *kubeapi.Server
	engines map[string]*engine
	gateway *picker
	seen    *series
	// url is the backend's, and front that of the picker.
	url, front string
}

// selected are the labels of the pods of the pool.
var selected = map[string]string{"app": "llama"}

func newFixture(t *testing.T, addresses ...string) *fixture {
	t.Helper()
	f := &fixture{
		api: kubeapi.New(t, kubeapi.Pools), engines: map[string]*engine{}, gateway: &picker{},
		seen: &series{values: map[string]float64{}, instances: map[string]bool{}},
	}
	handlers := map[string]http.Handler{}
	for _, address := range addresses {
		f.engines[address] = &engine{}
		handlers[address] = f.engines[address]
	}
	f.api.Apply(kubeapi.Pools, kubeapi.Pool("vllm", "vllm-llama", selected, serveOn(t, handlers)))
	for url, handler := range map[*string]http.Handler{&f.url: f.seen, &f.front: f.gateway} {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		*url = server.URL
	}
	return f
}

// pod is the pod of an engine.
func pod(address string) kubeapi.Pod {
	number := address[len(address)-1:]
	return kubeapi.Pod{
		Namespace: "vllm", Name: "llama-" + number, Node: "node-" + number, IP: address, Labels: selected,
		Containers: []kubeapi.Container{{Name: "vllm"}},
	}
}

func (f *fixture) apply(pods ...kubeapi.Pod) {
	for _, p := range pods {
		f.api.Apply(kubeapi.Pods, p.Object())
	}
}

// start runs the overlay "pool" with objectives for it, with windows of two seconds in the place of a minute.
func (f *fixture) start(t *testing.T, settings ...string) func() {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("sesame"), 0o600))
	_, stop := startOf(t, above(t, copied(t), "pool", "objectives"), f.url, map[string]string{
		"${env:POOL_${env:POOL_INDEX}_PICKER}": f.front, "/var/run/secrets/otelcol-vllm/token": token,
	}, append(settings, fmt.Sprintf(`
receivers: {vllm: {discovery: {inference_pool: {api_server: %q}}}}
processors: {vllm: {window: 2s, diagnosis: {hold: 1}, pool: {interval: 1s}}}
`, f.api.URL))...)
	return stop
}

// The deployed configuration reaches what only a collector of a whole pool can see.
func TestThePoolIsDiagnosed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "127.0.0.2", "127.0.0.3")
	f.apply(pod("127.0.0.2"), pod("127.0.0.3"))
	f.gateway.queued.Store(20)
	stop := f.start(t)

	eventually(t, "both servers in one pool", f.seen.is("vllm.pool.replicas", 2))
	// The servers have nothing to do, and requests wait at the gateway.
	eventually(t, "upstream_starved", f.seen.is("vllm.pool.diagnosis.cause upstream_starved primary", 1))
	assert.Zero(t, f.gateway.refused.Load())

	// One server gets all requests.
	f.gateway.queued.Store(0)
	f.engines["127.0.0.2"].does.Store(slow)
	eventually(t, "imbalanced", f.seen.is("vllm.pool.diagnosis.cause imbalanced primary", 1))
	eventually(t, "how unequal the servers are", func() bool { v, ok := f.seen.get("vllm.pool.imbalance.max_ratio"); return ok && v > 1 })
	eventually(t, "the severity of the pool", f.seen.is("vllm.pool.diagnosis.severity", 2))
	_, counted := f.seen.get("vllm.slo.target ttft")
	assert.True(t, counted, "the objectives of the component are counted")
	stop()

	f.seen.mu.Lock()
	defer f.seen.mu.Unlock()
	assert.Equal(t, map[string]bool{"otelcol-vllm.pod-1": true}, f.seen.instances, "pools have the name of the collector's pod")
}
