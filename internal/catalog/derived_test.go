package catalog

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// computed returns the metrics that only the processor emits.
func computed() []Metric {
	return slices.DeleteFunc(slices.Clone(All()), func(m Metric) bool { return m.EmittedBy != "processor" })
}

// latencies are the histograms that means and quantiles are derived from.
var latencies = []string{
	"vllm.time_to_first_token", "vllm.inter_token_latency", "vllm.e2e_request_latency",
	"vllm.request.time_per_output_token", "vllm.request.queue_time", "vllm.request.prefill_time", "vllm.request.decode_time",
}

// lengths are further histograms with a mean and quantiles.
var lengths = []string{"vllm.request.prompt_tokens", "vllm.request.generation_tokens"}

// ofPicker are those of an inference gateway.
var ofPicker = []string{
	"inference_gateway.epp.request.duration", "inference_gateway.epp.request.time_to_first_token",
	"inference_gateway.epp.flow_control.queue.duration",
}

func TestOnlyCostlyOrUncertainMetricsAreOffByDefault(t *testing.T) {
	want := []string{
		"vllm.request.finished_ratio", "vllm.request.cancelled_estimate", "vllm.diagnosis.signal", "vllm.diagnosis.signal_ratio",
	}
	for _, histogram := range ofPicker {
		want = append(want, histogram+"_quantile_bound")
	}
	for i, latency := range append(slices.Clone(latencies), lengths...) {
		want = append(want, latency+"_quantile_bound")
		if i >= 3 {
			want = append(want, latency+"_quantile")
		}
	}
	for _, pair := range []string{"vllm.", "vllm.pool."} {
		// Their histograms give the means, and their quantiles are on.
		want = append(want, pair+"time_to_first_token_mean", pair+"e2e_request_latency_mean")
	}
	want = append(want, "vllm.request.decode_time_mean", "vllm.request.time_per_output_token_mean",
		"vllm.pool.inter_token_latency_mean")
	released, err := os.ReadFile(releasedFile)
	require.NoError(t, err)
	var off []string
	for _, m := range computed() {
		// What was not released yet is listed here with its release.
		if !m.In(Standard) && strings.Contains("\n"+string(released), "\n"+m.Name+" ") {
			off = append(off, m.Name)
		}
	}
	assert.ElementsMatch(t, want, off)
}

func TestEveryLatencyHasAMeanAndQuantiles(t *testing.T) {
	for _, latency := range slices.Concat(latencies, lengths, ofPicker) {
		histogram, found := ByName(latency)
		require.True(t, found, latency)
		for suffix, extra := range map[string][]string{
			"_mean": nil, "_quantile": {"quantile"}, "_quantile_bound": {"bound", "quantile"},
		} {
			m, found := ByName(latency + suffix)
			require.True(t, found, latency+suffix)
			assert.Contains(t, m.DerivedFrom, latency, m.Name)
			assert.Equal(t, histogram.Unit, m.Unit, m.Name)
			want := append(extra, histogram.Attributes...)
			if strings.HasPrefix(latency, "inference_gateway.") {
				// Only the models distinguish the values of a picker.
				want = append(extra, "model_name", "target_model_name")
			}
			assert.ElementsMatch(t, want, m.Attributes, m.Name)
		}
	}
}

// TestEveryDerivationLeadsToTheReceiver follows every input to a metric from the wire.
func TestEveryDerivationLeadsToTheReceiver(t *testing.T) {
	require.NotEmpty(t, computed())
	for _, m := range All() {
		if m.EmittedBy == "processor" {
			assert.True(t, m.Derived(), m.Name)
			assert.Empty(t, m.Sources, m.Name)
			assert.Contains(t, []Kind{KindGauge, KindSum}, m.Kind, m.Name)
		}
		for _, name := range m.DerivedFrom {
			input, found := ByName(name)
			require.True(t, found, "%s from %s", m.Name, name)
			if strings.HasPrefix(name, "vllm.canary.") {
				continue // The receiver sends these requests itself.
			}
			if input.EmittedBy == "receiver" {
				// The receiver itself makes the metrics about a scrape and about paths beside it.
				own := slices.Contains([]string{"vllm.up", "vllm.healthy", "vllm.scrape.failure", "vllm.server_load", "vllm.pod.ready", "vllm.pod.terminating", "vllm.accelerator.workloads"}, name)
				assert.Equal(t, own, len(input.Sources)+len(input.Exporters) == 0, "%s from %s", m.Name, name)
				continue
			}
			assert.Equal(t, KindSum, input.Kind, "%s from %s", m.Name, name)
			for _, origin := range input.DerivedFrom {
				source, found := ByName(origin)
				require.True(t, found, "%s from %s", name, origin)
				assert.Equal(t, "receiver", source.EmittedBy, "%s from %s", name, origin)
			}
		}
	}
}

func TestOnlyTheCapacityIsBothReceivedAndDerived(t *testing.T) {
	var both []string
	for _, m := range All() {
		if m.EmittedBy == "receiver" && m.Derived() {
			both = append(both, m.Name)
		}
	}
	assert.Equal(t, []string{"vllm.kv_cache.capacity"}, both)
}

// With a wire name, a Prometheus that scrapes the same server would store a series of the
// server and a derived one as one.
func TestDerivedNamesAreNotWireNames(t *testing.T) {
	wire := map[string]string{}
	for _, m := range All() {
		for _, s := range m.Sources {
			family := strings.ReplaceAll(s.Family, ":", "_")
			for _, suffix := range []string{"", "_bucket", "_sum", "_count", "_created"} {
				wire[family+suffix] = s.Family
			}
		}
	}
	for _, m := range computed() {
		translated := prometheusName(t, m)
		assert.Empty(t, wire[translated], "%s translates to %s", m.Name, translated)
	}
}

// The table in docs/reference/naming.md lists the suffixes.
func TestTheSuffixOfADerivedNameShowsItsKind(t *testing.T) {
	seen := map[string]int{}
	written := read(t, "../../metadata.yaml")["metrics"].(map[string]any)
	for _, m := range computed() {
		switch {
		case m.Name == "vllm.slo.burn_rate", strings.HasSuffix(m.Name, "_estimate"):
		case strings.HasSuffix(m.Name, "_ratio"):
			seen["ratio"]++
			assert.Equal(t, "1", m.Unit, m.Name)
		case strings.HasSuffix(m.Name, "_rate"), strings.HasSuffix(m.Name, "_throughput"):
			seen["rate"]++
			assert.True(t, strings.HasSuffix(m.Unit, "}/s"), "%s has the unit %s", m.Name, m.Unit)
			assert.Contains(t, written[m.Name].(map[string]any)["formula"], "/ elapsed", m.Name)
		default:
			assert.NotContains(t, m.Unit, "/s", m.Name)
		}
		quantile := strings.HasSuffix(m.Name, "_quantile") || strings.HasSuffix(m.Name, "_quantile_bound")
		assert.Equal(t, quantile, slices.Contains(m.Attributes, "quantile"), m.Name)
	}
	assert.Len(t, seen, 2)
}

// No metric of a pool is by engine: the engines of a replica are added up.
func TestAMetricOfAPoolHasTheNameOfThatOfAServer(t *testing.T) {
	twins := 0
	for _, m := range computed() {
		rest, isPool := strings.CutPrefix(m.Name, "vllm.pool.")
		if !isPool {
			continue
		}
		assert.Equal(t, KindGauge, m.Kind, m.Name)
		assert.NotContains(t, m.Attributes, "engine", m.Name)
		assert.Contains(t, m.Attributes, "model_name", m.Name)
		server, found := ByName("vllm." + rest)
		if !found {
			continue
		}
		twins++
		assert.Equal(t, server.Unit, m.Unit, m.Name)
		// Only a pool has a queue in front of it.
		assert.Subset(t, server.DerivedFrom, without(m.DerivedFrom, gatewayQueue), m.Name)
		assert.Equal(t, without(server.Attributes, "engine"), m.Attributes, m.Name)
	}
	assert.Greater(t, twins, 10)
}

const gatewayQueue = "inference_gateway.epp.flow_control.queue.size"

// The cause upstream_starved of a pool is judged by what waits at its gateway, whatever the preset of the receiver.
func TestThePresetEssentialEmitsTheQueueOfAGateway(t *testing.T) {
	queue, known := ByName(gatewayQueue)
	require.True(t, known)
	assert.False(t, queue.In(Essential))
	assert.True(t, queue.Feeds(Essential))
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == item })
}
