package scrape

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What the families of testdata/gateways/dynamo.txt become. A dash is no unit: the catalogue does not have
// the metric. The others are a copy of active_requests, and off.
const ofDynamo = `
dynamo_component_router_input_sequence_tokens dynamo.component.router.input_sequence_tokens histogram -
dynamo_component_router_kv_hit_rate dynamo.component.router.kv_hit_rate histogram 1
dynamo_component_router_requests_total dynamo.component.router.requests counter {request}
dynamo_component_router_time_to_first_token_seconds dynamo.component.router.time_to_first_token histogram s
dynamo_frontend_active_requests dynamo.frontend.active_requests gauge {request}
dynamo_frontend_disconnected_clients dynamo.frontend.disconnected_clients gauge {client}
dynamo_frontend_failures_total dynamo.frontend.failures counter {request}
dynamo_frontend_input_sequence_tokens dynamo.frontend.input_sequence_tokens histogram {token}
dynamo_frontend_inter_token_latency_seconds dynamo.frontend.inter_token_latency histogram s
dynamo_frontend_model_ready dynamo.frontend.model_ready gauge {state}
dynamo_frontend_output_sequence_tokens dynamo.frontend.output_sequence_tokens histogram {token}
dynamo_frontend_output_tokens_total dynamo.frontend.output_tokens counter {token}
dynamo_frontend_queued_requests dynamo.frontend.queued_requests gauge {request}
dynamo_frontend_request_duration_seconds dynamo.frontend.request_duration histogram s
dynamo_frontend_requests_started_total dynamo.frontend.requests_started counter -
dynamo_frontend_requests_total dynamo.frontend.requests counter {request}
dynamo_frontend_router_queue_pending_requests dynamo.frontend.router_queue_pending_requests gauge {request}
dynamo_frontend_stage_duration_seconds dynamo.frontend.stage_duration histogram s
dynamo_frontend_stage_requests dynamo.frontend.stage_requests gauge -
dynamo_frontend_time_to_first_token_seconds dynamo.frontend.time_to_first_token histogram s
dynamo_frontend_tokenizer_latency_ms dynamo.frontend.tokenizer_latency histogram ms
dynamo_frontend_worker_active_decode_blocks dynamo.frontend.worker_active_decode_blocks gauge {block}
dynamo_router_overhead_block_hashing_ms dynamo.router.overhead_block_hashing histogram ms
dynamo_router_overhead_scheduling_ms dynamo.router.overhead_scheduling histogram ms
dynamo_router_overhead_total_ms dynamo.router.overhead_total histogram ms
`

var pointOfDynamo = regexp.MustCompile(`(?m)^(dynamo\S+ \S+ \S+ \{.*?\})(?: from \S+)? @0 (count=\d+ sum=\S+|\S+)`)

// expfmt is the oracle for labels and numbers.
func TestTheFrontendOfDynamoIsAGateway(t *testing.T) {
	page := read(t, filepath.Join(bodies, "gateways", "dynamo.txt"))
	r := newRig(t)
	metrics := r.scrape(page)
	assert.Empty(t, append(r.logged("info"), r.logged("warn")...))
	assert.Equal(t, "gateway", textOf(metrics.ResourceMetrics().At(0).Resource().Attributes(), "vllm.server.kind"))

	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page))
	require.NoError(t, err)
	var want, got []string
	for row := range strings.SplitSeq(strings.TrimSpace(ofDynamo), "\n") {
		family, metric, _ := strings.Cut(row, " ")
		require.Contains(t, families, family)
		for _, m := range families[family].GetMetric() {
			var pairs []string
			for _, l := range m.GetLabel() {
				if l.GetValue() != "" {
					pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
				}
			}
			number := fmt.Sprint(m.GetGauge().GetValue() + m.GetCounter().GetValue())
			if h := m.GetHistogram(); h != nil {
				number = fmt.Sprintf("count=%d sum=%v", h.GetSampleCount(), h.GetSampleSum())
			}
			want = append(want, metric+" {"+strings.Join(pairs, ",")+"} "+number)
		}
	}
	for _, point := range pointOfDynamo.FindAllStringSubmatch(strings.ReplaceAll(render(metrics), "  {", " - {"), -1) {
		got = append(got, point[1]+" "+point[2])
	}
	assert.ElementsMatch(t, want, got)
}

// testdata/README.md has the requests between the two pages.
func TestWhatDynamoMeasuredIsWhatItsClientsSent(t *testing.T) {
	r := newRig(t)
	first := r.scrape(read(t, filepath.Join(bodies, "gateways", "dynamo.txt")))
	second := r.scrape(read(t, filepath.Join(bodies, "gateways", "dynamo-2.txt")))
	for what, want := range map[string]total{
		"frontend.requests model llama status success":                   {value: 6},
		"frontend.requests model llama status error error_type internal": {value: 1},
		"frontend.requests model qwen":                                   {value: 2},
		"frontend.request_duration model llama":                          {count: 7, sum: 27},
		"frontend.request_duration model qwen":                           {count: 2, sum: 2},
		"frontend.time_to_first_token model llama":                       {count: 6, sum: 1.8},
		"frontend.time_to_first_token model qwen":                        {count: 2, sum: .2},
		"frontend.output_tokens model llama":                             {value: 120},
		// A millisecond for 100 tokens of the prompt.
		"frontend.tokenizer_latency operation tokenize":       {count: 9, sum: 8},
		"router.overhead_total router_id 7024420418412078385": {count: 9, sum: 18},
		"component.router.requests":                           {value: 9},
	} {
		words := strings.Fields(what)
		before, after := totalOf(first, "dynamo."+words[0], words[1:]...), totalOf(second, "dynamo."+words[0], words[1:]...)
		assert.InDeltaSlice(t, []float64{want.value, want.count, want.sum},
			[]float64{after.value - before.value, after.count - before.count, after.sum - before.sum}, 1e-9, what)
	}
}
