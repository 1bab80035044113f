package normalize

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/captures"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// FuzzMake feeds arbitrary bodies: no panic, the invariants hold, and the time
// is bounded.
func FuzzMake(f *testing.F) {
	for _, body := range captures.Own(f) {
		f.Add(string(body.Text), false)
	}
	for seed := range uint64(20) {
		body, options := bodyMaker{rand.New(rand.NewPCG(seed, 2))}.body()
		f.Add(body, options.Wire)
	}
	f.Add("# TYPE vllm:lora_requests_info histogram\nvllm:lora_requests_info_count 1\n", false)
	f.Add("# TYPE vllm:num_requests_running gaugehistogram\nvllm:num_requests_running_gcount 1\n", false)
	f.Add("# TYPE _total counter\n_total 1\na:b:c 1\na 1\na:b_c 1\n", false)
	f.Add("# TYPE llm_d_epp_h histogram\nllm_d_epp_h_bucket{fairness_id=\"a\",le=\"1\"} 1\nllm_d_epp_h_bucket{fairness_id=\"a\",le=\"+Inf\"} 1\n"+
		"llm_d_epp_h_count{fairness_id=\"a\"} 1\nllm_d_epp_h_bucket{fairness_id=\"b\",le=\"2\"} 1\n"+
		"llm_d_epp_h_bucket{fairness_id=\"b\",le=\"+Inf\"} 1\nllm_d_epp_h_count{fairness_id=\"b\"} 1\ninference_model_h 1\nplugin_h 2\n", false)
	f.Add("# TYPE vllm:current_qps gauge\nvllm:current_qps{server=\"a\"} 1\nvllm:. 1\nvllm:num_requests_running{server=\"a\"} 2\nrouter_x 1\n", false)
	f.Add("# TYPE DCGM_FI_DEV_FB_USED gauge\nDCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"a\",GPU_I_ID=\"1\",GPU_I_PROFILE=\"p\",pod=\"x\"} 1\n"+
		"DCGM_FI_DEV_FB_USED{gpu=\"0\",UUID=\"a\",GPU_I_ID=\"2\",pod=\"y\",namespace=\"n\"} 1\nDCGM_FI_DEV_FB_FREE{UUID=\"a\",GPU_I_ID=\"1\"} 1\n"+
		"DCGM_FI_DEV_POWER_USAGE{UUID=\"a\",pod=\"x\"} 1\nDCGM_FI_DEV_POWER_USAGE{UUID=\"a\",pod=\"y\"} 1\nDCGM_FI_DEV_CLOCKS_EVENT_REASONS{uuid=\"b\"} 4\n"+
		"DCGM_EXP_XID_ERRORS_COUNT{gpu_uuid=\"b\",xid=\"79\"} 1\nDCGM_FI_DEV_FAN_SPEED{nvswitch=\"1\"} 1\n", false)
	f.Add("amd_gpu_power_usage{gpu_id=\"0\",gpu_partition_id=\"0\",serial_number=\"s\",gpu_compute_partition_type=\"cpx\",exported_pod=\"x\"} 1\n"+
		"amd_gpu_power_usage{gpu_id=\"1\",gpu_partition_id=\"1\",serial_number=\"s\",gpu_compute_partition_type=\"cpx\",pod_uuid=\"u\"} 1\n"+
		"amd_gpu_package_power{gpu_id=\"0\",gpu_partition_id=\"0\",serial_number=\"s\"} 1\namd_gpu_clock{gpu_uuid=\"s\",clock_type=\"SYSTEM\"} 1\n", false)
	f.Fuzz(func(t *testing.T, body string, wire bool) {
		layout := exposition.NewReader(exposition.NewMemory(0)).Read([]byte(body), exposition.DialectText).Layout
		options := Options{
			Wire: wire, Prefixes: []string{"acme_"}, GenAI: true, CapacityFromBlocks: true, MaxDevices: 20,
		}
		began := time.Now()
		plan := Make(layout, options)
		require.Less(t, time.Since(began), 5*time.Second, "for %d bytes", len(body))
		checkPlan(t, layout, &options, plan)
	})
}

func TestRealBodiesKeepTheInvariants(t *testing.T) {
	for _, body := range captures.Bodies(t) {
		t.Run(body.Name, func(t *testing.T) {
			for _, options := range []Options{{}, {Wire: true}, {GenAI: true, CapacityFromBlocks: true}} {
				for _, dialect := range []exposition.Dialect{exposition.DialectText, exposition.DialectOpenMetrics} {
					layout := exposition.NewReader(exposition.NewMemory(0)).Read(body.Text, dialect).Layout
					checkPlan(t, layout, &options, Make(layout, options))
				}
			}
		})
	}
}
