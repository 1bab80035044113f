package catalog

// Bounds returns the finite upper bounds that the buckets of a histogram can have, sorted,
// and nil if they are not known. They are those of every version of the program that
// exposes the histogram, so a server may have fewer of them. Bounds that depend on how a
// server is configured, as those of numbers of tokens, are not known.
func Bounds(metric string) []float64 { return bounds[metric] }

var (
	vllmRequestTime = []float64{
		0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
	}
	vllmTokenTime = []float64{
		0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
	}
	vllmBlockTime = []float64{
		0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800,
	}
	vllmTransferTime = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 5}
	vllmChoices      = []float64{1, 2, 5, 10, 20}

	pickerTime = []float64{
		0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60,
		120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
	}
	pickerQueueTime = []float64{
		0.0001, 0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
	}
	pickerOwnTime = []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1}
	// The picker's own mistake: 32778 where 32768 is meant.
	pickerTokens = []float64{
		1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32778, 65536, 131072, 262144, 524288, 1048576,
	}
)

var bounds = map[string][]float64{
	"vllm.e2e_request_latency":           vllmRequestTime,
	"vllm.request.queue_time":            vllmRequestTime,
	"vllm.request.inference_time":        vllmRequestTime,
	"vllm.request.prefill_time":          vllmRequestTime,
	"vllm.request.decode_time":           vllmRequestTime,
	"vllm.inter_token_latency":           vllmTokenTime,
	"vllm.request.time_per_output_token": vllmTokenTime,
	"vllm.kv_block.lifetime":             vllmBlockTime,
	"vllm.kv_block.idle_before_evict":    vllmBlockTime,
	"vllm.kv_block.reuse_gap":            vllmBlockTime,
	"vllm.hf3fs.save_duration":           vllmTransferTime,
	"vllm.hf3fs.load_duration":           vllmTransferTime,
	"vllm.nixl.xfer_time":                vllmTransferTime,
	"vllm.nixl.post_time":                vllmTransferTime,
	"vllm.request.params_n":              vllmChoices,
	"vllm.request.params_best_of":        vllmChoices,
	"vllm.time_to_first_token": {
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	},

	"inference_gateway.epp.request.duration":                     pickerTime,
	"inference_gateway.epp.flow_control.queue.duration":          pickerQueueTime,
	"inference_gateway.epp.flow_control.enqueue.duration":        pickerOwnTime,
	"inference_gateway.epp.flow_control.dispatch_cycle.duration": pickerOwnTime,
	"inference_gateway.epp.scheduler.duration":                   pickerOwnTime,
	"inference_gateway.epp.plugin.duration":                      pickerOwnTime,
	"inference_gateway.epp.request.input_tokens":                 pickerTokens,
}
