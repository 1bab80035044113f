package gpus

import (
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
)

// slowSteps is the cause that has details about GPUs, notThrottled the detail that excludes them.
const (
	slowSteps    = "slow_steps"
	notThrottled = "not_throttled"
)

// ofGPUs are the details that blame a GPU.
var ofGPUs = []string{"power_cap", "thermal", "memory_error", "interconnect", "clocks_low"}

// said is the diagnosis at the time of a scrape.
type said struct {
	at time.Duration
	// slow is whether slow_steps is named, with that detail; harm is a severity of a warning or more.
	slow, harm bool
	detail     string
	// values are metrics of the server's GPUs, by name.
	values map[string]float64
}

// about are the reports about servers, in the order of time, by host.
type about struct {
	mu   sync.Mutex
	all  map[string][]said
	seen map[string]float64 // Metrics of exporters, by name: how many points.
}

// play plays a story and returns what was said.
func play(t *testing.T, s *history.Story) *about {
	t.Helper()
	a := &about{all: map[string][]said{}, seen: map[string]float64{}}
	s.Emitted = a.read
	// An objective about the whole latency leaves the baselines in charge of what is slow.
	s.Processor = map[string]any{"objectives": []any{
		map[string]any{"name": "e2e", "metric": "vllm.e2e_request_latency", "threshold": "20s", "target": 0.95},
	}}
	history.Play(t, s)
	return a
}

func attribute(m pcommon.Map, name string) string {
	if v, there := m.Get(name); there {
		return v.AsString()
	}
	return ""
}

func (a *about) read(at time.Duration, metrics pmetric.Metrics) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, rm := range metrics.ResourceMetrics().All() {
		host := attribute(rm.Resource().Attributes(), "service.instance.id")
		exporter := attribute(rm.Resource().Attributes(), "vllm.server.kind") == "accelerator"
		one, diagnosed := said{at: at, values: map[string]float64{}}, false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if exporter {
					a.seen[m.Name()]++
				}
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						continue
					}
					switch m.Name() {
					case "vllm.diagnosis.severity":
						diagnosed, one.harm = true, one.harm || number(p) >= 2
					case "vllm.diagnosis.cause":
						if attribute(p.Attributes(), "cause") == slowSteps && number(p) == 1 {
							one.slow, one.detail = true, attribute(p.Attributes(), "detail")
						}
					case "vllm.gpu.power", "vllm.gpu.utilization", "vllm.gpu.memory_usage", "vllm.energy_per_generated_token":
						one.values[m.Name()] = number(p)
					}
				}
			}
		}
		if diagnosed {
			a.all[host] = append(a.all[host], one)
		}
	}
}

// number is a point's number: of the two, the one that it does not have is 0.
func number(p pmetric.NumberDataPoint) float64 { return p.DoubleValue() + float64(p.IntValue()) }

// details counts the details of slow_steps between two times, where there is harm.
func details(reports []said, from, to time.Duration) map[string]int {
	out := map[string]int{}
	for _, r := range reports {
		if r.at >= from && r.at <= to && r.slow && r.harm {
			out[r.detail]++
		}
	}
	return out
}
