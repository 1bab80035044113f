package collect

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func TestNothingIsReadFromNothing(t *testing.T) {
	batches, report := Read(pmetric.NewMetrics())
	assert.Empty(t, batches)
	assert.Equal(t, Report{}, report)
	in := newInput("service.instance.id", "a")
	in.metric("vllm.prompt_tokens")
	in.metric("vllm.num_preemptions").SetEmptySum()
	in.metric("vllm.num_requests.running").SetEmptyGauge()
	in.metric("vllm.time_to_first_token").SetEmptyHistogram()
	in.counter("somebody.elses", 1)
	batches, report = Read(in.metrics)
	assert.Empty(t, batches)
	assert.Equal(t, Report{}, report)
}

func TestANumberCanBeAnInteger(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 0).SetIntValue(7)
	assert.Equal(t, []string{"100 vllm.prompt_tokens{} 7"}, in.read(t))
}

func TestAnEngineIsTheSameAsANumberAndAsAText(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 1, "engine", "1")
	in.counter("vllm.generation_tokens", 2).Attributes().PutInt("engine", 1)
	batches, _ := Read(in.metrics)
	assert.Len(t, batches[0].Groups, 1)
	assert.Equal(t, "1", batches[0].Groups[0].Engine())
}

func TestTheOrderOfAttributesDoesNotMatter(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 1, "engine", "0", "model_name", "m")
	in.counter("vllm.generation_tokens", 2, "model_name", "m", "engine", "0")
	batches, _ := Read(in.metrics)
	assert.Len(t, batches[0].Groups, 1)
}

func TestAnAttributeWithoutAValueIsIgnored(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 1, "engine", "", "model_name", "m")
	in.counter("vllm.generation_tokens", 2, "model_name", "m")
	assert.Equal(t, []string{"100 vllm.prompt_tokens{model_name=m} 1", "100 vllm.generation_tokens{model_name=m} 2"}, in.read(t))
}

// Attributes that a deployment adds distinguish servers.
func TestOtherAttributesBelongToTheEngine(t *testing.T) {
	in := newInput()
	in.counter("vllm.request.success", 1, "engine", "0", "pod", "a", "finished_reason", "stop", "job", "vllm")
	in.counter("vllm.request.success", 2, "engine", "0", "pod", "b", "finished_reason", "stop", "job", "vllm")
	assert.Equal(t, []string{
		"100 vllm.request.success{engine=0,job=vllm,pod=a}[stop] 1", "100 vllm.request.success{engine=0,job=vllm,pod=b}[stop] 2",
	}, in.read(t))
}

func TestAnImitatorsLabelIsTheAttributeThatItMeans(t *testing.T) {
	in := newInput()
	in.counter("vllm:request_success_total", 1, "finish_reason", "stop")
	in.counter("vllm:request_success_total", 2, "finished_reason", "length", "finish_reason", "of its own")
	assert.Equal(t, []string{
		"100 vllm.request.success{}[stop] 1", "100 vllm.request.success{finish_reason=of its own}[length] 2",
	}, in.read(t))
}

func TestTheFrontEndsCountersHaveTheirLabelsInOneOrder(t *testing.T) {
	in := newInput()
	in.counter("http_requests", 1, "method", "POST", "handler", "/v1/completions", "status", "2xx")
	in.counter("http_requests", 2, "status", "5xx", "method", "POST")
	assert.Equal(t, []string{"100 http_requests{}[2xx|/v1/completions|POST] 1", "100 http_requests{}[5xx||POST] 2"}, in.read(t))
}

func TestPointsOfAnotherKindAreLeftOut(t *testing.T) {
	for name, add := range map[string]func(*request){
		"Ray's gauge twin of a counter": func(in *request) { in.gauge("ray_vllm_generation_tokens", 1) },
		"a counter of a state":          func(in *request) { in.counter("vllm:num_requests_running", 1) },
		"a counter of a distribution":   func(in *request) { in.counter("vllm:time_to_first_token_seconds", 1) },
		"a histogram of a counter":      func(in *request) { in.histogram("vllm:prompt_tokens_total", nil, []uint64{1}) },
		"a histogram of a state":        func(in *request) { in.histogram("vllm:num_requests_running", nil, []uint64{1}) },
		"a sum that falls, of a counter": func(in *request) {
			in.counter("x", 1)
			last(in).Sum().SetIsMonotonic(false)
			last(in).SetName("vllm:prompt_tokens_total")
		},
		"a delta of a state":          func(in *request) { upDown(in, pmetric.AggregationTemporalityDelta) },
		"a state without temporality": func(in *request) { upDown(in, pmetric.AggregationTemporalityUnspecified) },
		"a summary":                   func(in *request) { in.metric("vllm.time_to_first_token").SetEmptySummary().DataPoints().AppendEmpty() },
		"an exponential histogram": func(in *request) {
			in.metric("vllm.time_to_first_token").SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		},
		"an exponential histogram, a counter": func(in *request) {
			in.metric("vllm.prompt_tokens").SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
		},
	} {
		in := newInput()
		add(in)
		lines, report := in.reported(t)
		assert.Empty(t, lines, name)
		assert.Equal(t, count(TypeConflict, 1), report, name)
	}
}

// last is the metric that was added last.
func last(in *request) pmetric.Metric { return in.scope.Metrics().At(in.scope.Metrics().Len() - 1) }

func upDown(in *request, temporality pmetric.AggregationTemporality) {
	in.counter("vllm.num_requests.running", 3)
	last(in).Sum().SetIsMonotonic(false)
	last(in).Sum().SetAggregationTemporality(temporality)
}

func TestAStateCanBeASumThatFalls(t *testing.T) {
	in := newInput()
	upDown(in, pmetric.AggregationTemporalityCumulative)
	assert.Equal(t, []string{"100 vllm.num_requests.running{} 3"}, in.read(t))
}

func TestTheTemporalityMustBeKnown(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 3)
	last(in).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
	in.histogram("vllm.time_to_first_token", nil, []uint64{1})
	last(in).Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityUnspecified)
	lines, report := in.reported(t)
	assert.Empty(t, lines)
	assert.Equal(t, count(UnsupportedTemporality, 2), report)
}

func TestDeltasAreMarked(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 3)
	last(in).Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	in.histogram("vllm.time_to_first_token", []float64{1}, []uint64{1, 2})
	last(in).Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
	assert.Equal(t, []string{
		"100 vllm.prompt_tokens{} 3 delta", "100 vllm.time_to_first_token{} [1] [1 2] count 3 sum 1 delta",
	}, in.read(t))
}

func TestAValueThatIsNotANumberIsLeftOut(t *testing.T) {
	in := newInput()
	for _, value := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		in.counter("vllm.prompt_tokens", value)
		in.gauge("vllm.num_requests.running", value)
	}
	in.counter("vllm.prompt_tokens", -1)
	in.gauge("vllm.num_requests.running", -1)
	lines, report := in.reported(t)
	assert.Equal(t, []string{"100 vllm.num_requests.running{} -1"}, lines)
	assert.Equal(t, count(NotANumber, 7), report)
}

func TestAPointWithoutATimeIsLeftOut(t *testing.T) {
	in := newInput().time(0)
	in.counter("vllm.prompt_tokens", 1)
	in.histogram("vllm.time_to_first_token", nil, []uint64{1})
	lines, report := in.reported(t)
	assert.Empty(t, lines)
	assert.Equal(t, count(NoTimestamp, 2), report)
}

// Such a point may hold anything besides.
func TestAnEndHasNoValue(t *testing.T) {
	in := newInput()
	end(in.counter("vllm.prompt_tokens", math.NaN(), "engine", "0"))
	end(in.gauge("vllm.num_requests.running", 5))
	p := in.histogram("vllm.time_to_first_token", []float64{2, 1}, []uint64{1})
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	assert.Equal(t, []string{
		"100 vllm.prompt_tokens{engine=0} end", "100 vllm.num_requests.running{} end", "100 vllm.time_to_first_token{} end",
	}, in.read(t))
}

// Our receiver gives each end a metric entry of its own.
func TestAMetricCanComeInSeveralEntries(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 1, "engine", "0")
	end(in.counter("vllm.prompt_tokens", 0, "engine", "1"))
	in.counter("vllm.prompt_tokens", 3, "engine", "2")
	end(in.counter("vllm.prompt_tokens", 0, "engine", "3"))
	assert.Equal(t, []string{
		"100 vllm.prompt_tokens{engine=0} 1", "100 vllm.prompt_tokens{engine=1} end",
		"100 vllm.prompt_tokens{engine=2} 3", "100 vllm.prompt_tokens{engine=3} end",
	}, in.read(t))
}

func TestHistograms(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		name   string
		bounds []float64
		counts []uint64
		count  uint64
		want   string
	}{
		{"as it should be", []float64{1, 2}, []uint64{3, 2, 1}, 6, "[1 2] [3 2 1] count 6 sum 1"},
		{"with a bound at infinity", []float64{1, inf}, []uint64{3, 2, 0}, 5, "[1] [3 2] count 5 sum 1"},
		{"with observations beyond infinity", []float64{1, inf}, []uint64{3, 2, 4}, 9, "[1] [3 6] count 9 sum 1"},
		{"of one open bucket", nil, []uint64{4}, 4, "[] [4] count 4 sum 1"},
		{"with infinity alone", []float64{inf}, []uint64{4, 0}, 4, "[] [4] count 4 sum 1"},
		{"without buckets", nil, nil, 4, "[] [4] count 4 sum 1"},
		{"of nothing", []float64{1}, []uint64{0, 0}, 0, "[1] [0 0] count 0 sum 1"},
		{"too few counts", []float64{1, 2}, []uint64{3, 2}, 5, ""},
		{"too many counts", []float64{1}, []uint64{3, 2, 1}, 6, ""},
		{"bounds without counts", []float64{1}, nil, 4, ""},
		{"bounds that fall", []float64{2, 1}, []uint64{1, 1, 1}, 3, ""},
		{"bounds twice", []float64{1, 1}, []uint64{1, 1, 1}, 3, ""},
		{"a bound that is not a number", []float64{math.NaN()}, []uint64{1, 1}, 2, ""},
		{"a bound below everything", []float64{-inf, 1}, []uint64{0, 1, 1}, 2, ""},
		{"infinity twice", []float64{1, inf, inf}, []uint64{1, 1, 1, 1}, 4, ""},
		{"a count that is not the buckets'", []float64{1}, []uint64{1, 1}, 3, ""},
		{"fewer than the buckets have", []float64{1}, []uint64{1, 1}, 1, ""},
		// A body that was read while it changed: count 8, ten in the first bucket.
		{"less than none in the last bucket", []float64{1}, []uint64{10, math.MaxUint64 - 1}, 8, ""},
	} {
		in := newInput()
		in.histogram("vllm.time_to_first_token", c.bounds, c.counts).SetCount(c.count)
		lines, report := in.reported(t)
		if c.want == "" {
			assert.Empty(t, lines, c.name)
			assert.Equal(t, count(BadHistogram, 1), report, c.name)
			continue
		}
		assert.Equal(t, []string{"100 vllm.time_to_first_token{} " + c.want}, lines, c.name)
		assert.Equal(t, Report{}, report, c.name)
	}
}

func TestASumThatIsNotANumberIsIgnored(t *testing.T) {
	in := newInput()
	in.histogram("vllm.time_to_first_token", nil, []uint64{4}).SetSum(math.NaN())
	in.histogram("vllm.e2e_request_latency", nil, []uint64{4}).RemoveSum()
	assert.Equal(t, []string{
		"100 vllm.time_to_first_token{} [] [4] count 4", "100 vllm.e2e_request_latency{} [] [4] count 4",
	}, in.read(t))
}

func TestTheStartOfAPointIsKept(t *testing.T) {
	in := newInput()
	in.counter("vllm.prompt_tokens", 1).SetStartTimestamp(pcommon.Timestamp(42))
	batches, _ := Read(in.metrics)
	assert.Equal(t, int64(42), batches[0].Samples[0].Start)
}

// vLLM counts what it refuses for the whole server, by the limit of the queue that refuses.
func TestRefusalsAreOfTheServerByReason(t *testing.T) {
	for _, name := range []string{"vllm.admission_rejections", "vllm:admission_rejections_total"} {
		in := newInput()
		in.counter(name, 3, "model_name", "m", "reason", "max_num_queued_reqs")
		in.counter(name, 4, "model_name", "m", "reason", "max_num_queued_tokens")
		batches, report := Read(in.metrics)
		assert.Equal(t, Report{}, report)
		if assert.Len(t, batches[0].Groups, 1, name) && assert.Len(t, batches[0].Samples, 2, name) {
			assert.Equal(t, []input.Attribute{{Name: "model_name", Value: "m"}}, batches[0].Groups[0].Attributes, name)
			for i, want := range []string{"max_num_queued_reqs", "max_num_queued_tokens"} {
				assert.Equal(t, want, batches[0].Samples[i].Label.Value(0), name)
				assert.InDelta(t, 3+i, batches[0].Samples[i].Value, 0, name)
			}
		}
	}
}

// Read reads metrics without the memory of others.
func Read(metrics pmetric.Metrics) ([]input.Batch, Report) { return new(Reader).Read(metrics) }
