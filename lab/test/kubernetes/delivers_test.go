//go:build e2e

package kubernetes

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// limit is how long a test waits for something that takes a second or two.
const limit = 40 * time.Second

// target is a vLLM server, or an endpoint picker, which wants a token.
type target struct {
	*httptest.Server
	token            atomic.Value
	answered, denied atomic.Int64
}

func newTarget(t *testing.T, token string) *target {
	t.Helper()
	s := &target{}
	s.token.Store(token)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wanted, _ := s.token.Load().(string)
		switch {
		case wanted != "" && r.Header.Get("Authorization") != "Bearer "+wanted:
			s.denied.Add(1)
			http.Error(w, "Authentication failed", http.StatusInternalServerError)
		case r.URL.Path != "/metrics":
			http.NotFound(w, r)
		default:
			s.answered.Add(1)
			w.Header().Set("Content-Type", "text/plain; version=0.0.4")
			fmt.Fprint(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3.0\n")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// backend keeps the attributes of the newest resource that it was sent with the
// right Authorization.
type backend struct {
	*httptest.Server
	newest atomic.Value
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		metrics, err := fleet.Metrics(r)
		if r.Header.Get("Authorization") != "Bearer replace-me" || err != nil {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		for _, rm := range metrics.ResourceMetrics().All() {
			b.newest.Store(rm.Resource().Attributes().AsRaw())
		}
	}))
	t.Cleanup(b.Close)
	return b
}

// hasty are settings under which a test need not wait for the intervals of production, with a
// folder of its own in the place of the pod's.
func hasty(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf(`
extensions:
  file_storage: {directory: %[1]q, compaction: {directory: %[1]q}}
exporters:
  otlp_http: {compression: none, sending_queue: {batch: {flush_timeout: 100ms}}}
`, t.TempDir())
}

// pods is the number of addresses that were given to pods.
var pods atomic.Int64

// start runs an overlay's configuration as it is, but for hasty, for more settings of the
// test, and for texts that are replaced, old by new. It has a loopback address of its own, as
// a pod has. It returns the environment, and what stops the collector.
func start(t *testing.T, overlay, endpoint string, replaced map[string]string, settings ...string) (map[string]string, func()) {
	t.Helper()
	return startOf(t, mustDecode(t, overlays(t)[overlay]), endpoint, replaced, settings...)
}

func startOf(t *testing.T, all cluster, endpoint string, replaced map[string]string, settings ...string) (map[string]string, func()) {
	t.Helper()
	w := all.workloads()[0]
	texts, ok := configTexts(all.index(), w, w.ours()[0])
	require.True(t, ok)
	env := variables(all.index(), w, w.ours()[0])
	env["OTLP_ENDPOINT"] = endpoint
	env["POD_IP"] = fmt.Sprintf("127.0.1.%d", pods.Add(1))
	replaced = maps.Clone(replaced)
	replaced["    timeout: 5s"] = "    timeout: 500ms\n    collection_interval: 500ms\n    initial_delay: 0s"
	if all := strings.Join(texts, "\n"); replaced["127.0.0.1:55690"] == "" && strings.Contains(all, "127.0.0.1:55690") {
		replaced["127.0.0.1:55690"] = env["POD_IP"] + ":55690" // a pod has a loopback address of its own
	}
	for before, after := range replaced {
		require.Contains(t, strings.Join(texts, "\n"), before)
		for i := range texts {
			texts[i] = strings.ReplaceAll(texts[i], before, after)
		}
	}
	cmd := run(t, slices.Concat(texts, []string{hasty(t)}, settings), env, gates(w.ours()[0])...)
	log := &collector.Log{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	return env, func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait(), "%s", log)
		assert.NotContains(t, log.String(), "legacy service.telemetry", "each start would warn of the shipped configuration")
		if t.Failed() {
			t.Logf("%s", log)
		}
	}
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	assert.Eventually(t, ok, limit, 50*time.Millisecond, what)
}

func TestTheSidecarDelivers(t *testing.T) {
	vllm, vendor := newTarget(t, ""), newBackend(t)
	env, stop := start(t, "sidecar", vendor.URL, map[string]string{"http://127.0.0.1:8000": vllm.URL})
	eventually(t, "points at the backend", func() bool { return vendor.newest.Load() != nil })
	stop()

	attributes, ok := vendor.newest.Load().(map[string]any)
	require.True(t, ok)
	for name, value := range map[string]string{
		"service.instance.id": "vllm.pod-1", "k8s.pod.name": "pod-1", "k8s.namespace.name": "vllm",
		"k8s.node.name": "node-1", "k8s.pod.uid": env["POD_UID"],
	} {
		assert.Equal(t, value, attributes[name], name)
	}
}

// The kubelet renews a projected token by turning a link to a folder with a new one.
func TestTheGatewayFollowsItsToken(t *testing.T) {
	dir := t.TempDir()
	renew := func(token string) {
		fresh := filepath.Join(dir, ".."+token)
		require.NoError(t, os.Mkdir(fresh, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(fresh, "token"), []byte(token), 0o600))
		require.NoError(t, os.Symlink(".."+token, filepath.Join(dir, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
	}
	renew("first")
	require.NoError(t, os.Symlink(filepath.Join("..data", "token"), filepath.Join(dir, "token")))

	picker, vendor := newTarget(t, "first"), newBackend(t)
	_, stop := start(t, "gateway", vendor.URL, map[string]string{
		"${env:PICKER_ENDPOINT}": picker.URL, "/var/run/secrets/otelcol-vllm": dir,
		// There is no API server here.
		"receivers: [vllm/picker, vllm/lora]": "receivers: [vllm/picker]",
	})
	eventually(t, "an answer to the first token", func() bool { return picker.answered.Load() > 0 })
	assert.Zero(t, picker.denied.Load())

	renew("second")
	require.NoError(t, os.RemoveAll(filepath.Join(dir, "..first")))
	picker.token.Store("second")
	before := picker.answered.Load()
	eventually(t, "answers to the second token", func() bool { return picker.answered.Load() > before+1 })
	eventually(t, "points at the backend", func() bool { return vendor.newest.Load() != nil })
	stop()
}
