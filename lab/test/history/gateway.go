package history

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Gateway is a simulated endpoint picker. Its counters grow by the rates of its phases.
type Gateway struct {
	Model, Pool string
	// Phases are in the order of their begin; the first begins at 0.
	Phases []GatewayPhase
}

// GatewayPhase is a time in which the load of a gateway does not change.
type GatewayPhase struct {
	From time.Duration
	// Served is the number of requests per second that are scheduled.
	Served float64
	// Refused is the number of requests per second that the picker refuses. They are
	// among the errors and not among the requests.
	Refused float64
	// Failed is how many of the scheduled requests per second the model server fails.
	Failed float64
	// Duration is the median time of a request; one of two hundred takes ten times as long.
	Duration time.Duration
	// Ready is the number of ready endpoints, Queued that of waiting requests.
	Ready, Queued float64
}

// durations are bounds of the picker's histogram of request durations, in seconds.
var durations = []float64{
	0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60, 120, 180, 240, 300, 360, 480, 600, 900, 1200, 1800, 2700, 3600,
}

// amounts are bounds of the picker's histograms of tokens.
var amounts = []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}

// refusal is the code of a request that the picker refuses because the pool is full.
const refusal = "ResourceExhausted"

// histogramOf is a cumulative histogram of a simulated picker.
type histogramOf struct {
	bounds  []float64
	buckets []float64
	count   float64
	sum     float64
}

func (h *histogramOf) observe(value, weight float64) {
	if h.buckets == nil {
		h.buckets = make([]float64, len(h.bounds))
	}
	for i, bound := range h.bounds {
		if value <= bound {
			h.buckets[i] += weight
		}
	}
	h.count += weight
	h.sum += weight * value
}

// write writes whole counts, as a real histogram has. Each bucket is rounded for itself: the
// difference of two rounded sums can fall, which would be a restart.
func (h *histogramOf) write(b *strings.Builder, family, labels string) {
	fmt.Fprintf(b, "# TYPE %s histogram\n", family)
	const noise = 1e-6 // of adding up.
	below, total := 0.0, 0.0
	for i, bound := range h.bounds {
		total += math.Floor(h.buckets[i] - below + noise)
		below = h.buckets[i]
		fmt.Fprintf(b, "%s_bucket{%s,le=\"%g\"} %.0f\n", family, labels, bound, total)
	}
	total += math.Floor(h.count - below + noise)
	fmt.Fprintf(b, "%s_bucket{%s,le=\"+Inf\"} %.0f\n%s_sum{%s} %g\n%s_count{%s} %.0f\n",
		family, labels, total, family, labels, h.sum, family, labels, total)
}

// phase returns the phase at a time.
func (g *Gateway) phase(at time.Duration) GatewayPhase {
	now := g.Phases[0]
	for _, p := range g.Phases {
		if p.From <= at {
			now = p
		}
	}
	return now
}

// Handler serves the page of the picker, whose first phase begins at a time.
func (g *Gateway) Handler(begin time.Time) http.Handler { return &pages{begin: begin, page: g.page} }

// page returns what the picker exports at a time. It adds up the seconds until then.
func (g *Gateway) page(at time.Duration) string {
	var requests, refused, failed float64
	duration := histogramOf{bounds: durations}
	first := histogramOf{bounds: durations}
	queued := histogramOf{bounds: []float64{0.0001, 0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300}}
	chosen := histogramOf{bounds: []float64{0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1}}
	in, out := histogramOf{bounds: amounts}, histogramOf{bounds: amounts}
	for i, p := range g.Phases {
		until := at
		if i+1 < len(g.Phases) {
			until = min(at, g.Phases[i+1].From)
		}
		length := max(0, until-p.From).Seconds()
		requests += length * p.Served
		refused += length * p.Refused
		failed += length * p.Failed
		done, median := length*(p.Served-p.Failed), p.Duration.Seconds()
		for _, part := range []struct{ share, factor float64 }{{0.45, 0.7}, {0.45, 1.3}, {0.095, 2}, {0.005, 10}} {
			duration.observe(part.factor*median, part.share*done)
			first.observe(part.factor*median/10, part.share*done)
			in.observe(1000*part.factor, part.share*done)
			out.observe(130*part.factor, part.share*done)
		}
		wait := 0.0005
		if p.Queued > 0 && p.Served > 0 {
			wait = p.Queued / p.Served // Little's law.
		}
		chosen.observe(0.0004, length*p.Served)
		queued.observe(wait, length*p.Served)
	}
	now := g.phase(at)
	model := fmt.Sprintf("model_name=%q,target_model_name=%q", g.Model, g.Model)
	withPriority := model + `,priority="0"`
	var b strings.Builder
	counter := func(family, labels string, value float64) {
		fmt.Fprintf(&b, "# TYPE %s counter\n%s{%s} %.0f\n", family, family, labels, math.Floor(value))
	}
	gauge := func(family, labels string, value float64) {
		fmt.Fprintf(&b, "# TYPE %s gauge\n%s{%s} %g\n", family, family, labels, value)
	}
	counter("inference_objective_request_total", withPriority, requests)
	fmt.Fprintf(&b, "# TYPE inference_objective_request_error_total counter\n")
	// A series of an error exists after the first error.
	for code, n := range map[string]float64{refusal: refused, "ModelServerError": failed} {
		if n >= 1 {
			fmt.Fprintf(&b, "inference_objective_request_error_total{%s,error_code=%q} %.0f\n", withPriority, code, math.Floor(n))
		}
	}
	gauge("inference_objective_running_requests", fmt.Sprintf("model_name=%q", g.Model), math.Round(now.Served*now.Duration.Seconds()))
	duration.write(&b, "inference_objective_request_duration_seconds", model)
	first.write(&b, "inference_objective_request_ttft_seconds", model)
	in.write(&b, "inference_objective_input_tokens", model)
	out.write(&b, "inference_objective_output_tokens", model)
	pool := fmt.Sprintf("name=%q", g.Pool)
	gauge("inference_pool_ready_pods", pool, now.Ready)
	gauge("inference_pool_average_queue_size", pool, now.Queued/max(1, now.Ready))
	gauge("inference_pool_average_kv_cache_utilization", pool, 0.1)
	for i := range int(now.Ready) {
		gauge("inference_pool_per_pod_queue_size", fmt.Sprintf("%s,model_server_pod=\"endpoint-%d\"", pool, i), math.Floor(now.Queued/now.Ready))
	}
	counter("inference_extension_scheduler_attempts_total", `status="success"`, requests)
	chosen.write(&b, "inference_extension_scheduler_e2e_duration_seconds", `scheduler="default"`)
	flow := fmt.Sprintf("inference_pool=%q,fairness_id=\"a\",%s", g.Pool, withPriority)
	gauge("inference_extension_flow_control_queue_size", flow, now.Queued)
	queued.write(&b, "inference_extension_flow_control_request_queue_duration_seconds", flow+`,outcome="Dispatched"`)
	gauge("inference_extension_flow_control_pool_saturation", fmt.Sprintf("inference_pool=%q", g.Pool), min(1, now.Queued/10))
	return b.String()
}

// Syncer is a simulated syncer of LoRA adapters, for one server.
type Syncer struct {
	// Adapters are the names of the adapters.
	Adapters []string
	// Lost is when each cannot be loaded any more, which leaves no series; Unloaded is when
	// the syncer unloads it because its configuration says so, which leaves 0.
	Lost, Unloaded map[string]time.Duration
}

// Handler serves the page of the syncer, which begins at a time.
func (s *Syncer) Handler(begin time.Time) http.Handler { return &pages{begin: begin, page: s.page} }

func (s *Syncer) page(at time.Duration) string {
	var b strings.Builder
	b.WriteString("# TYPE lora_syncer_adapter_status gauge\n")
	passed := func(when time.Duration) bool { return when > 0 && at >= when }
	for _, name := range s.Adapters {
		if passed(s.Lost[name]) {
			continue
		}
		loaded := 1
		if passed(s.Unloaded[name]) {
			loaded = 0
		}
		fmt.Fprintf(&b, "lora_syncer_adapter_status{adapter_name=%q} %d\n", name, loaded)
	}
	return b.String()
}

// pages serves a page that depends on the time only.
type pages struct {
	begin time.Time
	page  func(at time.Duration) string
	mu    sync.Mutex
}

func (p *pages) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/metrics" {
		http.NotFound(w, request)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(p.page(time.Since(p.begin))))
}
