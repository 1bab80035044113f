package check_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// looked checks addresses as the command line does.
func looked(tb testing.TB, addresses ...string) *check.Report {
	tb.Helper()
	plan := check.Plan{Delay: delay, Request: check.Request{Endpoints: addresses, Interval: 15 * time.Second, Promises: check.Promises()}}
	report, err := plan.Servers(tb.Context(), &configfile.Host{})
	require.NoError(tb, err)
	return report
}

// The collector accepts what is printed, and it has the servers that were asked for.
func TestTheConfigurationToPasteIsAccepted(t *testing.T) {
	first, second := serve(t, healthy(t)), serve(t, newSimulated(t, vllmsim.Config{Dialect: "v0", Version: "0.5.0"}))
	for _, addresses := range [][]string{{first}, {first, second}} {
		report := looked(t, addresses...)
		require.NotEmpty(t, report.Paste)
		file, err := configfile.Read(t.Context(), written(t, report.Paste))
		require.NoError(t, err)
		assert.Empty(t, file.Problems)
		assert.Empty(t, file.Warnings)
		require.Len(t, file.Receivers, 1)
		require.Len(t, file.Processors, 1)
		assert.Len(t, file.Processors[0].Config.Objectives, 2)
		cfg := file.Receivers[0].Config
		assert.Equal(t, 15*time.Second, cfg.Controller.CollectionInterval)
		if len(addresses) == 1 {
			assert.Equal(t, first, cfg.Client.Endpoint)
			continue
		}
		require.Len(t, cfg.Targets, 2)
		assert.Equal(t, second, cfg.Targets[1].Client.Endpoint)

		// It is checked without a finding: its objectives are exact on both servers.
		assert.Empty(t, codesOf(checked(t, written(t, report.Paste)), check.Problem, check.Warning))
	}
}

func TestTheConfigurationToPasteHasNoSecret(t *testing.T) {
	request := check.Request{
		Endpoints: []string{"https://bob:hunter2@vllm-0:8000/metrics?token=sesame"}, Interval: time.Second,
		Client: map[string]any{
			"headers": map[string]any{"X-Api-Key": "hunter2"}, "proxy_url": "http://bob:hunter2@proxy:3128", "timeout": "1s",
			"auth": map[string]any{"authenticator": "bearertokenauth/vllmctl"},
		},
		Extensions: map[string]map[string]any{"bearertokenauth/vllmctl": {"filename": "/var/run/token"}},
	}
	pasted, err := request.Paste()
	require.NoError(t, err)
	for _, secret := range []string{"hunter2", "sesame", "bob"} {
		assert.NotContains(t, pasted, secret)
	}
	for name, value := range map[string]string{
		"VLLM_X_API_KEY": "k", "VLLM_USER": "u", "VLLM_PASSWORD": "p", "VLLM_QUERY": "token=q", "PROXY_USER": "u", "PROXY_PASSWORD": "p",
	} {
		assert.Contains(t, pasted, "${env:"+name+"}")
		t.Setenv(name, value)
	}
	file, err := configfile.Read(t.Context(), written(t, pasted))
	require.NoError(t, err)
	assert.Empty(t, file.Problems)
	assert.Empty(t, file.Warnings)
	assert.Equal(t, "https://u:p@vllm-0:8000/metrics?token=q", file.Receivers[0].Config.Client.Endpoint)
	value, _ := file.Receivers[0].Config.Client.Headers.Get("X-Api-Key")
	assert.Equal(t, "k", string(value))
	assert.Equal(t, []string{"bearertokenauth/vllmctl"}, file.Started)
}

// An address that does not work is not passed on.
func TestTheConfigurationToPasteHasOnlyServersThatAnswer(t *testing.T) {
	good, bad := serve(t, healthy(t)), answers(t, 404, text, "no")
	pasted := looked(t, bad, good).Paste
	assert.Contains(t, pasted, "endpoint: "+good+"\n")
	assert.NotContains(t, pasted, bad)
	assert.Empty(t, looked(t, bad).Paste)
}

// A threshold that a server does not have is moved to the nearest bound that all have.
// A server of another program is not what the collector is for.
func TestTheConfigurationToPasteHasNoOtherPrograms(t *testing.T) {
	t.Parallel()
	good, node := serve(t, healthy(t)), answers(t, http.StatusOK, text, sample("node_load1", ""))
	report := looked(t, good, node)
	assert.Contains(t, report.Paste, good)
	assert.NotContains(t, report.Paste, node)
	var out strings.Builder
	require.NoError(t, report.Write(&out, check.Style{}))
	assert.Contains(t, out.String(), "A configuration to begin with, for 1 of 2 targets:")
	assert.Empty(t, looked(t, node).Paste)
}

func TestObjectivesAreMovedToBoundsOfAllServers(t *testing.T) {
	s := healthy(t)
	s.edit = func(_ int, body string) string {
		return without(body, `vllm:time_to_first_token_seconds_bucket{engine="0",le="2.5"`)
	}
	for name, want := range map[string]string{"its own bounds": "threshold: 1s", "both": "threshold: 1s"} {
		addresses := []string{serve(t, s)}
		if name == "both" {
			addresses = append(addresses, serve(t, healthy(t)))
		}
		pasted := looked(t, addresses...).Paste
		assert.Contains(t, pasted, want, name)
		assert.NotContains(t, pasted, "2.5s")
	}
}

func TestAnAddressIsCompletedAsTheReceiverExpects(t *testing.T) {
	report := looked(t, serve(t, healthy(t))+"/")
	assert.Equal(t, "ok", report.Targets[0].Outcome)
	assert.NotContains(t, report.Targets[0].Name, "/", "the path was completed")
}

func TestObjectivesOfTheCommandLine(t *testing.T) {
	for written, want := range map[string]check.Promise{
		"ttft=2s":                       {Name: "ttft", Metric: "vllm.time_to_first_token", Threshold: 2 * time.Second, Target: 0.95},
		"vllm.request.queue_time=500ms": {Name: "vllm.request.queue_time", Metric: "vllm.request.queue_time", Threshold: 500 * time.Millisecond, Target: 0.95},
		"e2e=1m":                        {Name: "e2e", Metric: "vllm.e2e_request_latency", Threshold: time.Minute, Target: 0.95},
	} {
		got, err := check.ParsePromise(written)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, wrong := range []string{"", "ttft", "ttft=", "ttft=2", "ttft=-1s", "=1s", "vllm.num_requests.running=1s", "vllm.request.prompt_tokens=1s", "nonsense=1s"} {
		_, err := check.ParsePromise(wrong)
		assert.ErrorContains(t, err, "--objective", wrong)
	}
}

// An objective is suggested where a server has its histogram, or will have it with its first request.
func TestNoObjectiveIsSuggestedThatTheKindOfServerCannotHave(t *testing.T) {
	t.Parallel()
	of := func(body string) string { return answers(t, http.StatusOK, text, body) }
	picker, router, lmcache := of(sample("inference_pool_ready_pods", `name="p"`)), of(sample("vllm:current_qps", `server="http://a:8000"`)), of(sample("lmcache:num_hit_tokens", `model_name="m"`))
	gauges := of(sample("vllm:num_requests_running", `model_name="m",engine="0"`))
	for _, addresses := range [][]string{{picker}, {router}, {lmcache}, {gauges}, {picker, router, lmcache, gauges}} {
		pasted := looked(t, addresses...).Paste
		assert.Contains(t, pasted, addresses[0])
		assert.NotContains(t, pasted, "objectives")
	}
	assert.Equal(t, 2, strings.Count(looked(t, router, serve(t, healthy(t))).Paste, "threshold:"))
	fresh := of("# TYPE vllm:time_to_first_token_seconds histogram\n" + sample("vllm:num_requests_running", `model_name="m",engine="0"`))
	pasted := looked(t, fresh).Paste
	assert.Contains(t, pasted, "vllm.time_to_first_token")
}

// Who reads the text without --verbose is told that nothing says how the server is.
func TestAServerThatCannotBeJudgedSaysSo(t *testing.T) {
	t.Parallel()
	engine := sample("vllm:num_requests_running", `model_name="m",engine="0"`)
	for body, want := range map[string]string{
		sample("inference_pool_ready_pods", `name="p"`):      "The target is a gateway. It has no engine, so its 4 series do not show a condition.",
		sample("vllm:current_qps", `server="http://a:8000"`): "The target is a router. It has no engine, so its 4 series do not show a condition.",
		sample("lmcache:num_hit_tokens", `model_name="m"`):   "The target is an LMCache server. It has no engine, so its 4 series do not show a condition.",
		engine: "is unknown (4 series).",
		engine + sample("vllm:cache_config_info", `block_size="16",num_gpu_blocks="100"`): "is unknown (6 series).", /* the size of a block and their number */
	} {
		var out strings.Builder
		require.NoError(t, looked(t, answers(t, http.StatusOK, text, body)).Write(&out, check.Style{}))
		assert.Contains(t, out.String(), want)
	}
	var out strings.Builder
	require.NoError(t, looked(t, serve(t, healthy(t))).Write(&out, check.Style{}))
	assert.NotContains(t, out.String(), "is unknown")
}
