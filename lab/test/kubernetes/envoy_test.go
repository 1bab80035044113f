package kubernetes

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// envoyProgram is what "make envoy" fetches.
const envoyProgram = root + "/bin/tools/envoy/envoy/_bin/envoy"

// behind are three servers behind a real Envoy with the example, and requests that never stop.
type behind struct {
	url, fleet string
	got        [3]atomic.Int64
	answered   atomic.Int64
	failed     atomic.Int64
}

// newBehind starts all but the collector. The checks are more frequent than in the example, so that the test is short.
func newBehind(t *testing.T) *behind {
	t.Helper()
	if _, err := os.Stat(envoyProgram); err != nil {
		t.Skip("there is no Envoy here; make envoy fetches it")
	}
	b := &behind{fleet: closed(t)}
	content, err := os.ReadFile(root + "/examples/probes/envoy.yaml")
	require.NoError(t, err)
	text := string(content)
	replace := func(before, after string) {
		require.Contains(t, text, before)
		text = strings.ReplaceAll(text, before, after)
	}
	port := func(address string) string {
		return "address: 127.0.0.1, port_value: " + address[strings.LastIndex(address, ":")+1:] + "}"
	}
	for i, name := range []string{"8000", "8001", "8002"} {
		server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { b.got[i].Add(1) }))
		t.Cleanup(server.Close)
		replace(port(":"+name), port(server.URL))
	}
	front := closed(t)
	replace(port(":8080"), port(front))
	replace(port(":55690"), port(b.fleet))
	replace("interval: 5s", "interval: 0.2s")
	replace("timeout: 2s", "timeout: 0.5s")
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	log := &collector.Log{}
	cmd := exec.CommandContext(ctx, envoyProgram, "-c", file, "--disable-hot-restart", "--concurrency", "1", "--log-level", "warn")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	b.url = "http://" + front
	done := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
		<-done
		if t.Failed() {
			t.Logf("%s", log)
		}
	})
	b.until(t, "Envoy answers", func() bool { return b.ask(ctx) })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if b.ask(ctx) {
				b.answered.Add(1)
			} else if ctx.Err() == nil {
				b.failed.Add(1)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	return b
}

func (b *behind) ask(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/v1/models", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

func (b *behind) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 50*time.Millisecond, what)
}

// parts waits until some requests have ended, and says which servers got one of them.
func (b *behind) parts() (parts [3]bool) {
	var before [3]int64
	for i := range b.got {
		before[i] = b.got[i].Load()
	}
	ended := func() int64 { return b.answered.Load() + b.failed.Load() }
	for until := ended() + 60; ended() < until; {
		time.Sleep(5 * time.Millisecond)
	}
	for i := range b.got {
		parts[i] = b.got[i].Load() > before[i]
	}
	return parts
}

// collects starts a collector that knows the servers under the names of the example; the first is in a condition.
func (b *behind) collects(t *testing.T, condition string) func() {
	t.Helper()
	return answerAt(t, b.fleet, pretended{func(e *fleet.Engine) { e.Condition = condition }})
}

var (
	everyServer = [3]bool{true, true, true}
	withoutSick = [3]bool{false, true, true}
)

// Envoy takes a stalled server out, and goes on with all servers whatever happens to the collector. No request fails.
func TestEnvoyTakesOutWhatStallsAndNothingElse(t *testing.T) {
	b := newBehind(t)
	b.until(t, "without a collector all servers get requests", func() bool { return b.parts() == everyServer })

	stop := b.collects(t, "healthy")
	b.until(t, "all are healthy", func() bool { return b.parts() == everyServer })
	stop()
	stop = b.collects(t, "stalled")
	b.until(t, "the stalled one is out", func() bool { return b.parts() == withoutSick })
	stop()
	b.until(t, "the collector is down", func() bool { return b.parts() == everyServer })
	stop = b.collects(t, "stalled")
	b.until(t, "it is back", func() bool { return b.parts() == withoutSick })
	stop()

	// Statuses that are not vllm_fleet's, also of one server only, and no answer: for longer than three checks.
	for name, other := range map[string]http.HandlerFunc{
		"not found":    http.NotFound,
		"unauthorized": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"an error":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
		"no answer":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	} {
		server := &http.Server{Addr: b.fleet, ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if name == "no answer" || r.Host == "127.0.0.1:8000" {
				other(w, r)
			}
		})}
		go func() { _ = server.ListenAndServe() }()
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			b.parts()
		}
		assert.Equal(t, everyServer, b.parts(), name)
		require.NoError(t, server.Close())
	}
	assert.Zero(t, b.failed.Load(), "of %d requests", b.answered.Load())
}
