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
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// betweenAnswers is the time between the scrapes of these tests.
const betweenAnswers = recorded.Interval

// answer is what a server answered at one time.
type answer struct {
	at          time.Time
	body        []byte
	contentType string
}

// answersOf returns the recorded answers of a server.
func answersOf(tb testing.TB, server string) (all []answer) {
	tb.Helper()
	for _, a := range recorded.Answers(tb, server) {
		all = append(all, answer{a.At, []byte(a.Body), a.ContentType})
	}
	return all
}

// everyServer has the kinds of servers that are read in every way.
var everyServer = []string{
	"the newest with everything", "two engines", "the first V1", "a cache that counts tokens", "old names with new ones",
	"a gauge of each process", "several processes", "the V0 engine", "an old Ray", "a Ray with two engines",
	"engines that preempt", "a Ray that preempts", "the Rust front end",
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
	for _, server := range everyServer {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			read := answersOf(t, server)
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
	for _, server := range everyServer {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			input := received(t, answersOf(t, server), "canonical")
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
		p.now = func() time.Time {
			return time.Unix(recorded.Begin.Unix()+int64(i)*int64(betweenAnswers/time.Second), 0)
		}
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
