// Package airgapped shows that what is shipped needs no internet.
package airgapped

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// inside is set in the process that has a network namespace of its own.
const inside = "OTELCOL_VLLM_AIRGAPPED"

// A collector that finds pods through an API server and sends OTLP, and vllmctl, connect to these and to
// the targets, and ask no name server.
func TestNothingElseIsConnectedTo(t *testing.T) {
	if os.Getenv(inside) != "" {
		connects(t)
		return
	}
	collector.Binary(t)
	command := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")
	command.Env = append(os.Environ(), inside+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	var out collector.Log
	command.Stdout, command.Stderr = &out, &out
	if err := command.Start(); err != nil {
		t.Skip("this machine gives no network namespace:", err)
	}
	require.NoError(t, command.Wait(), out.String())
	assert.Contains(t, out.String(), "--- PASS: "+t.Name())
}

func connects(t *testing.T) {
	t.Helper()
	seen := record(t)
	// The recorder sees an address and a name of the internet; otherwise it would show nothing.
	_, err := net.DefaultResolver.LookupHost(t.Context(), "registry.example.com")
	require.Error(t, err)
	dial(t, "192.0.2.1:443")
	before := seen.until(t, tcp("192.0.2.1:443"))
	require.Contains(t, strings.Join(before, " "), ":53", "the name server")
	seen.mu.Lock()
	seen.reached = nil
	seen.mu.Unlock()

	body, err := os.ReadFile("../../../testdata/v1-0.24.0/metrics.txt")
	require.NoError(t, err)
	vllm, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "127.0.0.3:0")
	require.NoError(t, err)
	server := fleet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write(body)
	}))
	defer server.Close()
	go func() { _ = server.Serve(vllm) }()
	host, port, err := net.SplitHostPort(vllm.Addr().String())
	require.NoError(t, err)
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, kubeapi.Pod{
		Namespace: "models", Name: "chat-0", IP: host, Labels: map[string]string{"app.kubernetes.io/component": "inference"},
		Containers: []kubeapi.Container{{Name: "inference"}},
	}.Object())
	var scrapes atomic.Int64
	backend, err := fleet.NewBackend(context.Background(), func(request *fleet.Request) {
		for i := range request.Metrics.ResourceMetrics().Len() {
			for point := range fleet.Points(request.Metrics.ResourceMetrics().At(i)) {
				if point.Metric == "vllm.diagnosis.severity" {
					scrapes.Add(1)
				}
			}
		}
	})
	require.NoError(t, err)
	defer backend.Close()

	// Its own metrics are on, as it is started by users.
	c := collector.Start(t, map[string]string{"VLLM_NAMESPACE": "models", "VLLM_PORT": port, "KUBERNETES_API": api.URL},
		collector.Binary(t), "--config", "../../../examples/discovery-kubernetes.yaml",
		"--config", "yaml:receivers::vllm: {collection_interval: 1s, timeout: 1s}", "--config", "yaml:extensions::vllm_fleet:",
		"--config", "yaml:exporters::otlp_http::endpoint: http://"+backend.Address,
		"--config", "yaml:service::extensions: [vllm_fleet]", "--config", "yaml:service::pipelines::metrics::exporters: [otlp_http, prometheus]")
	c.WaitFor(t, "three diagnoses at the backend", func() bool { return scrapes.Load() >= 3 })
	c.Stop(t)

	ctl, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(collector.Binary(t)), "vllmctl"), "check", vllm.Addr().String()).CombinedOutput()
	require.Contains(t, string(ctl), "0 problems", err)

	dial(t, "192.0.2.2:9")
	assert.ElementsMatch(t, []string{
		tcp(strings.TrimPrefix(api.URL, "http://")), tcp(vllm.Addr().String()), tcp(backend.Address), tcp("192.0.2.2:9"),
	}, seen.until(t, tcp("192.0.2.2:9")))
}

// dial tries to connect; nothing listens there.
func dial(t *testing.T, address string) {
	t.Helper()
	_, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp4", address)
	require.Error(t, err)
}
