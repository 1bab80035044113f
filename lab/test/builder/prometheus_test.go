package builder

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// scraped answers as a vLLM server: with each scrape it has generated 100 tokens more and
// answered one request more, whose first token took a second. Once it is down it answers
// 503.
type scraped struct {
	scrapes atomic.Int64
	down    atomic.Bool
}

func (s *scraped) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if s.down.Load() {
		http.Error(w, "no server", http.StatusServiceUnavailable)
		return
	}
	n := s.scrapes.Add(1)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	fmt.Fprintf(w, `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} %[1]d.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="m"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} %[2]d.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} %[2]d.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} %[2]d.0
`, 100*n, n)
}

// backend keeps the metrics that arrive by OTLP over HTTP.
type backend struct {
	mu       sync.Mutex
	received []pmetric.Metrics
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	metrics, err := fleet.Metrics(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received = append(b.received, metrics)
}

// points calls visit with each point of a metric that has a number, and with its resource.
func (b *backend) points(name string, visit func(service, instance string, p *fleet.Point)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, metrics := range b.received {
		for _, rm := range metrics.ResourceMetrics().All() {
			service, _ := rm.Resource().Attributes().Get("service.name")
			instance, _ := rm.Resource().Attributes().Get("service.instance.id")
			for p := range fleet.Points(rm) {
				if p.Metric == name && !p.Ends {
					visit(service.AsString(), instance.AsString(), p)
				}
			}
		}
	}
}

// values are all values of a metric in the order in which they arrived.
func (b *backend) values(name string) (found []float64) {
	b.points(name, func(_, _ string, p *fleet.Point) { found = append(found, p.Value) })
	return found
}

// unreachable reports whether some engine is reported as unreachable.
func (b *backend) unreachable() (is bool) {
	b.points("vllm.diagnosis.condition", func(_, _ string, p *fleet.Point) {
		condition, _ := p.Attributes.Get("condition")
		is = is || condition.AsString() == "unreachable" && p.Value == 1
	})
	return is
}

// The example for contrib's Prometheus receiver is built with ocb, and does what its page
// says: the server's own names stay, values are derived, and a server that fails is
// unreachable.
func TestTheProcessorWorksBehindThePrometheusReceiver(t *testing.T) {
	ocb(t)
	folder := read(t, "prometheus-receiver/builder.yaml").generate(t)
	compile(t, folder)
	program := filepath.Join(folder, "collector")
	config := filepath.Join(root(t), "examples", "prometheus-receiver", "collector.yaml")
	run(t, folder, program, "validate", "--config", config)

	vllm, received := &scraped{}, &backend{}
	server, sink := httptest.NewServer(vllm), httptest.NewServer(received)
	t.Cleanup(server.Close)
	t.Cleanup(sink.Close)
	target := strings.TrimPrefix(server.URL, "http://")
	c := collector.Start(t, map[string]string{
		"VLLM_TARGET": target, "OTLP_ENDPOINT": sink.URL, "STATE_DIR": t.TempDir(),
		"SCRAPE_INTERVAL": "1s", "SCRAPE_TIMEOUT": "1s",
	}, program, "--config", config, "--config", "yaml:service::telemetry::metrics::level: none",
		"--config", "yaml:processors::vllm::metrics: {vllm.time_to_first_token_mean: {enabled: true}}")

	c.WaitFor(t, "a diagnosis and what is derived", func() bool {
		return len(received.values("vllm.time_to_first_token_mean")) > 2 && len(received.values("vllm.diagnosis.severity")) > 2
	})
	for _, mean := range received.values("vllm.time_to_first_token_mean") {
		assert.InDelta(t, 1, mean, 1e-9)
	}
	assert.Contains(t, received.values("vllm.up"), 1.0)
	assert.Empty(t, received.values("up"), "it has another name")
	tokens := 0
	received.points("vllm:generation_tokens_total", func(service, instance string, p *fleet.Point) {
		tokens++
		assert.Equal(t, "vllm", service)
		assert.Equal(t, target, instance)
		assert.NotZero(t, p.Start, "metric_start_time")
	})
	assert.Positive(t, tokens)

	vllm.down.Store(true)
	c.WaitFor(t, "the report of a server that cannot be scraped", received.unreachable)
	assert.Contains(t, received.values("vllm.up"), 0.0)
	c.Stop(t)
	assert.Empty(t, c.Complaints("Failed to scrape Prometheus endpoint", "diagnosis: "))
}
