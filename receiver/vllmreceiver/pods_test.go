package vllmreceiver

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// latest returns the value of a metric in the newest batch of a pod; -1 without.
func latest(sink *consumertest.MetricsSink, podName, metric string) float64 {
	all := from(sink, podName)
	if len(all) == 0 {
		return -1
	}
	value := -1.0
	for _, rm := range all[len(all)-1].ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == metric && m.Type() == pmetric.MetricTypeGauge && !m.Gauge().DataPoints().At(0).Flags().NoRecordedValue() {
				value = m.Gauge().DataPoints().At(0).DoubleValue()
			}
		}
	}
	return value
}

// serveOn is a vLLM server.
func serveOn(t *testing.T, listener net.Listener) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(quick))
	require.NoError(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// The pod's probe fails, its server dies, and its owner deletes it: each step is
// seen, under one resource.
func TestAFailingPodIsReportedUntilItIsGone(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	server := serveOn(t, listener)
	port := listener.Addr().(*net.TCPAddr).Port
	api := kubeapi.New(t, kubeapi.Pools)
	api.Apply(kubeapi.Pods, pod("llama-0", "127.0.0.2", false))
	api.Apply(kubeapi.Pools, kubeapi.Pool("inference", "llama", map[string]string{"app": "vllm"}, port))
	sink := new(consumertest.MetricsSink)
	r, _ := startWith(t, sink, "discovery: {inference_pool: {name: llama, namespace: inference, api_server: "+api.URL+"}}")

	reported := func(what string, want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		assert.Eventually(t, func() bool {
			same := true
			for name, value := range want {
				got[name] = latest(sink, "llama-0", name)
				same = same && got[name] == value
			}
			return same
		}, within, 10*time.Millisecond)
		require.Equal(t, want, got, what)
	}
	reported("it serves", map[string]float64{"vllm.up": 1, "vllm.pod.ready": 1, "vllm.pod.terminating": 0})
	api.Apply(kubeapi.Pods, pod("llama-0", "127.0.0.2", true))
	reported("its probe fails", map[string]float64{"vllm.up": 1, "vllm.pod.ready": 0, "vllm.pod.terminating": 0})
	server.Close()
	reported("its server is dead", map[string]float64{
		"vllm.up": 0, "vllm.scrape.failure": 1, "vllm.pod.ready": 0, "vllm.pod.terminating": 0,
	})
	dying := kubeapi.Pod{
		Namespace: "inference", Name: "llama-0", Node: "node-1", IP: "127.0.0.2", Unready: true, Terminating: true,
		Labels: map[string]string{"app": "vllm"}, OwnerKind: "StatefulSet", OwnerName: "llama",
		Containers: []kubeapi.Container{{Name: "vllm"}},
	}
	api.Apply(kubeapi.Pods, dying.Object())
	reported("it is being deleted", map[string]float64{"vllm.up": 0, "vllm.pod.ready": 0, "vllm.pod.terminating": 1})
	assert.EqualValues(t, 1, r.targets.Load())
	api.Delete(kubeapi.Pods, "inference", "llama-0")
	assert.Eventually(t, func() bool { return r.targets.Load() == 0 }, within, 10*time.Millisecond)
	assert.Eventually(t, func() bool {
		all := from(sink, "llama-0")
		last := ends(all[len(all)-1])
		return len(last) > 0
	}, within, 10*time.Millisecond)
	all := from(sink, "llama-0")
	assert.ElementsMatch(t, []string{
		"vllm.up", "vllm.scrape.duration", "vllm.scrape.samples", "vllm.scrape.failure", "vllm.pod.ready", "vllm.pod.terminating",
	}, ends(all[len(all)-1]))
	resource := all[0].ResourceMetrics().At(0).Resource().Attributes().AsRaw()
	for _, m := range all {
		assert.Equal(t, resource, m.ResourceMetrics().At(0).Resource().Attributes().AsRaw(), "one resource throughout")
	}
}

// A rollout causes neither a warning nor a bad component status.
func TestADrainingPodIsNotAFailureInTheLogOrTheStatus(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	require.NoError(t, err)
	server := serveOn(t, listener)
	port := listener.Addr().(*net.TCPAddr).Port
	api := kubeapi.New(t)
	pod := kubeapi.Pod{
		Namespace: "inference", Name: "llama-0", IP: "127.0.0.2", Labels: map[string]string{"app": "vllm"},
		Containers: []kubeapi.Container{{Name: "vllm"}},
	}
	api.Apply(kubeapi.Pods, pod.Object())
	sink := new(consumertest.MetricsSink)
	r, logs := startWith(t, sink, fmt.Sprintf("discovery: {kubernetes: {selector: app=vllm, port: %d, api_server: %q}}", port, api.URL))
	host := newStatusHost()
	r.status.start(host)
	require.Eventually(t, func() bool { return latest(sink, "llama-0", "vllm.up") == 1 }, within, 5*time.Millisecond)
	pod.Terminating = true
	api.Apply(kubeapi.Pods, pod.Object())
	require.Eventually(t, func() bool { return latest(sink, "llama-0", "vllm.pod.terminating") == 1 }, within, 5*time.Millisecond)
	server.Close()
	require.Eventually(t, func() bool { return latest(sink, "llama-0", "vllm.up") == 0 }, within, 5*time.Millisecond)
	count := len(sink.AllMetrics())
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) > count+2 }, within, 5*time.Millisecond)
	for _, entry := range logs.FilterLevelExact(zap.WarnLevel).All() {
		assert.Fail(t, "a warning", entry.Message)
	}
	assert.Equal(t, 1, logs.FilterLevelExact(zap.InfoLevel).FilterMessageSnippet("The pod is being deleted and cannot be scraped any more").Len())
	assert.Empty(t, host.seen())
}
