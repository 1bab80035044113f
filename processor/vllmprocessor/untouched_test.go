package vllmprocessor

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// emittingAll is a processor with all metrics on.
func emittingAll(tb testing.TB) *vllmProcessor {
	tb.Helper()
	config := createDefaultConfig().(*Config)
	config.Derived.Percentiles.PerEngine = true
	config.Derived.CapacityFromBlocks = true
	config.MaxSeries = 2000
	config.Metrics = map[string]MetricConfig{}
	on := true
	for _, m := range catalog.All() {
		if m.Derived() {
			config.Metrics[m.Name] = MetricConfig{Enabled: &on}
		}
	}
	p, err := newProcessor(config, processortest.NewNopSettings(metadata.Type), consumertest.NewNop(), &archive.Shared{}, realClock{})
	require.NoError(tb, err)
	// Whatever the times of the points are, they are not in the future.
	p.now = func() time.Time { return time.Unix(0, math.MaxInt64) }
	return p
}

// checkPassed processes metrics and makes sure that the input passes untouched, in
// order, and that what is added belongs to the catalogue and is finite.
func checkPassed(t *testing.T, p *vllmProcessor, metrics pmetric.Metrics) {
	t.Helper()
	marshaler := &pmetric.ProtoMarshaler{}
	before, err := marshaler.MarshalMetrics(metrics)
	require.NoError(t, err)
	scopes := make([]int, metrics.ResourceMetrics().Len())
	for i, rm := range metrics.ResourceMetrics().All() {
		scopes[i] = rm.ScopeMetrics().Len()
	}
	out, err := p.process(t.Context(), metrics)
	require.NoError(t, err)
	require.Equal(t, len(scopes), out.ResourceMetrics().Len())
	for i, rm := range out.ResourceMetrics().All() {
		n := 0
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			n++
			if n <= scopes[i] {
				return false
			}
			checkDerived(t, sm)
			return true
		})
	}
	after, err := marshaler.MarshalMetrics(out)
	require.NoError(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the input has changed")
	}
}

func checkDerived(t *testing.T, sm pmetric.ScopeMetrics) {
	t.Helper()
	require.Equal(t, metadata.ScopeName, sm.Scope().Name())
	require.Positive(t, sm.Metrics().Len())
	for _, m := range sm.Metrics().All() {
		described, known := catalog.ByName(m.Name())
		require.True(t, known && described.Derived(), m.Name())
		require.Equal(t, pmetric.MetricTypeGauge, m.Type())
		require.Equal(t, described.Unit, m.Unit())
		require.Positive(t, m.Gauge().DataPoints().Len())
		for _, point := range m.Gauge().DataPoints().All() {
			require.NotZero(t, point.Timestamp())
			if value := point.DoubleValue(); math.IsNaN(value) || math.IsInf(value, 0) {
				t.Errorf("%s = %v", m.Name(), value)
			}
		}
	}
}

func TestTheInputPassesUntouched(t *testing.T) {
	for seed := range uint64(300) {
		random := randomMetrics{rand.New(rand.NewPCG(seed, 1))}
		p := emittingAll(t)
		for range 4 {
			checkPassed(t, p, random.metrics())
		}
	}
}

func TestTheInputOfAServerPassesUntouched(t *testing.T) {
	p := emittingAll(t)
	for _, metrics := range prometheusReceived(t, answersOf(t, "two engines")[:3]) {
		checkPassed(t, p, metrics)
	}
}

// randomMetrics makes metrics that are wrong in many ways, and about the right
// things often enough.
type randomMetrics struct{ *rand.Rand }

func (r randomMetrics) metrics() pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	for range r.IntN(4) {
		rm := metrics.ResourceMetrics().AppendEmpty()
		if r.IntN(4) > 0 {
			rm.Resource().Attributes().PutStr("service.instance.id", r.pick("a", "b"))
		}
		for range r.IntN(3) {
			sm := rm.ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(r.pick("", "x", metadata.ScopeName))
			for range r.IntN(12) {
				r.metric(sm.Metrics().AppendEmpty())
			}
		}
	}
	return metrics
}

func (r randomMetrics) pick(from ...string) string { return from[r.IntN(len(from))] }

func (r randomMetrics) metric(m pmetric.Metric) {
	all := catalog.All()
	m.SetName(all[r.IntN(len(all))].Name)
	if r.IntN(2) > 0 {
		m.SetName(r.pick("vllm.prompt_tokens", "vllm:generation_tokens_total", "vllm.time_to_first_token", "vllm:kv_cache_usage_perc",
			"vllm.num_requests.running", "vllm:cache_config_info", "vllm.request.success", "somebody.elses"))
	}
	switch r.IntN(7) {
	case 0, 1:
		m.SetEmptyGauge()
		r.numbers(m.Gauge().DataPoints())
	case 2, 3:
		m.SetEmptySum().SetIsMonotonic(r.IntN(4) > 0)
		m.Sum().SetAggregationTemporality(pmetric.AggregationTemporality(r.IntN(3)))
		r.numbers(m.Sum().DataPoints())
	case 4, 5:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporality(r.IntN(3)))
		r.histograms(m.Histogram().DataPoints())
	case 6:
		if r.IntN(2) > 0 {
			m.SetEmptySummary().DataPoints().AppendEmpty().SetCount(3)
		}
	}
}

// about gives a point its time and attributes.
func (r randomMetrics) about(p timed) {
	p.SetTimestamp(pcommon.Timestamp(r.IntN(9)) * pcommon.Timestamp(betweenAnswers))
	p.SetStartTimestamp(pcommon.Timestamp(r.IntN(9)) * pcommon.Timestamp(betweenAnswers))
	for range r.IntN(4) {
		name := r.pick("engine", "model_name", "finished_reason", "finish_reason", "pid", "quantile", "block_size")
		if r.IntN(3) > 0 {
			p.Attributes().PutStr(name, fmt.Sprint(r.IntN(3)))
		} else {
			p.Attributes().PutInt(name, int64(r.IntN(3)))
		}
	}
}

func (r randomMetrics) number() float64 {
	switch r.IntN(12) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*r.IntN(2))
	case 2:
		return math.MaxFloat64
	case 3:
		return -1
	}
	return float64(r.IntN(50))
}

func (r randomMetrics) numbers(points pmetric.NumberDataPointSlice) {
	for range r.IntN(4) {
		p := points.AppendEmpty()
		r.about(p)
		p.SetDoubleValue(r.number())
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(r.IntN(6) == 0))
	}
}

func (r randomMetrics) histograms(points pmetric.HistogramDataPointSlice) {
	for range r.IntN(4) {
		p := points.AppendEmpty()
		r.about(p)
		bounds := r.IntN(4)
		for i := range bounds {
			p.ExplicitBounds().Append(float64(i) + float64(r.IntN(2))*1.5)
		}
		for range bounds + 1 {
			n := uint64(r.IntN(5))
			if r.IntN(30) == 0 {
				n = math.MaxUint64 - n
			}
			p.BucketCounts().Append(n)
			p.SetCount(p.Count() + n)
		}
		if r.IntN(4) > 0 {
			p.SetSum(r.number())
		}
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(r.IntN(6) == 0))
	}
}

// FuzzProcess gives the processor whatever OTLP can carry, twice with the same
// time and once later.
func FuzzProcess(f *testing.F) {
	marshaler, unmarshaler := &pmetric.ProtoMarshaler{}, &pmetric.ProtoUnmarshaler{}
	add := func(metrics pmetric.Metrics) {
		bytes, err := marshaler.MarshalMetrics(metrics)
		require.NoError(f, err)
		f.Add(bytes)
	}
	for _, server := range []string{"two engines", "the V0 engine"} {
		for _, s := range answersOf(f, server)[:1] {
			add(fromPrometheus(f, s))
		}
	}
	for seed := range uint64(20) {
		random := randomMetrics{rand.New(rand.NewPCG(seed, 2))}
		add(random.metrics())
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		p := emittingAll(t)
		for i := range 3 {
			metrics, err := unmarshaler.UnmarshalMetrics(bytes)
			if err != nil {
				return
			}
			if i == 2 {
				everyTime(metrics, func(at pcommon.Timestamp) pcommon.Timestamp { return at + pcommon.Timestamp(betweenAnswers) })
			}
			p.now = func() time.Time { return time.Unix(int64(i), 0) }
			checkPassed(t, p, metrics)
		}
	})
}

// A picker's exemplars pass, and what is derived of the same histogram has none.
func TestTheExemplarsOfAPickerPass(t *testing.T) {
	read := receiving(t, "")
	p := emittingAll(t)
	for i := range 6 {
		body := fmt.Sprintf("# TYPE llm_d_epp_request_duration_seconds histogram\n"+
			"llm_d_epp_request_duration_seconds_bucket{model_name=\"m\",target_model_name=\"t\",le=\"1\"} %[1]d # {trace_id=\"%032[1]d\"} 0.5 1.5\n"+
			"llm_d_epp_request_duration_seconds_bucket{model_name=\"m\",target_model_name=\"t\",le=\"+Inf\"} %[1]d\n"+
			"llm_d_epp_request_duration_seconds_sum{model_name=\"m\",target_model_name=\"t\"} %[2]v\n"+
			"llm_d_epp_request_duration_seconds_count{model_name=\"m\",target_model_name=\"t\"} %[1]d\n# EOF\n", i+1, 0.5*float64(i+1))
		metrics := read(answer{at: noon.Add(time.Duration(i) * 15 * time.Second), body: []byte(body)})
		checkPassed(t, p, metrics)
		found := 0
		for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "inference_gateway.epp.request.duration" {
				require.Equal(t, 1, m.Histogram().DataPoints().At(0).Exemplars().Len())
				require.Equal(t, fmt.Sprintf("%032d", i+1), m.Histogram().DataPoints().At(0).Exemplars().At(0).TraceID().String())
				found++
			}
		}
		require.Equal(t, 1, found)
	}
}
