package history

import (
	"fmt"
	"maps"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// Story is what happens to a deployment, and how the collector is set up.
type Story struct {
	Name string
	// Begin is the time of the first moment; zero is the start of virtual time, in the year 2000.
	Begin time.Time
	// Length is how long the story takes, Every is the time between two scrapes; 0 is 15 s.
	Length, Every time.Duration
	Servers       []Servers
	Gateway       *Gateway
	Syncers       []Syncer
	// Wire keeps vLLM's own names.
	Wire bool
	// Processor are the settings of the processor besides those of settings.
	Processor map[string]any
	// NoProcessor leaves the processor out.
	NoProcessor bool
	// Away are the times in which the collector does not run.
	Away []Span
	// Tap receives each answer of a server to a request for its metrics, as it is sent; the
	// status is 0 where the server closed the connection without one.
	Tap func(host string, at time.Time, status int, contentType string, body []byte)
	// Emitted receives what the processor passes on, or what the receivers do without one.
	Emitted func(at time.Duration, metrics pmetric.Metrics)
	// Own returns what the collector's exporters report about themselves.
	Own func(at time.Duration) []Sample
}

// Span is a part of a story.
type Span struct{ From, To time.Duration }

// within reports whether a time is in one of the spans.
func within(spans []Span, at time.Duration) bool {
	for _, s := range spans {
		if at >= s.From && at < s.To {
			return true
		}
	}
	return false
}

// Servers are simulated servers of one configuration.
type Servers struct {
	Config vllmsim.Config
	// Name begins the names of the pods and hosts: chat-0, chat-1.
	Name string
	// Namespace is that of Kubernetes; empty for servers outside of Kubernetes.
	Namespace string
	// Recorded is a folder with the pages of one real server, a page for each RecordedEvery. They are
	// played from From on; of Config only the version counts then.
	Recorded string
	// From is when the servers are added to the collector's targets; 0 is the start.
	From time.Duration
	// Gone is when the servers are removed from the collector's targets; 0 is never.
	// Silently is without the ends of their series, as if the collector ended with them.
	Gone     time.Duration
	Silently bool
	// Drains is when Kubernetes begins to delete the pods; 0 is never.
	Drains time.Duration
}

// RecordedEvery is the time between two recorded pages.
const RecordedEvery = 5 * time.Second

// present reports whether the servers are among the collector's targets at a time.
func (s *Servers) present(at time.Duration) bool {
	return at >= s.From && (s.Gone == 0 || at < s.Gone)
}

// hosts returns the addresses of the servers.
func (s *Servers) hosts() []string {
	out := make([]string, max(1, s.Config.Targets))
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d:8000", s.Name, i)
	}
	return out
}

// gpus is the configuration of their exporters, which name the pods.
func (s *Servers) gpus() gpu.Config {
	out := *s.Config.GPUs
	out.Name, out.Namespace = s.Name, s.Namespace
	return out
}

// Attributes are those of the resource of a server; none outside of Kubernetes.
func (s *Servers) Attributes(i int) map[string]any {
	if s.Namespace == "" {
		return nil
	}
	out := map[string]any{
		"k8s.cluster.name": "prod", "k8s.namespace.name": s.Namespace, "k8s.pod.name": fmt.Sprintf("%s-%d", s.Name, i),
	}
	if s.Config.GPUs != nil {
		// The names that the exporter of its GPUs has for the pod.
		gpus := s.gpus()
		w := gpus.Workload(i)
		out["k8s.pod.name"], out["k8s.container.name"], out["k8s.pod.uid"] = w.Pod, w.Container, w.UID
	}
	return out
}

// FromScenario returns the story of a scenario file.
func FromScenario(s *scenario.Scenario) *Story {
	return &Story{Name: s.Name, Length: s.Length, Servers: []Servers{{Config: s.Config, Name: "vllm", Namespace: "chat"}}}
}

// several reports whether a story has more than one server or engine, which make a pool.
func (s *Story) several() bool {
	n := 0
	for i := range s.Servers {
		n += max(1, s.Servers[i].Config.Targets) * max(1, s.Servers[i].Config.Engines)
	}
	return n > 1
}

// settings are those of the processor: two objectives as in examples/objectives.yaml, and
// a pool if there are several servers.
func (s *Story) settings() map[string]any {
	out := map[string]any{
		"objectives": []any{
			map[string]any{"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": "2.5s", "target": 0.95},
			map[string]any{"name": "itl", "metric": "vllm.inter_token_latency", "threshold": "100ms", "target": 0.99},
		},
	}
	if s.several() {
		out["pool"] = map[string]any{}
	}
	maps.Copy(out, s.Processor)
	return out
}

func (s *Story) every() time.Duration {
	if s.Every > 0 {
		return s.Every
	}
	return 15 * time.Second
}
