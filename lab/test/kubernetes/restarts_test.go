//go:build e2e

package kubernetes

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hangs is a vLLM that works on requests until it hangs, at an address at which another process can replace it.
type hangs struct {
	address string
	hung    atomic.Bool
	tokens  atomic.Int64
}

// run starts a process, and returns what ends it. It starts at a time and with counters of its own.
func (h *hangs) run(t *testing.T) func() {
	t.Helper()
	listener, err := net.Listen("tcp", h.address)
	require.NoError(t, err)
	h.address = listener.Addr().String()
	h.hung.Store(false)
	h.tokens.Store(0)
	start := time.Now().Unix()
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/version":
			// Before 0.10.2 nothing but a canary tells a stall from frozen gauges.
			fmt.Fprint(w, `{"version":"0.20.0"}`)
			return
		case "/metrics":
		default:
			http.NotFound(w, r)
			return
		}
		if !h.hung.Load() {
			h.tokens.Add(100)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		const of = `{engine="0",model_name="m"}`
		fmt.Fprintf(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running%[1]s 3\n"+
			"# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting%[1]s 0\n"+
			"# TYPE vllm:kv_cache_usage_perc gauge\nvllm:kv_cache_usage_perc%[1]s 0.%[2]d\n"+
			"# TYPE vllm:prompt_tokens_total counter\nvllm:prompt_tokens_total%[1]s %[2]d\n"+
			"# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total%[1]s %[2]d\n"+
			"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %[3]d\n", of, h.tokens.Load(), start)
	})}
	go func() { _ = server.Serve(listener) }()
	stop := func() { _ = server.Close() }
	t.Cleanup(stop)
	return stop
}

// With a real collector: the name in the command is that under which the sidecar knows the server (of another name it
// would answer 200 for ever), a stall fails the probe, and the vLLM that the kubelet has restarted is not restarted
// again, neither while it loads its model, nor when it serves.
func TestTheLivenessProbeRestartsAStalledServerOnce(t *testing.T) {
	t.Parallel()
	vllm, fleet := &hangs{address: "127.0.0.1:0"}, closed(t)
	end := vllm.run(t)
	_, stop := startOf(t, above(t, copied(t), "sidecar", "sidecar-probes"), newBackend(t).URL,
		map[string]string{"127.0.0.1:8000": vllm.address, "127.0.0.1:55690": fleet})
	probe := livenessProbe(t)
	url := regexp.MustCompile(`'(http://[^']+)'`).FindStringSubmatch(strings.Join(probe.Exec.Command, " "))
	require.Len(t, url, 2)
	asked := strings.NewReplacer("127.0.0.1:55690", fleet, "127.0.0.1:8000", vllm.address).Replace(url[1])
	says := func(what string, alive bool, fitness string) {
		t.Helper()
		require.Eventually(t, func() bool {
			_, page := answer(t, asked)
			return strings.Contains(page, fmt.Sprintf(`"serve":%t,"fitness":%q`, alive, fitness))
		}, 3*time.Minute, 100*time.Millisecond, what)
	}
	says("it knows the server, which shows no latencies", true, "undecided")
	vllm.hung.Store(true)
	says("it hangs", false, "stalled")

	end()
	restarted := time.Now()
	for {
		_, page := answer(t, asked)
		if strings.Contains(page, `"serve":true`) {
			break
		}
		require.Less(t, time.Since(restarted), time.Minute)
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("the restarted server counts as stalled for %s", time.Since(restarted).Round(time.Second))
	assert.Less(t, time.Since(restarted), time.Duration(probe.InitialDelaySeconds)*time.Second, "before the kubelet asks for the first time")
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		_, page := answer(t, asked)
		require.Contains(t, page, `"serve":true`, "while the model loads")
	}
	vllm.run(t)
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		_, page := answer(t, asked)
		require.Contains(t, page, `"serve":true`, "when it serves again")
	}
	stop()
}
