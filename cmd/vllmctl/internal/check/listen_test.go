package check_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// listening writes a configuration that listens at three addresses besides its exporters.
func listening(t *testing.T, health, fleet, metrics string) string {
	t.Helper()
	host, port, err := net.SplitHostPort(metrics)
	require.NoError(t, err)
	return written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {}}\nexporters: {debug: {}}\n"+
		"extensions: {health_check/ready: {http: {endpoint: \""+health+"\"}}, vllm_fleet: {endpoint: \""+fleet+"\"}}\n"+
		"service: {extensions: [health_check/ready, vllm_fleet], telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: "+host+", port: "+port+"}}}}]}},\n"+
		"  pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n")
}

// A collector does not start where another program has one of its ports.
func TestEachAddressOfACollectorMustBeFree(t *testing.T) {
	t.Parallel()
	free := "127.0.0.1:0"
	taken := serve(t, http.NotFoundHandler())[len("http://"):]
	assert.Empty(t, codesOf(checked(t, listening(t, free, free, free)), check.Problem, check.Warning))
	for name, path := range map[string]string{
		"extensions::health_check/ready": listening(t, taken, free, free), "extensions::vllm_fleet": listening(t, free, taken, free),
		"service::telemetry::metrics": listening(t, free, free, taken),
	} {
		report := checked(t, path)
		assert.Equal(t, []string{check.CodePortTaken}, codesOf(report, check.Problem, check.Warning), name)
		assert.Contains(t, said(report, check.CodePortTaken), name+": cannot listen: listen tcp "+taken)
		report, err := check.Configured(t.Context(), []string{path}, check.Settings{Delay: delay, Running: true})
		require.NoError(t, err)
		text := shown(t, report)
		assert.NotContains(t, text, name, "the running collector has it")
		assert.Contains(t, text, "nothing listens at "+free+", although the collector runs", "the two others")
	}
	_, port, err := net.SplitHostPort(taken)
	require.NoError(t, err)
	assert.Empty(t, codesOf(checked(t, listening(t, "[]:"+port, free, free)), check.Problem, check.Warning), "a variable that is not set is no address")
	// The collector that runs with this configuration has all ports.
	metrics := answers(t, http.StatusOK, text, "# HELP up A.\n# TYPE up gauge\nup 1\n")[len("http://"):]
	report := checked(t, listening(t, taken, free, metrics))
	assert.Empty(t, codesOf(report, check.Problem, check.Warning))
	assert.Contains(t, codesOf(report, check.Info), check.CodePortCollector)
}

// What is empty or missing is named, with what to look at.
func TestWhatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	pods := func(more string) string {
		return configuration(t, fmt.Sprintf("discovery: {kubernetes: {%s selector: 'app=other,b in (c)', api_server: %q}}", more, kubeapi.New(t).URL), "")
	}
	for want, report := range map[string]*check.Report{
		`: no pod with the labels "app=other,b in (c)" in the namespaces models, more; see kubectl -n models get pods --show-labels.`: checked(t, pods("namespaces: [models, more],")),
		`: no pod with the labels "app=other,b in (c)" in any namespace; see kubectl get pods -A --show-labels.`:                      checked(t, pods("")),
	} {
		assert.Contains(t, said(report, check.CodeDiscoveryNone), want)
	}
	api := kubeapi.New(t, kubeapi.Pools)
	pool := configuration(t, fmt.Sprintf("discovery: {inference_pool: {name: llama, namespace: models, api_server: %q}}", api.URL), "")
	assert.Contains(t, said(checked(t, pool), check.CodeDiscoveryError), `There is no InferencePool "llama" in the namespace "models"`)
	api.Apply(kubeapi.Pools, kubeapi.Pool("models", "llama", map[string]string{"app": "other"}, 8000))
	assert.Contains(t, said(checked(t, pool), check.CodeDiscoveryNone),
		`: the InferencePool "llama" in the namespace "models" has no pods that are scraped; see kubectl -n models describe inferencepool llama`)

	file := written(t, "")
	report := checked(t, whole(t, "vllm", "otlphttp: {endpoint: "+backend(t, http.StatusMethodNotAllowed)+", sending_queue: {storage: file_storage}}", "otlphttp",
		"extensions: {file_storage: {directory: "+file+"/queue, create_directory: true}}\n"))
	assert.Equal(t, file+"/queue cannot be the directory of extensions::file_storage: "+file+" is a file.", said(report, check.CodeQueueDirectory))
	assert.Contains(t, said(report, check.CodeExporterRejected), "answers 405 Method Not Allowed at /v1/metrics: perhaps it is not an OTLP backend.")
}

// All variables that are missing are one mistake, and a configuration for a pod is to be checked in the pod.
func TestTheConfigurationOfAPodIsToBeCheckedThere(t *testing.T) {
	t.Setenv("POD_IP", "") // It is restored at the end.
	require.NoError(t, os.Unsetenv("POD_IP"))
	named := func(variables string, running bool) string {
		path := configuration(t, "service_name: \"a"+variables+"\", endpoint: "+serve(t, healthy(t)), "")
		report, err := check.Configured(t.Context(), []string{path}, check.Settings{Delay: delay, Running: running})
		require.NoError(t, err)
		return said(report, check.CodeConfigWarning)
	}
	const both = "These environment variables are not set: CHECK_TEST_NOT_SET, POD_IP."
	assert.Equal(t, both+" This is the configuration of a pod: check it there, with kubectl exec POD -- /vllmctl check --running.", named("${env:POD_IP}${env:CHECK_TEST_NOT_SET}", false))
	assert.Equal(t, both, named("${env:POD_IP}${env:CHECK_TEST_NOT_SET}", true))
	assert.Equal(t, "These environment variables are not set: CHECK_TEST_NOT_SET.", named("${env:CHECK_TEST_NOT_SET}", false))
}
