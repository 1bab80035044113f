package vllmprocessor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// betweenAnswers is the time between the scrapes of these tests.
const betweenAnswers = 15 * time.Second

// answer is what a server answered at one time.
type answer struct {
	at          time.Time
	body        []byte
	contentType string
}

// firstAnswer is when the first reading of a server begins.
var firstAnswer = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// answers lets a stand-in server work and reads it now and then.
func answers(tb testing.TB, config vllmsim.Config, n int) []answer {
	tb.Helper()
	server, err := vllmsim.New(config)
	require.NoError(tb, err)
	at := firstAnswer
	out := make([]answer, 0, n)
	for range n {
		server.Advance(betweenAnswers)
		at = at.Add(betweenAnswers)
		body, contentType, err := server.Targets()[0].Body()
		require.NoError(tb, err)
		out = append(out, answer{at, body, contentType})
	}
	return out
}

// everyServer has the kinds of servers that are read in every way.
var everyServer = map[string]vllmsim.Config{
	"the newest, with everything": {Dialect: "v1", Version: "0.28.0", Engines: 2, SpecDecode: true, FlopsCounters: true, LoRA: true},
	"two engines":                 {Dialect: "v1", Version: "0.20.0", Engines: 2},
	"the first V1":                {Dialect: "v1", Version: "0.8.5"},
	"a cache that counts tokens":  {Dialect: "v1", Version: "0.9.1"},
	"old names with new ones":     {Dialect: "v1", Version: "0.11.0", Engines: 2},
	"a gauge of each process":     {Dialect: "v1-multiproc", Version: "0.10.2", Engines: 2, APIServers: 1},
	"several processes":           {Dialect: "v1-multiproc", Version: "0.24.0", Engines: 2, APIServers: 3},
	"the V0 engine":               {Dialect: "v0", Version: "0.6.6"},
	"an old Ray":                  {Dialect: "ray-old", Version: "0.6.3"},
	"a Ray with two engines":      {Dialect: "ray-new", Version: "0.20.0", Engines: 2},
	"engines that preempt":        {Dialect: "v1", Version: "0.20.0", Engines: 2, KVCacheTokens: 16384, Rate: 3},
	"a Ray that preempts":         {Dialect: "ray-new", Version: "0.20.0", KVCacheTokens: 12288, Rate: 8},
	"the Rust front end":          {Dialect: "rust", Version: "0.24.0", Engines: 2},
}

// ways are those by which the scrapes of a server can reach the processor.
var ways = []string{
	"wire names", "the Prometheus receiver", "the Prometheus receiver, trimmed", "deltas", "deltas of wire names",
	"wire names through a Prometheus", "our names through a Prometheus", "our names, kept, with suffixes",
}

// inputBy turns the scrapes of a server into what the processor is given.
func inputBy(t *testing.T, way string, s []answer) []pmetric.Metrics {
	t.Helper()
	switch way {
	case "wire names":
		return received(t, s, "wire")
	case "the Prometheus receiver":
		return prometheusReceived(t, s)
	case "the Prometheus receiver, trimmed":
		return trimmed(prometheusReceived(t, s))
	case "deltas":
		return deltas(received(t, s, "canonical"), true)
	case "deltas of wire names":
		return deltas(received(t, s, "wire"), true)
	case "wire names through a Prometheus":
		return translated(t, received(t, s, "wire"))
	case "our names through a Prometheus":
		return translated(t, received(t, s, "canonical"))
	case "our names, kept, with suffixes":
		return suffixed(t, received(t, s, "canonical"))
	}
	t.Fatalf("no such way: %s", way)
	return nil
}

func TestEachWayDerivesTheSameOfAServer(t *testing.T) {
	race.SkipSequential(t)
	for server, config := range everyServer {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			read := answers(t, config, 9)
			want := derivedBy(t, received(t, read, "canonical"))
			require.Greater(t, len(want), 100)
			for _, name := range ways {
				t.Run(name, func(t *testing.T) {
					input := inputBy(t, name, read)
					direct := derivedBy(t, input)
					want, got := want, direct
					if strings.HasPrefix(name, "deltas") {
						want, got = withoutHistory(want, got), withoutHistory(got, got)
					}
					sameValues(t, want, got)
					assert.Equal(t, direct, derivedBy(t, hopped(t, input)), "after a hop over OTLP")
				})
			}
		})
	}
}

// A sender of deltas may leave out zeros. What has not happened on any engine yet cannot
// be distinguished from what the server does not count, so it is absent instead of 0.
func TestDeltasWithoutZerosDeriveTheSameOnceSomethingHappened(t *testing.T) {
	for server, config := range everyServer {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			input := received(t, answers(t, config, 9), "canonical")
			got := derivedBy(t, deltas(input, false))
			want := withoutHistory(derivedBy(t, input), got)
			got = withoutHistory(got, got)
			for key, value := range want {
				if _, has := got[key]; has {
					continue
				}
				assert.Zero(t, value, key)
				delete(want, key)
			}
			require.Greater(t, len(want), 100)
			sameValues(t, want, got)
		})
	}
}

// hasEnded is the value of the point that ends a series.
var hasEnded = math.Inf(-1)

// derivedBy runs the processor and returns what it derives, by time, name and those
// attributes that the catalogue knows. A capacity that the input has already
// counts, too.
func derivedBy(t *testing.T, input []pmetric.Metrics) map[string]float64 {
	t.Helper()
	p := emittingAll(t)
	out := map[string]float64{}
	for i, metrics := range input {
		sent := pmetric.NewMetrics()
		metrics.CopyTo(sent)
		p.now = func() time.Time { return time.Unix(firstAnswer.Unix()+int64(i)*int64(betweenAnswers/time.Second), 0) }
		sent, err := p.process(t.Context(), sent)
		require.NoError(t, err)
		for _, rm := range sent.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					capacity := strings.ReplaceAll(m.Name(), ".", "_") == "vllm_kv_cache_capacity"
					if capacity {
						m.SetName("vllm.kv_cache.capacity")
					}
					if capacity || sm.Scope().Name() == metadata.ScopeName {
						readValues(t, m, out)
					}
				}
			}
		}
	}
	return out
}

// withoutHistory leaves out the values that need what was before the first delta: how
// long running prompts can be, which follows from all that have ever finished, and a
// standstill that is known from the second scrape on. Where prompts are looked up again,
// all lookups of the server can prove that these do not matter. Deltas cannot, so that the
// share of the prefix cache may be absent there, but not another one.
func withoutHistory(values, ofDeltas map[string]float64) map[string]float64 {
	kept := maps.Clone(values)
	maps.DeleteFunc(kept, func(key string, _ float64) bool {
		switch {
		case strings.Contains(key, "reason=abandoned_prefill"):
			return true
		case strings.Contains(key, "signal=standstill"):
			return strings.HasPrefix(key, "00:15 ")
		case strings.Contains(key, " vllm.prefix_cache.hit_ratio{"),
			strings.Contains(key, "signal=computed_tokens_per_request"), strings.Contains(key, "signal=kv_per_computed_token"):
			_, has := ofDeltas[key]
			return !has
		}
		return false
	})
	return kept
}

func readValues(t *testing.T, metric pmetric.Metric, out map[string]float64) {
	t.Helper()
	described, known := catalog.ByName(metric.Name())
	require.True(t, known, metric.Name())
	for _, point := range metric.Gauge().DataPoints().All() {
		var attributes []string
		for name, value := range point.Attributes().All() {
			if slices.Contains(described.Attributes, name) {
				attributes = append(attributes, name+"="+value.AsString())
			}
		}
		slices.Sort(attributes)
		key := fmt.Sprintf("%s %s{%s}", point.Timestamp().AsTime().Format("04:05"), metric.Name(), strings.Join(attributes, ","))
		if _, emitted := out[key]; emitted {
			t.Errorf("emitted twice: %s", key)
		}
		out[key] = point.DoubleValue()
		if point.Flags().NoRecordedValue() {
			out[key] = hasEnded
		}
	}
}

func sameValues(t *testing.T, want, got map[string]float64) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, emitted := got[key]
		if !emitted {
			t.Errorf("missing: %s = %v", key, want[key])
			continue
		}
		if value != want[key] && !(math.Abs(value-want[key]) <= 1e-9*math.Max(1, math.Abs(want[key]))) {
			t.Errorf("%s = %v, not %v", key, value, want[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, emitted := want[key]; !emitted {
			t.Errorf("not expected: %s = %v", key, got[key])
		}
	}
}

// hopped sends metrics through OTLP.
func hopped(t *testing.T, input []pmetric.Metrics) []pmetric.Metrics {
	t.Helper()
	out := make([]pmetric.Metrics, 0, len(input))
	for _, metrics := range input {
		bytes, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
		require.NoError(t, err)
		read, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(bytes)
		require.NoError(t, err)
		out = append(out, read)
	}
	return out
}

// everyMetric calls do for each metric of a copy of the input.
func everyMetric(input []pmetric.Metrics, do func(pmetric.Metric)) []pmetric.Metrics {
	out := make([]pmetric.Metrics, 0, len(input))
	for _, metrics := range input {
		changed := pmetric.NewMetrics()
		metrics.CopyTo(changed)
		for _, rm := range changed.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					do(m)
				}
			}
		}
		out = append(out, changed)
	}
	return out
}

// everyTime replaces the times of all points.
func everyTime(metrics pmetric.Metrics, replace func(pcommon.Timestamp) pcommon.Timestamp) {
	everyPoint(metrics, func(point timed) {
		point.SetTimestamp(replace(point.Timestamp()))
		point.SetStartTimestamp(replace(point.StartTimestamp()))
	})
}

// timed is a point of any kind.
type timed interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	SetTimestamp(pcommon.Timestamp)
	StartTimestamp() pcommon.Timestamp
	SetStartTimestamp(pcommon.Timestamp)
}

func everyPoint(metrics pmetric.Metrics, do func(timed)) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						do(p)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						do(p)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						do(p)
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						do(p)
					}
				}
			}
		}
	}
}
