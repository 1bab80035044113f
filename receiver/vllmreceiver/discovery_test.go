package vllmreceiver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// startWith runs a receiver from YAML, as the collector does. The deadline of a discovered
// target is at most its interval, so that is long: no scrape ends at it on a busy machine.
func startWith(t *testing.T, sink *consumertest.MetricsSink, text string) (*vllmReceiver, *observer.ObservedLogs) {
	t.Helper()
	cfg, err := decode(t, "collection_interval: 1s\ninitial_delay: 0s\n"+text)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	cfg.Client.Timeout = within
	core, logs := observer.New(zap.DebugLevel)
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	r, err := newReceiver(cfg, settings, sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	return r, logs
}

// podServer is a vLLM server at an address of a pod. Port 0 takes any.
func podServer(t *testing.T, ip string, port int) (taken int) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(quick))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return listener.Addr().(*net.TCPAddr).Port
}

func pod(name, ip string, unready bool) kubeapi.Object {
	return kubeapi.Pod{
		Namespace: "inference", Name: name, Node: "node-1", IP: ip, Unready: unready,
		Labels: map[string]string{"app": "vllm"}, OwnerKind: "StatefulSet", OwnerName: "llama",
		Containers: []kubeapi.Container{{Name: "vllm"}},
	}.Object()
}

// from returns the batches of a pod.
func from(sink *consumertest.MetricsSink, name string) []pmetric.Metrics {
	var out []pmetric.Metrics
	for _, m := range sink.AllMetrics() {
		if strings.Contains(render(m), `k8s.pod.name="`+name+`"`) {
			out = append(out, m)
		}
	}
	return out
}

func TestPodsComeAndGoAndEveryPointSaysWhichPod(t *testing.T) {
	t.Parallel()
	port := podServer(t, "127.0.0.2", 0)
	podServer(t, "127.0.0.3", port)
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, pod("llama-0", "127.0.0.2", false))
	api.Apply(kubeapi.Pods, pod("llama-1", "127.0.0.3", true))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"app": "vllm"}, port))
	sink := new(consumertest.MetricsSink)
	r, logs := startWith(t, sink, `
discovery:
  inference_pool: {name: llama, namespace: inference, node: node-1, api_server: `+api.URL+`}
resource_attributes:
  k8s.pod.uid: {enabled: false}
`)
	assert.Eventually(t, func() bool { return len(from(sink, "llama-0")) >= 2 }, within, 5*time.Millisecond)
	api.Apply(kubeapi.Pods, pod("llama-1", "127.0.0.3", false))
	assert.Eventually(t, func() bool { return len(from(sink, "llama-1")) >= 2 }, within, 5*time.Millisecond)
	assert.EqualValues(t, 2, r.targets.Load())

	api.Delete(kubeapi.Pods, "inference", "llama-0")
	assert.Eventually(t, func() bool { return r.targets.Load() == 1 }, within, 5*time.Millisecond)
	assert.Eventually(t, func() bool {
		all := from(sink, "llama-0")
		return len(ends(all[len(all)-1])) > 0
	}, within, 5*time.Millisecond)
	last := from(sink, "llama-0")
	assert.ElementsMatch(t, []string{
		"vllm.num_requests.running", "vllm.up", "vllm.scrape.duration", "vllm.scrape.samples",
		"vllm.pod.ready", "vllm.pod.terminating",
	}, ends(last[len(last)-1]))
	count := len(from(sink, "llama-1"))
	assert.Eventually(t, func() bool { return len(from(sink, "llama-1")) > count+2 }, within, 5*time.Millisecond)
	assert.Len(t, from(sink, "llama-0"), len(last), "no point after the end")

	for _, m := range sink.AllMetrics() {
		attributes := m.ResourceMetrics().At(0).Resource().Attributes().AsRaw()
		name, ip := "llama-0", "127.0.0.2"
		if attributes["k8s.pod.name"] == "llama-1" {
			name, ip = "llama-1", "127.0.0.3"
		}
		assert.Equal(t, map[string]any{
			"service.name": "vllm", "service.instance.id": net.JoinHostPort(ip, strconv.Itoa(port)),
			"server.address": ip, "server.port": int64(port), "url.scheme": "http",
			"k8s.pod.name": name, "k8s.namespace.name": "inference", "k8s.node.name": "node-1",
			"k8s.container.name": "vllm", "k8s.statefulset.name": "llama", "inference_gateway.pool.name": "llama",
		}, attributes)
	}
	for _, entry := range logs.FilterLevelExact(zap.WarnLevel).All() {
		// The timeout is at most the interval, which a busy machine can miss.
		if !strings.Contains(entry.Message, "did not answer within the timeout") {
			assert.Fail(t, "a warning", entry.Message)
		}
	}
}

func TestATargetThatChangesItsAttributesIsAnother(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(metricsServer(t, quick), "http://")
	file := filepath.Join(t.TempDir(), "targets.yaml")
	write := func(labels string) {
		text := fmt.Sprintf("[{targets: [%q], labels: {%s}}]", address, labels)
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	write("team: search, job: llama, instance: gpu-7")
	sink := new(consumertest.MetricsSink)
	r, _ := startWith(t, sink, "discovery: {file_sd_configs: [{files: ["+file+"]}]}")
	with := func(text string) (found []pmetric.Metrics) {
		for _, m := range sink.AllMetrics() {
			if strings.Contains(render(m), text) {
				found = append(found, m)
			}
		}
		return found
	}
	assert.Eventually(t, func() bool { return len(with(`team="search"`)) >= 2 }, within, 5*time.Millisecond)
	first := with(`team="search"`)[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	assert.Equal(t, "gpu-7", first["service.instance.id"])
	assert.Equal(t, "llama", first["service.name"])

	write("instance: gpu-7, job: llama, team: chat")
	assert.Eventually(t, func() bool { return len(with(`team="chat"`)) >= 2 }, within, 5*time.Millisecond)
	before := with(`team="search"`)
	assert.Contains(t, ends(before[len(before)-1]), "vllm.up", "the old series have ended")
	assert.EqualValues(t, 1, r.targets.Load())

	// The same labels in another order are the same target.
	count := len(sink.AllMetrics())
	write("team: chat, job: llama, instance: gpu-7")
	assert.Eventually(t, func() bool { return len(sink.AllMetrics()) > count+5 }, within, 5*time.Millisecond)
	for _, m := range sink.AllMetrics()[count:] {
		assert.NotContains(t, ends(m), "vllm.up", "only a target that is removed ends this")
	}
}

func TestDiscoveryIgnoresListedTargets(t *testing.T) {
	t.Parallel()
	listed, found := metricsServer(t, quick), metricsServer(t, quick)
	file := filepath.Join(t.TempDir(), "targets.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `[{"targets": [%q, %q], "labels": {"by": "discovery"}}]`,
		strings.TrimPrefix(listed, "http://"), strings.TrimPrefix(found, "http://")), 0o600))
	sink := new(consumertest.MetricsSink)
	r, _ := startWith(t, sink, "endpoint: "+listed+"\ndiscovery: {file_sd_configs: [{files: ["+file+"]}]}")
	assert.Eventually(t, func() bool { return len(batches(sink, found)) >= 1 }, within, 5*time.Millisecond)
	assert.EqualValues(t, 2, r.targets.Load())
	require.NoError(t, os.Remove(file))
	assert.Eventually(t, func() bool { return r.targets.Load() == 1 }, within, 5*time.Millisecond)
	count := len(batches(sink, listed))
	assert.Eventually(t, func() bool { return len(batches(sink, listed)) > count }, within, 5*time.Millisecond)
	for _, m := range batches(sink, listed) {
		assert.NotContains(t, render(m), `by="discovery"`)
	}
}

func TestDiscoveredTargetsHaveTheirOwnIntervalAndParameters(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 100)
	address := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" && r.URL.Path != "/load" {
			select {
			case asked <- r.URL.String():
			default:
			}
		}
		quick(w, r)
	})
	cfg := `
collection_interval: 1h
discovery:
  static_configs:
    - targets: ["` + strings.TrimPrefix(address, "http://") + `"]
      labels: {__scrape_interval__: 1s, __metrics_path__: /m, __param_module: engine}
`
	parsed, err := decode(t, cfg)
	require.NoError(t, err)
	parsed.Controller.InitialDelay = 0
	r, err := newReceiver(parsed, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, r.Shutdown(context.Background())) }()
	for range 3 {
		select {
		case url := <-asked:
			assert.Equal(t, "/m?module=engine", url)
		case <-time.After(within):
			require.FailNow(t, "not scraped at its own interval")
		}
	}
}

func TestTheLimitOfTargetsIsCounted(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.MetricsSink)
	r, _ := startWith(t, sink, `
limits: {targets: 2}
discovery: {static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]}]}
`)
	assert.Eventually(t, func() bool { return r.overflow.Load() == 1 }, within, 5*time.Millisecond)
	// The others are started after they have been counted.
	assert.Eventually(t, func() bool { return r.targets.Load() == 2 }, within, 5*time.Millisecond)
}

// A consumer that hangs while a target's end is sent must not hang Shutdown.
func TestShutdownWhileTheEndOfATargetIsBeingSent(t *testing.T) {
	t.Parallel()
	address := strings.TrimPrefix(metricsServer(t, quick), "http://")
	file := filepath.Join(t.TempDir(), "targets.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"targets": ["`+address+`"]}]`), 0o600))
	hangs := make(chan struct{}, 100)
	next := &hanging{hangs: hangs}
	cfg, err := decode(t, "collection_interval: 200ms\ninitial_delay: 0s\ndiscovery: {file_sd_configs: [{files: ["+file+"]}]}")
	require.NoError(t, err)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	assert.Eventually(t, func() bool { return next.delivered.Load() > 1 }, within, 5*time.Millisecond)
	require.NoError(t, os.Remove(file))
	select {
	case <-hangs:
	case <-time.After(within):
		require.FailNow(t, "the end was not sent")
	}
	started := time.Now()
	require.NoError(t, r.Shutdown(t.Context()))
	assert.Less(t, time.Since(started), within/2)
}

// A certificate may be mounted later than the first target is found.
func TestATargetThatCannotBeStartedIsLoggedOnce(t *testing.T) {
	t.Parallel()
	sink := new(consumertest.MetricsSink)
	r, logs := startWith(t, sink, `
tls: {ca_file: doc.go}
discovery: {static_configs: [{targets: ["127.0.0.1:1", "127.0.0.1:2"], labels: {__scheme__: https}}]}
`)
	lines := func() int { return logs.FilterMessageSnippet("Discovered targets cannot be started").Len() }
	assert.Eventually(t, func() bool { return lines() > 0 }, within, 5*time.Millisecond)
	time.Sleep(100 * time.Millisecond)
	assert.Equal(t, 1, lines())
	assert.Zero(t, r.targets.Load())
}

func TestDiscoveryMistakesAreReportedWithAllOthers(t *testing.T) {
	cfg, err := decode(t, `
naming: otel
limits: {targets: 0}
discovery:
  kubernetes: {selector: a=b, node: ""}
  ec2_sd_configs: [{}]
`)
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.Error(t, err)
	for _, want := range []string{
		"naming: ", "limits::targets: must be more than 0", "discovery::ec2_sd_configs: is unknown",
	} {
		assert.Contains(t, err.Error(), want)
	}
	assert.NotContains(t, err.Error(), "no server to scrape")

	for text, want := range map[string]string{
		"discovery: {kubernetes: {selector: a=b, node: }}": "discovery::kubernetes::node: is empty",
		"discovery: {relabel_configs: []}":                 "discovery: has no mechanism",
		"discovery:":                                       "discovery: has no mechanism",
	} {
		cfg, err := decode(t, text)
		require.NoError(t, err)
		require.ErrorContains(t, confmap.Validate(cfg), want)
	}
}

func TestStartFailsWhereDiscoveryCannotWork(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	cfg, err := decode(t, `{endpoint: "http://127.0.0.1:1", discovery: {kubernetes: {selector: a=b}}}`)
	require.NoError(t, err)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	require.ErrorContains(t, r.Start(t.Context(), componenttest.NewNopHost()),
		"discovery: kubernetes: this is not a pod of a Kubernetes cluster; set kubeconfig_file or api_server")
	require.NoError(t, r.Shutdown(t.Context()))
}

func TestTheSecretsOfDiscoveryAreNotPrinted(t *testing.T) {
	cfg, err := decode(t, `discovery: {http_sd_configs: [{url: "http://sd", authorization: {credentials: very-secret}}]}`)
	require.NoError(t, err)
	require.True(t, cfg.Discovery.IsSet())
	assert.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), "very-secret")
	out := confmap.New()
	require.NoError(t, out.Marshal(cfg))
	assert.NotContains(t, fmt.Sprint(out.ToStringMap()), "very-secret")
}

// hanging is a consumer that takes points but hangs on the end of a target. A scrape that runs into
// its timeout on a busy machine ends series too, and it would hang there until the end of Shutdown's
// context.
type hanging struct {
	hangs     chan struct{}
	delivered atomic.Int64
}

func (*hanging) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (h *hanging) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if !slices.Contains(ends(metrics), "vllm.up") {
		h.delivered.Add(1)
		return nil
	}
	h.hangs <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// When discovery stops, a change that is being applied must not start further targets.
func TestNoTargetIsStartedAfterTheEndOfDiscovery(t *testing.T) {
	t.Parallel()
	r := start(t, new(consumertest.MetricsSink), func(*Config) {}, metricsServer(t, quick))
	d := &targetDiscovery{receiver: r, configured: map[string]bool{}, scraped: map[string]discover.Target{}}
	address, err := url.Parse(metricsServer(t, quick) + "/metrics")
	require.NoError(t, err)
	wanted := []discover.Target{{URL: address, Interval: time.Second, Timeout: time.Second}}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	d.reconcile(ended, wanted, 0)
	assert.EqualValues(t, 1, r.targets.Load(), "only the configured one")
	assert.Empty(t, d.scraped)
	assert.True(t, d.reconcile(t.Context(), wanted, 3))
	assert.EqualValues(t, 2, r.targets.Load())
	assert.EqualValues(t, 3, r.overflow.Load())
}

// The ends of removed targets are sent side by side, so that a slow pipeline does not delay
// discovery by its time for each target; and only eight at a time.
func TestEightRemovedTargetsEndAtATime(t *testing.T) {
	t.Parallel()
	const targets = 20
	var ending, ended atomic.Int64
	release := make(chan struct{})
	next, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		if !slices.Contains(ends(metrics), "vllm.up") {
			return nil
		}
		ending.Add(1)
		<-release
		ended.Add(1)
		return nil
	})
	require.NoError(t, err)
	d, r := discovered(t, next)
	server := metricsServer(t, quick)
	var wanted []discover.Target
	for i := range targets {
		wanted = append(wanted, discoveredAt(t, fmt.Sprintf("%s/%d/metrics", server, i)))
		wanted[i].Interval = 200 * time.Millisecond
	}
	require.True(t, d.reconcile(t.Context(), wanted, 0))
	// A target without points has no end to send.
	require.Eventually(t, func() bool {
		r.status.mu.Lock()
		defer r.status.mu.Unlock()
		return r.status.working == targets
	}, within, time.Millisecond)
	done := make(chan bool, 1)
	go func() { done <- d.reconcile(t.Context(), nil, 0) }()
	require.Eventually(t, func() bool { return ending.Load() == 8 }, within, time.Millisecond)
	time.Sleep(200 * time.Millisecond)
	assert.EqualValues(t, 8, ending.Load())
	close(release)
	assert.True(t, <-done)
	assert.EqualValues(t, targets, ended.Load())
}
