package vllmprocessor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// dropping is a configuration that drops the GPUs of others.
func dropping() *Config {
	config := createDefaultConfig().(*Config)
	config.Accelerators.Unmatched = stages.Drop
	return config
}

// gpuSeries counts the points of GPUs by their series.
func gpuSeries(metrics pmetric.Metrics, into map[string]int) {
	for _, rm := range metrics.ResourceMetrics().All() {
		if kind, has := rm.Resource().Attributes().Get("vllm.server.kind"); !has || kind.AsString() != "accelerator" {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				var points pmetric.NumberDataPointSlice
				if m.Type() == pmetric.MetricTypeSum {
					points = m.Sum().DataPoints()
				} else {
					points = m.Gauge().DataPoints()
				}
				for _, p := range points.All() {
					into[fmt.Sprint(sorted(rm.Resource().Attributes()), m.Name(), sorted(p.Attributes()), p.Timestamp())]++
				}
			}
		}
	}
}

func sorted(m pcommon.Map) []string {
	raw := m.AsRaw()
	var all []string
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		all = append(all, fmt.Sprint(key, "=", raw[key]))
	}
	return all
}

// Two shards hold half of the engines each, and both read the exporter of all GPUs. Each series of a
// GPU of an engine leaves one of them, once, and each engine gets its detail. One collector that
// reads all of them does the same.
func TestEachGPUSeriesLeavesOnceWithShards(t *testing.T) {
	t.Parallel()
	for shards, config := range map[int]*Config{1: createDefaultConfig().(*Config), 2: dropping()} {
		first, second := newGPU("GPU-1"), newGPU("GPU-2")
		all := newExporter(noon, map[string][]*simulatedGPU{"chat/a": {first}, "chat/b": {second}, "": {newGPU("GPU-3")}})
		servers := []*load{steady("a:8000", noon), steady("b:8000", noon)}
		pods := []string{"a", "b"}
		var instances []*instance
		for range shards {
			instances = append(instances, run(t, config))
		}
		details := make([][]string, 2)
		passes := func(d time.Duration, count bool) {
			for range d / (15 * time.Second) {
				sent, got := map[string]int{}, map[string]int{}
				gpus := all.scrape(noon.Add(servers[0].at.Sub(noon) + 15*time.Second))
				gpuSeries(gpus, sent)
				for i, server := range servers {
					metrics := inPod(server.scrape(), "k8s.namespace.name", "chat", "k8s.pod.name", pods[i], "k8s.pod.uid", "uid-"+pods[i])
					on := instances[i%shards]
					on.at = server.at
					if i < shards {
						// With the metrics of the server in one request, or alone.
						copied := pmetric.NewMetrics()
						gpus.CopyTo(copied)
						out, err := on.process(t.Context(), copied)
						if !errors.Is(err, processorhelper.ErrSkipProcessingData) {
							require.NoError(t, err)
						}
						gpuSeries(out, got)
					}
					out, err := on.process(t.Context(), metrics)
					require.NoError(t, err)
					details[i] = detailsOf(out)
				}
				if !count {
					continue
				}
				for series, n := range sent {
					want := n
					if shards > 1 && strings.Contains(series, "GPU-3") {
						want = 0 // Idle, so that it belongs to no shard.
					}
					require.Equal(t, want, got[series], series)
				}
				require.LessOrEqual(t, len(got), len(sent))
			}
		}
		passes(30*time.Second, false)
		passes(30*time.Minute, true)
		servers[0].gap, servers[1].gap = 0.05, 0.05
		first.heat, second.power = 0.9, 0.9
		passes(8*time.Minute, true)
		assert.Equal(t, [][]string{{"thermal"}, {"power_cap"}}, details, "%d shards", shards)
	}
}

// A server and its GPUs in the first request of both: nothing is lost.
func TestAServerAndItsGPUsInOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(run(t, dropping()), newGPU("GPU-1"))
	both := w.exporter.scrape(noon)
	inPod(w.server.scrape(), w.owner...).ResourceMetrics().MoveAndAppendTo(both.ResourceMetrics())
	want, got := map[string]int{}, map[string]int{}
	gpuSeries(both, want)
	gpuSeries(w.send(both), got)
	assert.Equal(t, want, got)

	other := newExporter(noon, map[string][]*simulatedGPU{"uid-1": {newGPU("GPU-2")}}).scrape(noon)
	_, err := w.process(t.Context(), other)
	require.ErrorIs(t, err, processorhelper.ErrSkipProcessingData, "nothing is left")
}

// GPUs of others change nothing for a server: its output has the same bytes, and nothing is kept.
func TestGPUsOfOthersChangeNothing(t *testing.T) {
	t.Parallel()
	with, without := run(t, createDefaultConfig().(*Config)), run(t, createDefaultConfig().(*Config))
	pods := map[string][]*simulatedGPU{}
	for i := range 50 {
		for j := range 8 {
			pods["uid-"+strconv.Itoa(100+i)] = append(pods["uid-"+strconv.Itoa(100+i)], newGPU(fmt.Sprint(i, "-", j)))
		}
	}
	others := newExporter(noon, pods)
	a, b := steady("a:8000", noon), steady("a:8000", noon)
	marshaler := &pmetric.ProtoMarshaler{}
	for i := range 120 {
		if i == 80 {
			a.gap, b.gap = 0.05, 0.05
		}
		bytes := [2][]byte{}
		for k, on := range []*instance{with, without} {
			server := []*load{a, b}[k]
			metrics := inPod(server.scrape(), "k8s.pod.uid", "uid-0")
			on.at = server.at
			if k == 0 {
				out, err := on.process(t.Context(), others.scrape(server.at))
				require.NoError(t, err)
				require.Equal(t, 50, out.ResourceMetrics().Len(), "all pass")
			}
			out, err := on.process(t.Context(), metrics)
			require.NoError(t, err)
			bytes[k], err = marshaler.MarshalMetrics(out)
			require.NoError(t, err)
		}
		require.Equal(t, bytes[1], bytes[0])
	}
	assert.Zero(t, with.accelerators.Devices())
	assert.Equal(t, 1, with.numResources(), "GPUs are no servers")
}

// What one sender claims is bounded: GPUs of one pod, and pods.
func TestManyGPUsAreBounded(t *testing.T) {
	t.Parallel()
	var many []*simulatedGPU
	for i := range 300 {
		many = append(many, newGPU(strconv.Itoa(i)))
	}
	w := newWorld(run(t, createDefaultConfig().(*Config)), many...)
	w.pass(time.Minute)
	assert.Equal(t, 128, w.accelerators.Devices())
	assert.Equal(t, 1, w.logs.FilterMessageSnippet("there are more GPUs than the limits").Len())
}

// The decisions about known defects of vLLM's metrics.
func TestGPUDefects(t *testing.T) {
	t.Parallel()
	perToken := func(t *testing.T, adjust, then func(*world)) []float64 {
		t.Helper()
		w := newWorld(run(t, createDefaultConfig().(*Config)), newGPU("GPU-1"))
		adjust(w)
		w.pass(5 * time.Minute)
		then(w)
		w.pass(2 * time.Minute)
		var all []float64
		for _, p := range pointsByName(w.newest)["vllm.energy_per_generated_token"] {
			all = append(all, p.DoubleValue())
		}
		return all
	}
	nothing := func(*world) {}
	for defect, test := range map[string]func(t *testing.T){
		// 500 W by 100 tokens in a second of the only engine that is shown, which has those of all.
		"ray-last-engine": func(t *testing.T) {
			t.Helper()
			got := perToken(t, func(w *world) { w.server.version = "0.12.0" }, nothing)
			assert.InDeltaSlice(t, []float64{5}, got, 1e-9)
		},
		// The tokens of the other engines are missing, so the value is too high.
		"only-last-engine": func(t *testing.T) {
			t.Helper()
			got := perToken(t, func(w *world) { w.server.version = "0.9.0" }, nothing)
			assert.InDeltaSlice(t, []float64{5}, got, 1e-9)
		},
		// Counters that begin again are counted on: 13.5 s of 60 are lost at most.
		"scale-up-resets": func(t *testing.T) {
			t.Helper()
			got := perToken(t, nothing, func(w *world) { w.server.requests, w.server.firstTokens, w.server.gaps = 0, 0, 0 })
			assert.InDeltaSlice(t, []float64{5}, got, 1e-9, "the reset is two minutes ago")
		},
		// Tokens that are counted wrong give no energy for each.
		"multi-step-miscounts": func(t *testing.T) {
			t.Helper()
			assert.Empty(t, perToken(t, func(w *world) { w.server.version = "0.6.3" }, nothing))
		},
		"rust-served-name": func(t *testing.T) {
			t.Helper()
			got := perToken(t, func(w *world) { w.server.version = "0.22.0" }, nothing)
			assert.InDeltaSlice(t, []float64{5}, got, 1e-9)
		},
	} {
		t.Run(defect, test)
	}
}
