package collect

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// ofGateway is one sample as text: input, model, label, count and sum.
func ofGateway(batches []input.Batch) (all []string) {
	for _, b := range batches {
		for _, s := range b.Samples {
			text := s.Input.String() + " " + b.Groups[s.Group].Value("model_name") + " " + string(s.Label) + " "
			all = append(all, text+strconv.FormatFloat(s.Count+s.Value, 'g', -1, 64))
		}
	}
	return all
}

func TestTheTimesOfAGatewayHaveManyNames(t *testing.T) {
	const duration, first = "gen_ai.server.request.duration", "gen_ai.server.time_to_first_token"
	for name, want := range map[string]string{
		"gen_ai.server.request.duration":              duration,
		"gen_ai_server_request_duration":              duration,
		"gen_ai_server_request_duration_seconds":      duration,
		"gen_ai.server.request.duration_seconds":      duration,
		"dynamo.frontend.request_duration":            duration,
		"dynamo_frontend_request_duration_seconds":    duration,
		"vllm_router.request.latency":                 duration,
		"gen_ai.server.time_to_first_token":           first,
		"gen_ai_server_time_to_first_token_seconds":   first,
		"dynamo_frontend_time_to_first_token_seconds": first,
	} {
		in := newInput()
		in.histogram(name, []float64{1, 2}, []uint64{1, 0, 2}, "model", "m")
		batches, report := Read(in.metrics)
		assert.Equal(t, []string{want + " m  3"}, ofGateway(batches), name)
		assert.Equal(t, Report{}, report, name)
	}
}

// The model is what the server calls it, where the gateway has read that.
func TestTheModelOfAGateway(t *testing.T) {
	for want, attributes := range map[string][]string{
		"response":      {"gen_ai.response.model", "response", "gen_ai.request.model", "request", "model", "m"},
		"request":       {"gen_ai.response.model", "unknown", "gen_ai.request.model", "request"},
		"underscored":   {"gen_ai_response_model", "underscored", "gen_ai_request_model", "request"},
		"also request":  {"gen_ai_response_model", "", "gen_ai_request_model", "also request"},
		"ofDynamo":      {"model", "ofDynamo"},
		"our attribute": {"model_name", "our attribute", "model", "m"},
		"":              {"gen_ai.request.model", "unknown", "route", "r"},
	} {
		in := newInput()
		in.histogram("gen_ai.server.request.duration", []float64{1}, []uint64{1, 0}, attributes...)
		batches, _ := Read(in.metrics)
		assert.Equal(t, []string{"gen_ai.server.request.duration " + want + "  1"}, ofGateway(batches))
	}
}

// However many routes, backends, operations and clients a gateway distinguishes, there are two samples for
// each model: of requests that failed and of others.
func TestTheRoutesOfAGatewayAreAddedUp(t *testing.T) {
	in := newInput()
	for i := range 1000 {
		more := []string{"gen_ai.request.model", "m", "route", strconv.Itoa(i), "gen_ai.operation.name", []string{"chat", "completion"}[i%2]}
		if i%10 == 0 {
			more = append(more, "error.type", "_OTHER")
		}
		in.histogram("gen_ai.server.request.duration", []float64{1, 2}, []uint64{1, 0, 2}, more...)
	}
	batches, report := Read(in.metrics)
	assert.Equal(t, Report{}, report)
	assert.Equal(t, []string{"gen_ai.server.request.duration m true 300", "gen_ai.server.request.duration m  2700"}, ofGateway(batches))
	assert.Equal(t, []float64{900, 0, 1800}, batches[0].Samples[1].Counts)
	assert.True(t, batches[0].Evidence.Signs.Has(input.MarksErrors))
}

func TestWhatFailedAtAGateway(t *testing.T) {
	for _, test := range []struct {
		attributes []string
		label      string
		marks      bool
	}{
		{[]string{"status", "success"}, "", true},
		{[]string{"status", "error"}, "true", true},
		{[]string{"status", "success", "error_type", ""}, "", true},
		{[]string{"status", "error", "error_type", "timeout"}, "true", true},
		{[]string{"status", "200"}, "", true},
		{[]string{"status", "503"}, "true", true},
		{[]string{"error.type", "_OTHER"}, "true", true},
		{nil, "", false},
	} {
		in := newInput()
		in.counter("dynamo.frontend.requests", 4, append([]string{"model", "m"}, test.attributes...)...)
		batches, _ := Read(in.metrics)
		assert.Equal(t, []string{"dynamo.frontend.requests m " + test.label + " 4"}, ofGateway(batches), test.attributes)
		assert.Equal(t, test.marks, batches[0].Evidence.Signs.Has(input.MarksErrors), test.attributes)
	}
}

// 250 ms are 0.25 s. What has another unit than one of time is not used.
func TestTheUnitOfAGateway(t *testing.T) {
	for unit, factor := range map[string]float64{"": 1, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "By": 0, "1": 0, "min": 0} {
		in := newInput()
		in.histogram("gen_ai.server.request.duration", []float64{250, 1000}, []uint64{1, 0, 2}, "model", "m").SetSum(4000)
		in.scope.Metrics().At(0).SetUnit(unit)
		batches, report := Read(in.metrics)
		if factor == 0 {
			assert.Empty(t, batches, unit)
			assert.Equal(t, Report{UnknownUnit: 1}, report, unit)
			continue
		}
		s := batches[0].Samples[0]
		assert.InDeltaSlice(t, []float64{250 * factor, 1000 * factor}, s.Bounds, 1e-12, unit)
		assert.InDelta(t, 4000*factor, s.Sum, 1e-12, unit)
		assert.InDelta(t, 3, s.Count, 0, unit)
	}
}

// Our receiver copies vLLM's own times to the names of the convention. They are not those of a gateway; what
// it scrapes from a gateway is.
func TestACopyIsNotAGateway(t *testing.T) {
	for name, test := range map[string]struct {
		resource, attributes []string
		scope                string
		read                 bool
	}{
		"of our receiver":                   {nil, []string{"gen_ai.provider.name", "vllm"}, receiverScope, false},
		"of our receiver, without a scope":  {nil, []string{"gen_ai.provider.name", "vllm", "engine", "0"}, "", false},
		"of a gateway":                      {[]string{"vllm.server.kind", "gateway"}, nil, receiverScope, true},
		"of a router":                       {[]string{"vllm.server.kind", "router"}, nil, receiverScope, true},
		"of a gateway, not our receiver":    {nil, []string{"gen_ai.provider.name", "vllm"}, "", true},
		"of another kind from our receiver": {[]string{"vllm.server.kind", "simulator"}, nil, receiverScope, false},
	} {
		in := newInput(test.resource...)
		in.scope.Scope().SetName(test.scope)
		in.histogram("gen_ai.server.request.duration", []float64{1}, []uint64{1, 0}, append(test.attributes, "gen_ai.request.model", "m")...)
		batches, report := Read(in.metrics)
		assert.Equal(t, test.read, len(batches) > 0, name)
		assert.Equal(t, Report{}, report, name)
	}
}

// The router of the production stack has another kind.
func TestARouterFromOurReceiverIsAGateway(t *testing.T) {
	in := newInput("vllm.server.kind", "router")
	in.scope.Scope().SetName(receiverScope)
	in.histogram("vllm_router.request.latency", []float64{1}, []uint64{1, 0}, "model", "m", "server", "http://a:8000", "status", "success")
	batches, _ := Read(in.metrics)
	assert.Equal(t, []string{"gen_ai.server.request.duration m  1"}, ofGateway(batches))
}

// Applications measure what they wait for under the name of the convention, too.
func TestAnApplicationIsNotAGateway(t *testing.T) {
	for kind, read := range map[string]bool{"": false, "gateway": true} {
		in := newInput("vllm.server.kind", kind)
		in.histogram("gen_ai.client.operation.duration", []float64{1}, []uint64{1, 0}, "gen_ai.request.model", "m")
		batches, _ := Read(in.metrics)
		assert.Equal(t, read, len(batches) > 0, kind)
	}
	// Beside the time as a server it counts the same requests.
	in := newInput("vllm.server.kind", "gateway")
	in.histogram("gen_ai.client.operation.duration", []float64{1}, []uint64{5, 0}, "gen_ai.request.model", "m", "error.type", "x")
	in.histogram("gen_ai.server.request.duration", []float64{1}, []uint64{1, 0}, "gen_ai.request.model", "m")
	batches, report := Read(in.metrics)
	require.Len(t, batches, 1)
	assert.Equal(t, []string{"gen_ai.server.request.duration m  1"}, ofGateway(batches))
	assert.Equal(t, 1, report[OlderName])
}

// The router of the production stack has gauges of vLLM by server, without the model. A server may have an
// attribute of that name from its operator.
func TestWhatARouterRepeatsIsNotAnEngine(t *testing.T) {
	for name, test := range map[string]struct {
		attributes []string
		want       []string
	}{
		"repeated": {[]string{"server", "http://a:8000"}, nil},
		"a server": {[]string{"server", "rack 1", "model_name", "m", "engine", "0"}, []string{"vllm.num_requests.running m  3"}},
	} {
		in := newInput()
		in.gauge("vllm:num_requests_running", 3, test.attributes...)
		in.histogram("vllm:request_latency_seconds", []float64{1}, []uint64{1, 0}, "model", "m", "server", "http://a:8000", "status", "success")
		batches, report := Read(in.metrics)
		assert.Equal(t, append(test.want, "gen_ai.server.request.duration m  1"), ofGateway(batches), name)
		assert.Equal(t, Report{}, report, name)
	}
}
