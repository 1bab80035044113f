//go:build e2e

package tiers

import (
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// server is a stand-in for a vLLM server. Each of its scrapes adds 100 tokens, so that a
// scrape is known by its number of tokens wherever it arrives.
type server struct {
	model string

	mu sync.Mutex
	// process counts from 1 and is the last part of the version, which changes with it.
	process int
	started time.Time
	scrapes int
	// served are the scrapes of each process.
	served map[int]int
}

// restart makes it a new process of another version.
func (s *server) restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process++
	s.scrapes, s.started = 0, time.Now()
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/metrics":
	case "/version":
		fmt.Fprintf(w, `{"version":"0.11.%d"}`, s.process)
		return
	default:
		http.NotFound(w, r)
		return
	}
	s.scrapes++
	s.served[s.process] = s.scrapes
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, `# TYPE process_start_time_seconds gauge
process_start_time_seconds %[3]f
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="%[4]s"} 3.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="%[4]s"} %[1]d.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="%[4]s"} %[2]d.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="%[4]s"} %[2]d.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="%[4]s"} %[2]d.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="%[4]s"} %[2]d.0
`, 100*s.scrapes, s.scrapes, float64(s.started.UnixMilli())/1000, "m"+s.model)
}

// fleet has pods on loopback addresses, on two nodes.
type fleet struct {
	api     *kubeapi.Server
	port    string
	servers map[string]*server
	// pools are the models, by instance; empty for a server without.
	pools map[string]string
}

// newFleet starts servers of these models on addresses of a block; an empty model has no
// label. Servers are on these nodes by turns.
func newFleet(t *testing.T, block int, nodes, models []string) *fleet {
	t.Helper()
	_, port, err := net.SplitHostPort(ownAddress(t))
	require.NoError(t, err)
	f := &fleet{api: kubeapi.New(t), port: port, servers: map[string]*server{}, pools: map[string]string{}}
	for i, model := range models {
		ip := fmt.Sprintf("127.0.%d.%d", block, i+1)
		address := net.JoinHostPort(ip, port)
		listener, err := net.Listen("tcp", address)
		require.NoError(t, err)
		s := &server{model: model, process: 1, started: time.Now(), served: map[int]int{}}
		listening := &httptest.Server{Listener: listener, Config: &http.Server{Handler: s}}
		listening.Start()
		t.Cleanup(listening.Close)
		f.servers[address], f.pools[address] = s, model
		labels := map[string]string{"app.kubernetes.io/component": "inference"}
		if model != "" {
			labels["app.kubernetes.io/model"] = model
		}
		f.api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: "models", Name: fmt.Sprintf("inference-%d", i), Node: nodes[i%len(nodes)], IP: ip, Labels: labels,
			Containers: []kubeapi.Container{{Name: "vllm", Port: 8000}},
		}.Object())
	}
	return f
}

// env is what an agent on a node needs.
func (f *fleet) env(node string) map[string]string {
	return map[string]string{
		"K8S_NODE_NAME": node, "VLLM_NAMESPACE": "models", "VLLM_PORT": f.port, "KUBERNETES_API": f.api.URL,
	}
}

// least is the smallest number of scrapes of a server that has not restarted.
func (f *fleet) least() int {
	n := 1 << 30
	for _, s := range f.servers {
		s.mu.Lock()
		n = min(n, s.served[1])
		s.mu.Unlock()
	}
	return n
}

// quick are the intervals of a test.
var quick = []string{"receivers::vllm::collection_interval: 1s", "receivers::vllm::timeout: 1s"}

// These tests wait more than they compute, so many of them run at once, also on a machine
// with few processors.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const root = "../../.."

// taken counts the addresses of ownAddress.
var taken atomic.Int32

// ownAddress is an address on which nothing listens. Each call has another host, so that no
// other test takes it meanwhile.
func ownAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.26.%d:0", taken.Add(1)))
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	return listener.Addr().String()
}

// binary is bin/otelcol-vllm-tiers, or OTELCOL_VLLM_TIERS_BIN.
func binary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("OTELCOL_VLLM_TIERS_BIN")
	if file == "" {
		file = filepath.Join(root, "bin", "otelcol-vllm-tiers")
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	if _, err := os.Stat(file); err != nil {
		if os.Getenv("OTELCOL_VLLM_REQUIRED") != "" {
			require.NoError(t, err, "the built binary is required")
		}
		t.Skip("the distribution is not built; run make build-tiers:", err)
	}
	return file
}

// configurations are the programs and the files of examples/tiers that each example runs with.
func configurations(t *testing.T, example string) (program string, args []string) {
	t.Helper()
	files := []string{example}
	tier, kind, _ := strings.Cut(example, "-")
	if kind == "otlp.yaml" {
		program = collector.Binary(t)
	} else {
		program, files = binary(t), []string{tier + "-otlp.yaml", example}
	}
	for _, file := range files {
		args = append(args, "--config", filepath.Join(root, "examples", "tiers", file))
	}
	return program, args
}

// start runs an example of examples/tiers. settings override it. Its own metrics are off
// unless a setting turns them on. Its queue is in a folder of its own if env has none.
func start(t *testing.T, example string, env map[string]string, settings ...string) *collector.Process {
	t.Helper()
	program, args := configurations(t, example)
	args = append(args, "--config", "yaml:service::telemetry::metrics::level: none")
	for _, setting := range settings {
		args = append(args, "--config", "yaml:"+setting)
	}
	all := map[string]string{"QUEUE_DIR": t.TempDir(), "OTLP_HTTP_LISTEN": ownAddress(t)}
	maps.Copy(all, env)
	c := collector.Start(t, all, program, args...)
	c.WaitFor(t, "the start of all components", c.Ready)
	return c
}
