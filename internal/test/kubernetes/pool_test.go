//go:build e2e

package kubernetes

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// engine is a vLLM server whose load a test sets. Every scrape of a loaded one sees new
// requests, whose first tokens took between 2.5 and 5 seconds.
type engine struct {
	loaded  atomic.Bool
	scrapes atomic.Int64
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/metrics" {
		http.NotFound(w, r)
		return
	}
	running, waiting, kv := 0, 0, 0.0
	if e.loaded.Load() {
		running, waiting, kv = 16, 40, 0.6
		e.scrapes.Add(1)
	}
	n := e.scrapes.Load() * 10
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	const labels = `engine="0",model_name="llama"`
	for _, gauge := range []struct {
		name  string
		value float64
	}{{"num_requests_running", float64(running)}, {"num_requests_waiting", float64(waiting)}, {"kv_cache_usage_perc", kv}} {
		fmt.Fprintf(w, "# TYPE vllm:%[1]s gauge\nvllm:%[1]s{%[2]s} %[3]g\n", gauge.name, labels, gauge.value)
	}
	for name, each := range map[string]int64{"prompt_tokens": 500, "generation_tokens": 200} {
		fmt.Fprintf(w, "# TYPE vllm:%[1]s_total counter\nvllm:%[1]s_total{%[2]s} %[3]d\n", name, labels, n*each)
	}
	fmt.Fprintf(w, "# TYPE vllm:request_success_total counter\nvllm:request_success_total{%s,finished_reason=\"stop\"} %d\n", labels, n)
	for name, mean := range map[string]float64{
		"time_to_first_token_seconds": 4, "request_queue_time_seconds": 3.5, "e2e_request_latency_seconds": 4.9,
	} {
		fmt.Fprintf(w, "# TYPE vllm:%s histogram\n", name)
		for _, bound := range []string{"0.5", "1.0", "2.5"} {
			fmt.Fprintf(w, "vllm:%s_bucket{%s,le=%q} 0\n", name, labels, bound)
		}
		for _, bound := range []string{"5.0", "10.0", "+Inf"} {
			fmt.Fprintf(w, "vllm:%s_bucket{%s,le=%q} %d\n", name, labels, bound, n)
		}
		fmt.Fprintf(w, "vllm:%[1]s_count{%[2]s} %[3]d\nvllm:%[1]s_sum{%[2]s} %[4]g\n", name, labels, n, mean*float64(n))
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
	content, _ := io.ReadAll(r.Body)
	request := pmetricotlp.NewExportRequest()
	if request.UnmarshalProto(content) != nil {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rm := range request.Metrics().ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() == "vllm.pool.replicas" {
					s.instances[fmt.Sprint(rm.Resource().Attributes().AsRaw()["service.instance.id"])] = true
				}
				s.take(metric)
			}
		}
	}
}

func (s *series) take(metric pmetric.Metric) {
	points := pmetric.NewNumberDataPointSlice()
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		points = metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = metric.Sum().DataPoints()
	}
	for _, p := range points.All() {
		value := p.DoubleValue()
		if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
			value = float64(p.IntValue())
		}
		name := metric.Name()
		for _, attribute := range []string{"cause", "role", "objective"} {
			if v, ok := p.Attributes().Get(attribute); ok {
				name += " " + v.AsString()
			}
		}
		s.values[name] = value
	}
}

// serveOn starts servers with one port on several loopback addresses, as pods of one
// InferencePool have it, and returns the port.
func serveOn(t *testing.T, handlers map[string]http.Handler) int {
	t.Helper()
	port := 0
	for address, handler := range handlers {
		listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
		require.NoError(t, err)
		port = listener.Addr().(*net.TCPAddr).Port
		server := httptest.NewUnstartedServer(handler)
		server.Listener.Close()
		server.Listener = listener
		server.Start()
		t.Cleanup(server.Close)
	}
	return port
}

// The deployed configuration reaches what only a collector of a whole pool can see. Windows
// are two seconds here, in the place of a minute.
func TestThePoolIsDiagnosed(t *testing.T) {
	engines := map[string]*engine{"127.0.0.2": {}, "127.0.0.3": {}}
	port := serveOn(t, map[string]http.Handler{"127.0.0.2": engines["127.0.0.2"], "127.0.0.3": engines["127.0.0.3"]})
	gateway := &picker{}
	gateway.queued.Store(20)
	front := httptest.NewServer(gateway)
	t.Cleanup(front.Close)
	seen := &series{values: map[string]float64{}, instances: map[string]bool{}}
	vendor := httptest.NewServer(seen)
	t.Cleanup(vendor.Close)

	api := kubeapi.New(t, kubeapi.Pools)
	serving := map[string]string{"app": "llama"}
	api.Apply(kubeapi.Pools, kubeapi.Pool("vllm", "vllm-llama", serving, port))
	for address := range engines {
		api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: "vllm", Name: "llama-" + address[len(address)-1:], Node: "node-" + address[len(address)-1:], IP: address, Labels: serving,
			Containers: []kubeapi.Container{{Name: "vllm"}},
		}.Object())
	}
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("sesame"), 0o600))

	_, stop := start(t, "pool", vendor.URL, map[string]string{
		"${env:POOL_${env:POOL_INDEX}_PICKER}": front.URL, "/var/run/secrets/otelcol-vllm/token": token,
	}, fmt.Sprintf(`
receivers: {vllm: {discovery: {inference_pool: {api_server: %q}}}}
processors: {vllm: {window: 2s, diagnosis: {hold: 1}, pool: {interval: 1s}}}
`, api.URL))

	eventually(t, "both servers in one pool", seen.is("vllm.pool.replicas", 2))
	// The servers have nothing to do, and requests wait at the gateway.
	eventually(t, "upstream_starved", seen.is("vllm.pool.diagnosis.cause upstream_starved primary", 1))
	assert.Zero(t, gateway.refused.Load())

	// One server gets all requests.
	gateway.queued.Store(0)
	engines["127.0.0.2"].loaded.Store(true)
	eventually(t, "imbalanced", seen.is("vllm.pool.diagnosis.cause imbalanced primary", 1))
	eventually(t, "how unequal the servers are", func() bool { v, ok := seen.get("vllm.pool.imbalance.max_ratio"); return ok && v > 1 })
	eventually(t, "the severity of the pool", seen.is("vllm.pool.diagnosis.severity", 2))
	_, counted := seen.get("vllm.slo.target ttft")
	assert.True(t, counted, "the objectives of the overlay are counted")
	stop()

	seen.mu.Lock()
	defer seen.mu.Unlock()
	assert.Equal(t, map[string]bool{"otelcol-vllm.pod-1": true}, seen.instances, "pools have the name of the collector's pod")
	if t.Failed() {
		for name, value := range seen.values {
			t.Log(name, value)
		}
	}
}
