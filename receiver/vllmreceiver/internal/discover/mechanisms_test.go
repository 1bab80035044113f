package discover

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/prometheus/discovery"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

func TestOnlyTheNamedMechanismsAreLinkedIn(t *testing.T) {
	t.Parallel()
	assert.Equal(t, []string{"dns", "file", "http", "kubernetes", "static"}, discovery.RegisteredConfigNames())
}

func TestFilesAreReadAgainWhenTheyAreReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// As kubectl and editors do: a whole new file under the old name.
	replace := func(text string) {
		next := filepath.Join(dir, "next")
		require.NoError(t, os.WriteFile(next, []byte(text), 0o600))
		require.NoError(t, os.Rename(next, filepath.Join(dir, "targets.yaml")))
	}
	replace(`[{targets: ["vllm-0:8000", "vllm-1:8000"], labels: {team: search}}]`)
	r := run(t, 10, "file_sd_configs: [{files: ["+dir+"/*.yaml], refresh_interval: 1h}]")
	r.waitFor("the file", "http://vllm-0:8000/metrics", "http://vllm-1:8000/metrics")
	assert.Equal(t, map[string]string{"team": "search"}, r.attributes("http://vllm-0:8000/metrics"))

	replace(`[{targets: ["vllm-1:8000", "vllm-2:8000"], labels: {team: search}}]`)
	r.waitFor("the new file", "http://vllm-1:8000/metrics", "http://vllm-2:8000/metrics")

	replace(`[{targets: [`)
	r.waitForLog("Discovery: the targets of a file of file_sd_configs stay as they are, because it could not be read")
	r.waitFor("a broken file changes nothing", "http://vllm-1:8000/metrics", "http://vllm-2:8000/metrics")

	require.NoError(t, os.Remove(filepath.Join(dir, "targets.yaml")))
	r.waitFor("the file is gone")
}

func TestAnHTTPEndpointListsTheTargets(t *testing.T) {
	t.Parallel()
	var body atomic.Value
	body.Store(`[{"targets": ["vllm-0:8000"], "labels": {"__meta_zone": "z1", "__metrics_path__": "/m", "zone": "z1"}}]`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer very-secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, body.Load())
	}))
	t.Cleanup(server.Close)
	config := "http_sd_configs: [{url: '" + server.URL + "/?key=hidden', refresh_interval: 100ms, authorization: {credentials: very-secret}}]"
	r := run(t, 10, config)
	r.waitFor("the first answer", "http://vllm-0:8000/m")
	assert.Equal(t, map[string]string{"zone": "z1"}, r.attributes("http://vllm-0:8000/m"), "other meta labels do not become attributes")
	body.Store(`[{"targets": ["vllm-1:8000"]}]`)
	r.waitFor("the second answer", "http://vllm-1:8000/metrics")
	body.Store(`not JSON`)
	r.waitForLog("Discovery: the targets of http_sd_configs stay as they are, because the list could not be read")
	r.waitFor("a bad answer changes nothing", "http://vllm-1:8000/metrics")

	server.Close()
	require.Eventually(t, func() bool { return r.logged("refused") > 0 }, within, 10*time.Millisecond)
	all := strings.Join(r.lines(), "\n") + fmt.Sprintf("%v %+v %#v", r.runner.settings, r.runner.settings, r.runner.settings)
	assert.NotContains(t, all, "very-secret")
	assert.NotContains(t, all, "hidden")
	// Repetitions have the level debug.
	assert.Equal(t, 1, r.logs.FilterLevelExact(zap.WarnLevel).FilterMessageSnippet("refused").Len(), "%v", r.lines())
}

// The library reads the system's list of name servers, which a test cannot
// point at its own; the records are therefore the library's to test.
func TestDNSIsConfiguredAsInPrometheus(t *testing.T) {
	t.Parallel()
	settings := parse(t, "dns_sd_configs: [{names: [_http._tcp.vllm.svc], refresh_interval: 10s}, {names: [vllm.svc], type: A, port: 8000}]")
	require.Len(t, settings.Mechanisms, 2)
	for _, c := range settings.Mechanisms {
		assert.Equal(t, "dns", c.Name())
	}
	_, err := NewRunner(settings, Options{Logger: zap.NewNop(), Defaults: defaults, Limit: 1})
	require.NoError(t, err)
}

func TestAListAndTheLimit(t *testing.T) {
	t.Parallel()
	r := run(t, 2, `static_configs: [{targets: ["b:1", "c:1"]}, {targets: ["a:1", "bad/path"]}, {targets: ["b:1"]}]`)
	r.waitFor("the first by address", "http://a:1/metrics", "http://b:1/metrics")
	assert.Equal(t, 1, r.over)
	assert.Equal(t, 1, r.waitForLog("limits::targets"))
	assert.Equal(t, 1, r.waitForLog("cannot be scraped"))
}

func TestTargetsThatCouldNotBeStartedAreReportedAgain(t *testing.T) {
	t.Parallel()
	reported := make(chan string, 10)
	var calls atomic.Int64
	runner, err := NewRunner(parse(t, `static_configs: [{targets: ["a:1"]}]`), Options{
		Logger: zap.NewNop(), Defaults: defaults, Limit: 1, Delay: 10 * time.Millisecond, Retry: 50 * time.Millisecond,
		Wanted: func(_ context.Context, targets []Target, _ int) bool {
			reported <- addresses(targets)
			return calls.Add(1) == 3
		},
	})
	require.NoError(t, err)
	require.NoError(t, runner.Start())
	for range 3 {
		select {
		case wanted := <-reported:
			assert.Equal(t, "http://a:1/metrics", wanted)
		case <-time.After(within):
			require.FailNow(t, "not reported again")
		}
	}
	time.Sleep(200 * time.Millisecond)
	require.NoError(t, runner.Shutdown(t.Context()))
	assert.EqualValues(t, 3, calls.Load(), "after success it is not reported again")
}

func TestShutdownWithoutStart(t *testing.T) {
	t.Parallel()
	runner, err := NewRunner(parse(t, `static_configs: [{targets: ["a:1"]}]`), Options{Logger: zap.NewNop(), Defaults: defaults, Limit: 1})
	require.NoError(t, err)
	require.NoError(t, runner.Shutdown(context.Background()))
}

// Shutdown returns after the last goroutine of this package has ended. This test does not run
// together with others, whose goroutines it would find.
func TestNoGoroutineOutlivesShutdown(t *testing.T) {
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, vllmPod("a", "10.0.0.1"))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", vllmLabels, 8001))
	running := func() (out []string) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for _, kind := range []string{"(*Runner).loop", "(*prober).run", "(*podWatcher).run", "(*podWatcher).watch", "(*follower).run", "(*follower).watch", "(*objectWatch).run"} {
			if strings.Contains(string(stacks), "internal/discover."+kind+"(") {
				out = append(out, kind)
			}
		}
		return out
	}
	require.Empty(t, running())
	r := run(t, 10, poolSection(api)+"\n"+shortForm(api, ""))
	r.waitFor("both mechanisms", "http://10.0.0.1:8000/metrics", "http://10.0.0.1:8001/metrics")
	require.Subset(t, running(), []string{"(*Runner).loop", "(*podWatcher).run", "(*follower).run", "(*objectWatch).run"})
	require.NoError(t, r.runner.Shutdown(t.Context()))
	assert.Empty(t, running())
}

func TestShutdownWaitsForTheLastCallUntilItsDeadline(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	runner, err := NewRunner(parse(t, `static_configs: [{targets: ["a:1"]}]`), Options{
		Logger: zap.NewNop(), Defaults: defaults, Limit: 1, Delay: 10 * time.Millisecond,
		Wanted: func(context.Context, []Target, int) bool { close(entered); <-release; return true },
	})
	require.NoError(t, err)
	require.NoError(t, runner.Start())
	<-entered
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorContains(t, runner.Shutdown(short), "did not end in time")
	close(release)
	require.NoError(t, runner.Shutdown(t.Context()))
}

func TestAMechanismThatCannotWorkFailsAtTheStart(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for name, c := range map[string]struct{ section, want string }{
		"not in a cluster": {"kubernetes: {selector: a=b}", "kubernetes: this is not a pod of a Kubernetes cluster; set kubeconfig_file or api_server"},
		"a pool outside":   {"inference_pool: {name: a, namespace: b}", "inference_pool: this is not a pod of a Kubernetes cluster"},
		"no kubeconfig":    {"kubernetes: {selector: a=b, kubeconfig_file: doc.go}", "kubernetes: kubeconfig_file:"},
		"no certificate": {
			"http_sd_configs: [{url: 'https://sd', tls_config: {ca_file: doc.go}}]", "doc.go",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewRunner(parse(t, c.section), Options{Logger: zap.NewNop(), Defaults: defaults, Limit: 1})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestAnAPIServerThatDoesNotAnswerIsLoggedOnce(t *testing.T) {
	t.Parallel()
	r := run(t, 10, "kubernetes: {selector: app=vllm, api_server: 'http://127.0.0.1:1'}")
	r.waitForLog("Kubernetes cannot be asked for pods in all namespaces")
	time.Sleep(time.Second)
	assert.Equal(t, 1, r.logged("Kubernetes cannot be asked for pods"))
}
