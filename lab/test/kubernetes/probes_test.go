//go:build e2e

package kubernetes

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// answer is the status and the body of a page, or 0.
func answer(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		return 0, ""
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(body)
}

// Two collectors run on one machine, each with an address of its own, and both serve their
// own metrics and answer the probes: while the only picker of one cannot be read, that one is
// alive, but not ready.
func TestTheProbesAndTheOwnMetricsOfTwoCollectorsOnOneMachine(t *testing.T) {
	vendor := newBackend(t)
	gateway := &picker{}
	front := httptest.NewServer(gateway)
	t.Cleanup(front.Close)
	soon := "extensions: {health_check/ready: {component_health: {recovery_duration: 1s}}}\n"
	api := kubeapi.New(t)
	replaced := map[string]string{
		"${env:PICKER_ENDPOINT}":                                            front.URL,
		"    auth:\n      authenticator: bearertokenauth\n":                 "    headers: {Authorization: Bearer wrong}\n",
		"health_check/ready, storage_check, file_storage, bearertokenauth]": "health_check/ready, storage_check, file_storage]",
		"receivers: [vllm/picker, vllm/lora]":                               "receivers: [vllm/picker]",
	}
	broken, stopBroken := start(t, "gateway", vendor.URL, replaced, soon)
	works, stopWorks := start(t, "agent", vendor.URL, map[string]string{}, soon,
		"receivers: {vllm: {discovery: {kubernetes: {api_server: '"+api.URL+"'}}}}\n")
	is := func(env map[string]string, port string, status int) func() bool {
		return func() bool { got, _ := answer(t, "http://"+env["POD_IP"]+":"+port); return got == status }
	}
	for _, env := range []map[string]string{broken, works} {
		require.Eventually(t, is(env, "13133", http.StatusOK), limit, 50*time.Millisecond, "liveness")
		eventually(t, "the own metrics", func() bool {
			_, page := answer(t, "http://"+env["POD_IP"]+":8888/metrics")
			return strings.Contains(page, "\notelcol_process_uptime") && strings.Contains(page, `service_instance_id="otelcol-vllm.pod-1"`)
		})
	}
	eventually(t, "that it is not ready", is(broken, "13134", http.StatusInternalServerError))
	_, page := answer(t, "http://"+broken["POD_IP"]+":13134/?verbose")
	assert.Contains(t, page, "the only target cannot be scraped")
	assert.True(t, is(broken, "13133", http.StatusOK)(), "a restart would not help")
	assert.True(t, is(works, "13134", http.StatusOK)(), "an agent without a server on its node is ready")
	stopBroken()
	stopWorks()
}

// With a wrong Role a rollout must not replace one collector after the other.
func TestACollectorWithoutItsRoleIsNotReady(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Forbid(kubeapi.Pods, true)
	env, stop := start(t, "pool-label", newBackend(t).URL, map[string]string{},
		"extensions: {health_check/ready: {component_health: {recovery_duration: 1s}}}\n",
		"receivers: {vllm: {discovery: {kubernetes: {api_server: '"+api.URL+"'}}}}\n")
	ready := "http://" + env["POD_IP"] + ":13134"
	eventually(t, "that it is not ready", func() bool { status, _ := answer(t, ready); return status == http.StatusInternalServerError })
	_, page := answer(t, ready+"/?verbose")
	assert.Contains(t, page, "no target is discovered: Kubernetes does not let this collector list and watch pods")
	status, _ := answer(t, "http://"+env["POD_IP"]+":13133")
	assert.Equal(t, http.StatusOK, status, "a restart would not help")
	stop()
}
