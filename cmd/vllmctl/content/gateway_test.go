package content_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

const (
	requests = `inference_gateway_epp_requests_total{job="g",instance="x",model_name="m",target_model_name="m",priority="0"}`
	shed     = `inference_gateway_epp_request_errors_total{job="g",instance="x",model_name="m",target_model_name="",error_code="ResourceExhausted"}`
	broken   = `inference_gateway_epp_request_errors_total{job="g",instance="x",model_name="m",target_model_name="m",error_code="ModelServerError"}`
)

func TestTheShareOfErrorsAtTheGatewayHasTheRightDenominator(t *testing.T) {
	for name, c := range map[string]struct {
		story []series
		want  float64
	}{
		"no error at all":                              {[]series{counter(requests, 10, 0, 10)}, 0},
		"everything is refused":                        {[]series{counter(shed, 10, 0, 10)}, 1},
		"refused while requests are known but stopped": {[]series{constant(requests, 50), counter(shed, 10, 0, 10)}, 1},
		"a third is refused":                           {[]series{counter(requests, 10, 0, 10), counter(shed, 5, 0, 5)}, 1. / 3},
		"a model server's errors are requests already": {[]series{counter(requests, 10, 0, 10), counter(broken, 5, 0, 5)}, 0.5},
		"both": {[]series{counter(requests, 10, 0, 10), counter(broken, 1, 0, 1), counter(shed, 10, 0, 10)}, 11. / 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlayer(t, "vllm-gateway")
			fired := p.play(20*minute, 30*time.Second, c.story...)
			assert.InDeltaSlice(t, []float64{c.want}, p.value("vllm_gateway:error_ratio:rate5m", 20*minute), 1e-6)
			if c.want > 0.05 {
				assert.Equal(t, []string{"VLLMGatewayErrors"}, names(fired))
			} else {
				assert.Empty(t, fired)
			}
		})
	}
	t.Run("idle", func(t *testing.T) {
		t.Parallel()
		p := newPlayer(t, "vllm-gateway")
		assert.Empty(t, p.play(20*minute, 30*time.Second, constant(requests, 50), constant(shed, 50)))
		assert.Empty(t, p.value("vllm_gateway:error_ratio:rate5m", 20*minute))
	})
	t.Run("ten requests in five minutes are too few", func(t *testing.T) {
		t.Parallel()
		assert.Empty(t, newPlayer(t, "vllm-gateway").play(20*minute, 30*time.Second, counter(shed, 10./300, 0, 10./300)))
	})
}

// Of a gateway that is no picker the processor has derived the numbers. One replica fails a tenth of its 10 requests
// per second, the other 30 % of its 30: 10 of 40.
func TestErrorsAndSlowRequestsOfOtherGatewaysAreReported(t *testing.T) {
	derived := func(metric, labels string, value float64) series {
		return constant("inference_gateway_request_"+metric+`{job="g",`+labels+`}`, value)
	}
	story := []series{
		derived("rate_per_second", `instance="x",model_name="m"`, 10), derived("rate_per_second", `instance="y",model_name="m"`, 30),
		derived("duration_quantile_seconds", `instance="x",model_name="m",quantile="0.99"`, 11), derived("duration_quantile_seconds", `instance="y",model_name="m",quantile="0.99"`, 2),
	}
	p := newPlayer(t, "vllm-gateway")
	assert.Equal(t, []string{"VLLMGatewayLatencyHigh"}, names(p.play(30*minute, 30*time.Second, story...)))
	assert.Empty(t, p.value("vllm_gateway:error_ratio:rate5m", 20*minute), "it does not mark errors")

	p = newPlayer(t, "vllm-gateway")
	story = append(story[:2], derived("error_ratio", `instance="x"`, 0.1), derived("error_ratio", `instance="x",model_name="m"`, 0.1), derived("error_ratio", `instance="y",model_name="m"`, 0.3))
	assert.Equal(t, []string{"VLLMGatewayErrors"}, names(p.play(20*minute, 30*time.Second, story...)))
	assert.InDeltaSlice(t, []float64{0.25}, p.value("vllm_gateway:error_ratio:rate5m", 20*minute), 1e-9)
}

func TestTheGatewayIsReportedWithoutEndpoints(t *testing.T) {
	const ready = `inference_gateway_pool_endpoint_ready{job="g",pool="p",instance=`
	// Two replicas of the picker watch the same pool; one of them sees an endpoint.
	assert.Empty(t, newPlayer(t, "vllm-gateway").play(20*minute, 30*time.Second, constant(ready+`"x"}`, 0), constant(ready+`"y"}`, 1)))
	f := first(t, newPlayer(t, "vllm-gateway").play(20*minute, 30*time.Second, constant(ready+`"x"}`, 0), constant(ready+`"y"}`, 0)), "VLLMGatewayNoReadyEndpoints")
	assert.Equal(t, firing{"VLLMGatewayNoReadyEndpoints", `job="g", pool="p"`, minute, 20 * minute}, f)
}

func TestSlowRequestsAtTheGatewayAreReported(t *testing.T) {
	const bucket = `inference_gateway_epp_request_duration_seconds_bucket{job="g",instance="x",model_name="m",target_model_name="m",le=`
	story := func(slow float64) []series {
		return []series{
			counter(requests, 10, 0, 10), counter(bucket+`"10"}`, 10-slow, 0, 10-slow), counter(bucket+`"30"}`, 10, 0, 10), counter(bucket+`"+Inf"}`, 10, 0, 10),
		}
	}
	assert.Equal(t, []string{"VLLMGatewayLatencyHigh"}, names(newPlayer(t, "vllm-gateway").play(30*minute, 30*time.Second, story(0.2)...)))
	assert.Empty(t, newPlayer(t, "vllm-gateway").play(30*minute, 30*time.Second, story(0.05)...))
}

func TestAnAdapterThatSomeServersLackIsReported(t *testing.T) {
	status := func(server, adapter string, v float64) series {
		return constant(`inference_gateway_lora_adapter_status{job="v",instance="`+server+`",adapter_name="`+adapter+`"}`, v)
	}
	for name, c := range map[string]struct {
		story []series
		want  []string
	}{
		"on both":          {[]series{status("a", "x", 1), status("b", "x", 1)}, []string{}},
		"absent on one":    {[]series{status("a", "x", 1), status("b", "x", 1), status("a", "y", 1)}, []string{"VLLMLoRAAdapterNotLoaded"}},
		"unloaded on one":  {[]series{status("a", "x", 1), status("b", "x", 0)}, []string{"VLLMLoRAAdapterNotLoaded"}},
		"unloaded on both": {[]series{status("a", "x", 0), status("b", "x", 0)}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, names(newPlayer(t, "vllm-gateway").play(30*minute, 30*time.Second, c.story...)))
		})
	}
}

func TestTheCollectorsOwnTroubleIsReported(t *testing.T) {
	const by = `{job="c",instance="i",exporter="otlp_http",data_type="metrics"}`
	const sent = `{job="c",instance="i",exporter="otlp_http"}`
	healthy := []series{
		constant("vllm_up", 1), constant("otelcol_exporter_queue_size"+by, 100), constant("otelcol_exporter_queue_capacity"+by, 1000),
		constant("otelcol_exporter_send_failed_metric_points"+sent, 7),
	}
	assert.Empty(t, newPlayer(t, "vllm-collector").play(40*minute, 30*time.Second, healthy...))
	full := append([]series{constant("otelcol_exporter_queue_size"+by, 600)}, healthy[0], healthy[2])
	assert.Equal(t, []string{"VLLMCollectorQueueFilling"}, names(newPlayer(t, "vllm-collector").play(40*minute, 30*time.Second, full...)))
	for _, metric := range []string{"otelcol_exporter_send_failed_metric_points", "otelcol_exporter_enqueue_failed_metric_points"} {
		failing := []series{healthy[0], counter(metric+sent, 0, 10*minute, 3)}
		assert.Equal(t, []string{"VLLMCollectorSendFailing"}, names(newPlayer(t, "vllm-collector").play(40*minute, 30*time.Second, failing...)), metric)
	}
}
