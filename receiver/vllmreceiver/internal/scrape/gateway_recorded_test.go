package scrape

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
)

// The tests of this file need the recorded bodies of gateways and are skipped without them.

// liveTruth is what the client of a live endpoint picker counted, by
// "incoming model|model that the server got".
type liveTruth struct {
	Pairs map[string]struct {
		Sent, EPPRejected, UpstreamNon200, OK        int
		PromptTokens, CompletionTokens, CachedTokens float64
		SumE2E                                       float64
	} `json:"client_by_model_and_target"`
}

// packageTruth is the load that a program put on a release's own metrics.
type packageTruth struct {
	Pairs []struct {
		Model, Target                           string
		Requests, ModelServerErrors, WithUsage  float64
		SumE2ESeconds, SumIn, SumOut, SumCached float64
		SumRequestBytes, SumResponseBytes       float64
	}
	EarlyErrors map[string]float64
	InFlight    map[string]float64
}

// gatewayFile reads a recorded body, and its truth if one is wanted.
func gatewayFile(t *testing.T, name string, truth any) string {
	t.Helper()
	dir := filepath.Join(captures.Dir(t), "gateway")
	if truth != nil {
		content, err := os.ReadFile(filepath.Join(dir, name+".truth.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(content, truth))
	}
	return read(t, filepath.Join(dir, name+".txt"))
}

// Live pickers of three generations agree with their client in everything that
// the release counts right. What they count wrong is written down here.
func TestLivePickersAgreeWithTheirClient(t *testing.T) {
	for _, name := range []string{
		"epp-gaie-v1.0.2-live", "epp-gaie-v1.0.2-live-all-endpoints-dead",
		"epp-gaie-v1.5.0-live", "epp-gaie-v1.5.0-live-all-endpoints-dead",
		"epp-llmd-v0.10.0-live", "epp-llmd-v0.10.0-live-all-endpoints-dead",
		"epp-llmd-v0.10.0-live-openmetrics", "epp-llmd-v0.10.0-live-openmetrics-t2",
	} {
		t.Run(name, func(t *testing.T) {
			var truth liveTruth
			body := gatewayFile(t, name, &truth)
			metrics := newRig(t).scrapeGateway(name, body)
			var sent, rejected, ended, e2e, prompt, counted float64
			for pair, want := range truth.Pairs {
				pairs := ofPair(pair)
				accepted := float64(want.Sent - want.EPPRejected)
				assert.Equal(t, accepted, totalOf(metrics, epp+"requests", pairs...).value, "requests of %s", pair)
				// Errors of the model server are missing behind Envoy in all releases:
				// UpstreamNon200 never shows, only what the picker refused itself.
				assert.Equal(t, float64(want.EPPRejected), totalOf(metrics, epp+"request.errors", pairs...).value, "errors of %s", pair)
				// A response counts once it was read to its end; some were still running.
				duration := totalOf(metrics, epp+"request.duration", pairs...)
				assert.Equal(t, float64(want.OK+want.UpstreamNon200), duration.count, "responses of %s", pair)
				input, output := totalOf(metrics, epp+"request.input_tokens", pairs...), totalOf(metrics, epp+"request.output_tokens", pairs...)
				if strings.Contains(name, "v1.0.2") {
					// This release loses the usage of many streams.
					assert.LessOrEqual(t, input.sum, want.PromptTokens, pair)
					assert.LessOrEqual(t, output.sum, want.CompletionTokens, pair)
				} else {
					assert.Equal(t, want.PromptTokens, input.sum, "input tokens of %s", pair)
					assert.Equal(t, want.CompletionTokens, output.sum, "output tokens of %s", pair)
				}
				cached := totalOf(metrics, epp+"request.cached_tokens", pairs...).sum
				if strings.Contains(name, "llmd") {
					assert.Equal(t, want.CachedTokens, cached, "cached tokens of %s", pair)
				}
				sent, rejected, ended = sent+accepted, rejected+float64(want.EPPRejected), ended+duration.count
				if want.UpstreamNon200 == 0 {
					// The client did not measure the failed ones.
					e2e += want.SumE2E - duration.sum
				}
				prompt, counted = prompt+want.PromptTokens, counted+input.sum
			}
			require.Positive(t, sent)
			// No pair that the client did not send, and no twin of one.
			assert.Equal(t, sent, totalOf(metrics, epp+"requests").value)
			assert.Equal(t, rejected, totalOf(metrics, epp+"request.errors").value)
			assert.Equal(t, ended, totalOf(metrics, epp+"request.duration").count)
			assert.InDelta(t, 0, e2e, 0.1, "the client measures a little more than the picker")
			if strings.Contains(name, "v1.0.2") {
				assert.Less(t, counted, prompt)
				assert.Greater(t, counted, prompt/2)
			}
			if !strings.Contains(name, "llmd") {
				// v1.0.2 does not have it; v1.5.0 reads a key that no server sends.
				assert.Empty(t, metricsNamed(metrics, epp+"request.cached_tokens"))
			}
		})
	}
}

// The metric packages of the releases, driven with a known load.
func TestPickersAgreeWithTheLoadOnTheirMetrics(t *testing.T) {
	for _, name := range []string{"epp-gaie-v1.0.2", "epp-gaie-v1.5.0", "epp-llmd-v0.10.0"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, moment := range []string{"", "-t2"} {
				var truth packageTruth
				metrics := r.scrapeGateway(name, gatewayFile(t, name+moment, &truth))
				require.NotEmpty(t, truth.Pairs)
				errors := map[string]float64{}
				for _, p := range truth.Pairs {
					pair := p.Model + "|" + p.Target
					pairs := ofPair(pair)
					assert.Equal(t, p.Requests, totalOf(metrics, epp+"requests", pairs...).value, pair)
					assert.InDelta(t, p.SumE2ESeconds, totalOf(metrics, epp+"request.duration", pairs...).sum, 1e-6, pair)
					assert.Equal(t, p.SumRequestBytes, totalOf(metrics, epp+"request.size", pairs...).sum, pair)
					assert.Equal(t, p.SumResponseBytes, totalOf(metrics, epp+"response.size", pairs...).sum, pair)
					input := totalOf(metrics, epp+"request.input_tokens", pairs...)
					assert.Equal(t, total{count: p.WithUsage, sum: p.SumIn}, input, pair)
					assert.Equal(t, p.SumOut, totalOf(metrics, epp+"request.output_tokens", pairs...).sum, pair)
					errors[pair+"|ModelServerError"] = p.ModelServerErrors
				}
				maps.Copy(errors, truth.EarlyErrors)
				all := 0.0
				for key, n := range errors {
					parts := strings.Split(key, "|")
					got := totalOf(metrics, epp+"request.errors", "model_name", parts[0], "target_model_name", parts[1], "error_code", parts[2])
					assert.Equal(t, n, got.value, key)
					all += n
				}
				assert.Equal(t, all, totalOf(metrics, epp+"request.errors").value)
				running := 0.0
				for _, n := range truth.InFlight {
					running += n
				}
				assert.Equal(t, running, totalOf(metrics, epp+"request.running").value)
			}
		})
	}
}

func TestTheTenantsOfARecordedPickerAddUp(t *testing.T) {
	const name = "epp-llmd-v0.10.0-live"
	body := gatewayFile(t, name, nil)
	by := newRig(t, func(c *Config) { c.Gateway.FairnessID = true }).scrapeGateway(name, body)
	together := newRig(t).scrapeGateway(name, body)
	for _, metric := range []string{"requests", "request.errors", "request.duration", "request.running", "endpoint.inflight_tokens", "flow_control.queue.size"} {
		want := totalOf(together, epp+metric)
		got := totalOf(by, epp+metric)
		assert.InDelta(t, want.sum, got.sum, 1e-9, metric)
		assert.Equal(t, total{want.value, want.count, got.sum}, got, metric)
	}
	a, b := totalOf(by, epp+"requests", "fairness_id", "tenant-a").value, totalOf(by, epp+"requests", "fairness_id", "tenant-b").value
	assert.Equal(t, totalOf(together, epp+"requests").value, a+b)
	assert.Positive(t, a*b)
}

// When every endpoint is dead the averages stay as they were. Only newer
// releases report zero ready endpoints then.
func TestAllEndpointsDead(t *testing.T) {
	for name, want := range map[string]struct{ ready, queue, kv, saturation float64 }{
		"epp-gaie-v1.0.2":  {4, 0, 0.0634765625, 0},
		"epp-gaie-v1.5.0":  {0, 0.5, 0.0625, 1},
		"epp-llmd-v0.10.0": {0, 0.25, 0.06, 1},
	} {
		t.Run(name, func(t *testing.T) {
			name += "-live-all-endpoints-dead"
			body := gatewayFile(t, name, nil)
			r := newRig(t)
			for range 2 {
				metrics := r.scrapeGateway(name, body)
				of := []string{"pool", "vllm-llama3-8b-instruct"}
				assert.Equal(t, want.ready, totalOf(metrics, pool+"endpoint.ready", of...).value)
				assert.Equal(t, want.queue, totalOf(metrics, pool+"queue.average_size", of...).value)
				assert.Equal(t, want.kv, totalOf(metrics, pool+"kv_cache.average_utilization", of...).value)
				assert.Equal(t, want.saturation, totalOf(metrics, epp+"flow_control.pool.saturation", of...).value)
			}
		})
	}
}

// The releases with the plug-in that predicts swap the two names of a model. The
// body does not contain the release, so they stay swapped, as documented in metrics.md.
func TestSwappedModelNamesStayAsTheyAre(t *testing.T) {
	for _, name := range []string{"epp-gaie-v1.5.0", "epp-llmd-v0.10.0"} {
		metrics := newRig(t).scrapeGateway(name, gatewayFile(t, name, nil))
		for _, metric := range []string{"prediction.ttft_duration", "prediction.tpot_duration"} {
			assert.Positive(t, totalOf(metrics, epp+metric, ofPair("food-review-1|food-review")...).count, metric)
			assert.Zero(t, totalOf(metrics, epp+metric, ofPair("food-review|food-review-1")...).count, metric)
		}
		assert.Positive(t, totalOf(metrics, epp+"prediction.time_to_first_token", ofPair("food-review|food-review-1")...).count)
	}
}

func TestAdaptersOfRecordedSyncers(t *testing.T) {
	const status = "inference_gateway.lora.adapter.status"
	for _, name := range []string{"lora-syncer", "lora-syncer-openmetrics", "lora-syncer-client-0.16.0", "lora-syncer-openmetrics-client-0.16.0"} {
		r := newRig(t)
		metrics := r.scrapeGateway(name, gatewayFile(t, name, nil))
		for adapter, want := range map[string]float64{"sql-lora-v2": 1, "team_a/tone.v3": 1, "food-review-1": 1, "food-review-0": 0} {
			assert.Equal(t, want, totalOf(metrics, status, "adapter_name", adapter).value, "%s of %s", adapter, name)
		}
		assert.Len(t, points(metrics, status), 4)
	}
	r := newRig(t, func(c *Config) { c.Limits.Adapters = 3 })
	metrics := r.scrapeGateway("lora-syncer-t2", gatewayFile(t, "lora-syncer-t2", nil))
	assert.Len(t, points(metrics, status), 3, "the limit")
	assert.Zero(t, totalOf(metrics, status, "adapter_name", "sql-lora-v2").value, "unloaded on purpose")
	// It was dropped from the configuration, which the syncer never forgets.
	assert.Equal(t, 1.0, totalOf(metrics, status, "adapter_name", "team_a/tone.v3").value)
}
