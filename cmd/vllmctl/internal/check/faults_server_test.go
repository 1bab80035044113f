package check_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// other is a program other than vLLM, with this body.
func other(name, body, version string, want ...string) fault {
	return fault{name, want, func(t world) string {
		return configuration(t, "endpoint: "+serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/metrics":
				w.Header().Set("Content-Type", text)
				_, _ = w.Write([]byte(body))
			case r.URL.Path == "/version" && version != "":
				_, _ = fmt.Fprintf(w, `{"version":%q}`, version)
			default:
				http.NotFound(w, r)
			}
		})), "")
	}}
}

// sample writes a gauge.
func sample(family, labels string) string {
	return fmt.Sprintf("# TYPE %[1]s gauge\n%[1]s{%[2]s} 1\n", family, labels)
}

// odd is a healthy server that was changed.
func odd(name string, cfg vllmsim.Config, change func(*simulated), want ...string) fault {
	return fault{name, want, func(t world) string {
		s := newSimulated(t, cfg)
		if change != nil {
			change(s)
		}
		return configuration(t, "endpoint: "+serve(t, s), "")
	}}
}

// inTurns serves the metrics of servers in turns.
func inTurns(tb testing.TB, servers ...http.Handler) string {
	tb.Helper()
	var (
		mu sync.Mutex
		n  int
	)
	return serve(tb, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/metrics" {
			n++
		}
		servers[max(0, n-1)%len(servers)].ServeHTTP(w, r)
	}))
}

var startLine = regexp.MustCompile(`(?m)^process_start_time_seconds .*$`)

// zeroed sets all samples of a family to 0.
func zeroed(body, family string) string {
	return regexp.MustCompile(`(?m)^(`+family+`\S*(?:\{[^}]*\})?) \S+$`).ReplaceAllString(body, "$1 0")
}

func serverFaults() []fault {
	plain := "# TYPE http_requests_total counter\nhttp_requests_total{handler=\"/health\",method=\"GET\",status=\"2xx\"} 3\n" +
		"# TYPE vllm:websocket_connections_active gauge\nvllm:websocket_connections_active 0\n"
	return []fault{
		other("log stats disabled", plain, "0.20.0", check.CodeLogStats),
		other("another program", sample("node_load1", ""), "", check.CodeNotVLLM),
		other("prefix that is not known", sample("acme_vllm_num_requests_running", `model_name="m"`), "", check.CodePrefix),
		other("endpoint picker", sample("inference_pool_ready_pods", `name="p"`), "", check.CodeGateway),
		other("LoRA syncer", sample("lora_syncer_adapter_status", `adapter_name="a"`), "", check.CodeGateway),
		other("Dynamo's frontend", sample("dynamo_frontend_active_requests", `model="m"`), "", check.CodeGateway),
		other("Dynamo's worker without vLLM", sample("dynamo_component_inflight_requests", `dynamo_endpoint="generate"`), "", check.CodeNotVLLM),
		other("NVIDIA's exporter", sample("DCGM_FI_DEV_POWER_USAGE", `gpu="0",UUID="GPU-a",pod="p"`), "", check.CodeAccelerator),
		other("AMD's exporter", sample("amd_gpu_power_usage", `gpu_id="0",gpu_partition_id="0",serial_number="s"`), "", check.CodeAccelerator),
		other("router", sample("vllm:current_qps", `server="http://a:8000"`), "", check.CodeRouter),
		other("vllm-router", sample("vllm_router_active_workers", ""), "", check.CodeRouter),
		other("Envoy AI Gateway", sample("gen_ai_server_active", `gen_ai_request_model="m"`), "", check.CodeGateway),
		other("agentgateway", sample("agentgateway_tokio_num_workers", ""), "", check.CodeGateway),
		other("simulator", sample("vllm:cache_config_info", `block_size="16",num_gpu_blocks="100"`)+sample("vllm:num_requests_running", `model_name="m"`), "", check.CodeSimulator, check.CodeNotJudged, check.CodeMissingRole),
		other("imitator", sample("vllm:num_requests_running", `model_name="m"`)+"# TYPE vllm:request_success_total counter\nvllm:request_success_total{model_name=\"m\",finish_reason=\"stop\"} 1\n", "", check.CodeSimulator),
		other("LMCache", sample("lmcache:num_hit_tokens", `model_name="m"`), "", check.CodeLMCache),
		other("SGLang", sample("sglang:token_usage", `model_name="m"`), "", check.CodeNotVLLM),
		odd("no version", vllmsim.Config{}, func(s *simulated) { s.version = "none" }, check.CodeVersionNone),
		odd("version of a build without tags", vllmsim.Config{}, func(s *simulated) { s.version = "0.1.dev1+g1234567" }, check.CodeVersionWrong),
		odd("version that is none", vllmsim.Config{}, func(s *simulated) { s.version = "main" }, check.CodeVersionWrong),
		odd("build before a release", vllmsim.Config{}, func(s *simulated) { s.version = "0.20.1.dev3+g1234567" }, check.CodeVersionDev),
		odd("old version", vllmsim.Config{Dialect: "v0", Version: "0.5.0"}, nil, check.CodeVersionOld, check.CodeMissingAge),
		odd("dead engine", vllmsim.Config{}, func(s *simulated) { s.health = http.StatusServiceUnavailable }, check.CodeUnhealthy),
		odd("clock behind", vllmsim.Config{}, func(s *simulated) {
			s.header = func(h http.Header) { h.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)) }
		}, check.CodeClock),
		odd("clock ahead", vllmsim.Config{}, func(s *simulated) {
			s.header = func(h http.Header) { h.Set("Date", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)) }
		}, check.CodeClock),
		{"restart between the scrapes", []string{check.CodeRestarted}, func(t world) string {
			old, young := healthy(t), healthy(t)
			young.edit = func(_ int, body string) string {
				return startLine.ReplaceAllString(body, fmt.Sprintf("process_start_time_seconds %.3f", float64(time.Now().UnixMilli())/1e3))
			}
			return configuration(t, "endpoint: "+inTurns(t, old, young), "")
		}},
		{"two replicas", []string{check.CodeReplicas}, func(t world) string {
			first, second := healthy(t), healthy(t)
			second.edit = func(_ int, body string) string {
				return startLine.ReplaceAllString(body, fmt.Sprintf("process_start_time_seconds %d", time.Now().Add(-time.Hour).Unix()))
			}
			return configuration(t, "endpoint: "+inTurns(t, first, second), "")
		}},
		{"two replicas without a start", []string{check.CodeFell, check.CodeNoStart}, func(t world) string {
			cfg := vllmsim.Config{Dialect: "v1-multiproc", Version: "0.20.0"}
			busy, idle := newSimulated(t, cfg), newSimulated(t, cfg)
			busy.later = 3
			return configuration(t, "endpoint: "+inTurns(t, busy, idle), "")
		}},
		odd("several API servers", vllmsim.Config{Dialect: "v1-multiproc", Version: "0.20.0"}, nil, check.CodeNoStart),
		{"second scrape fails", []string{check.CodeSecondFailed}, func(t world) string {
			return configuration(t, "endpoint: "+inTurns(t, healthy(t), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "no", http.StatusBadGateway)
			})), "")
		}},
		odd("prefill only", vllmsim.Config{Transfer: transfer}, func(s *simulated) {
			s.edit = func(_ int, body string) string { return zeroed(body, "vllm:inter_token_latency_seconds_") }
		}, check.CodePrefill),
		odd("decode only", vllmsim.Config{Transfer: transfer}, func(s *simulated) {
			s.edit = func(n int, body string) string {
				return regexp.MustCompile(`(?m)^(vllm:prompt_tokens_by_source_total\{[^}]*external_kv_transfer[^}]*\}) \S+$`).
					ReplaceAllString(body, fmt.Sprintf("${1} %d", 1_000_000_000*n))
			}
		}, check.CodeDecode),
	}
}

func metricFaults() []fault {
	limited := func(name, receiver string, cfg vllmsim.Config, want ...string) fault {
		return fault{name, want, func(t world) string {
			return configuration(t, receiver+", endpoint: "+serve(t, newSimulated(t, cfg)), "")
		}}
	}
	objective := func(name, metric, threshold string, cfg vllmsim.Config, want ...string) fault {
		return fault{name, want, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, newSimulated(t, cfg)),
				fmt.Sprintf("objectives: [{name: o, metric: %s, threshold: %s, target: 0.9}]", metric, threshold))
		}}
	}
	return []fault{
		edited("a family removed on the way", func(body string) string { return without(body, "vllm:num_requests_waiting") }, "", check.CodeMissing),
		edited("a histogram removed on the way", func(body string) string { return without(body, "vllm:time_to_first_token_seconds") }, "", check.CodeMissing),
		edited("a new family", adding(sample("vllm:brand_new", "")), "", check.CodeUnknownFamily),
		odd("Rust front end", vllmsim.Config{Dialect: "rust", Version: "0.24.0"}, nil, check.CodeMissingRole, check.CodeNoStart),
		{"server without a request", []string{check.CodeMissingIdle, check.CodeNoTraffic}, func(t world) string {
			sim, err := vllmsim.New(vllmsim.Config{Dialect: "v0", Version: "0.6.6", Seed: 7})
			require.NoError(t, err)
			return configuration(t, "endpoint: "+serve(t, sim.Targets()[0]), "")
		}},
		odd("no traffic now", vllmsim.Config{}, func(s *simulated) { s.idle = true }, check.CodeNoTraffic),
		limited("more series than allowed", "limits: {series: 20}", vllmsim.Config{}, check.CodeSeriesLimit),
		limited("nearly more series than allowed", "limits: {series: 49}", vllmsim.Config{}, check.CodeSeriesNear),
		{"more adapters than allowed", []string{check.CodeAdapters}, func(t world) string {
			s := newSimulated(t, vllmsim.Config{LoRA: true})
			s.edit = func(_ int, body string) string {
				return strings.Replace(body, `running_lora_adapters="`, `running_lora_adapters="a,b,c,d,`, 1)
			}
			return configuration(t, "limits: {adapters: 1}, endpoint: "+serve(t, s), "")
		}},
		{"more series than the processor keeps", []string{check.CodeProcessorFull}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, healthy(t)), "max_series: 20")
		}},
		objective("threshold within a bucket", "vllm.time_to_first_token", "2s", vllmsim.Config{}, check.CodeObjectiveBound),
		objective("threshold beyond the last bucket", "vllm.time_to_first_token", "20s", vllmsim.Config{Dialect: "v0", Version: "0.5.0"}, check.CodeObjectiveBound, check.CodeVersionOld),
		{"objective about what is switched off", []string{check.CodeObjectiveMetric}, func(t world) string {
			return configuration(t, "metrics: {vllm.request.queue_time: {enabled: false}}, endpoint: "+serve(t, healthy(t)),
				"objectives: [{name: o, metric: vllm.request.queue_time, threshold: 1s, target: 0.9}]")
		}},
		{"objective for no model", []string{check.CodeObjectiveModel}, func(t world) string {
			return configuration(t, "endpoint: "+serve(t, healthy(t)),
				"objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.9, models: [nosuch]}, {name: p, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.9, models: [\"*\"]}]")
		}},
		objective("objective without its histogram", "vllm.request.queue_time", "1s", vllmsim.Config{Dialect: "v0", Version: "0.5.0"}, check.CodeObjectiveMetric, check.CodeVersionOld),
	}
}
