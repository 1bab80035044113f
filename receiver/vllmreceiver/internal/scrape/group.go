// Package scrape scrapes vLLM servers: the receiver, its probes and its replays take this one way.
//
// A Group has what the targets of a receiver share. A Target is one of them, and is asked through
// its Origin: over HTTP, or from what was recorded. The receiver decides when a target is scraped
// and who gets the points.
package scrape

import (
	"bytes"
	"context"
	"net/url"
	"runtime"
	"sync"
	"time"
	"weak"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// Server is one server to scrape.
type Server struct {
	// Address is the full URL of its metrics; it identifies the target.
	Address *url.URL
	Client  confighttp.ClientConfig
	// Attributes are added to its resource.
	Attributes map[string]any
	// Discovered are resource attributes that can be switched off.
	Discovered map[string]string
	// Pod is what Kubernetes reports about its pod; nil for others.
	Pod *emit.Pod
	// Interval is the time between two scrapes; 0 means the receiver's interval.
	Interval time.Duration
	// Canary has the settings of its canary; nil without one.
	Canary *CanaryConfig

	// Origin answers the scrapes; nil asks the server over HTTP.
	Origin Origin
	// Recorder records the requests over HTTP, which then have connections of their own; nil
	// without one. Its owner asks /load itself.
	Recorder *fetch.Recorder
	// Now is the clock of the target; nil is that of the machine.
	Now func() time.Time
}

// Origin answers the requests of a scrape: a fetch.Client, or what was recorded of a server.
type Origin interface {
	Metrics(ctx context.Context, body *bytes.Buffer, exemplars bool) (fetch.Answer, error)
	Version(ctx context.Context) (string, error)
	Health(ctx context.Context) (bool, error)
	Load(ctx context.Context) (float64, error)
	FirstModel(ctx context.Context, canary fetch.Canary) (string, fetch.CanaryOutcome, error)
	SendCanary(ctx context.Context, canary fetch.Canary) (fetch.CanaryOutcome, error)
	Close()
}

// Scraped is what one scrape found.
type Scraped struct {
	// At is the time of the points.
	At      time.Time
	Metrics pmetric.Metrics
	// Body is nil where there was none that could be read.
	Body *Body
}

// Body is what a body shows. The snapshot can be used until Done.
type Body struct {
	Snapshot *exposition.Snapshot
	Plan     *normalize.Plan
	Report   emit.Report
	Dialect  exposition.Dialect
	// Cut is true where the last line was dropped because it is not complete.
	Cut   bool
	Bytes int
	// Version is what the server answered; empty if that is not known.
	Version string
}

// Group is used by all targets of a receiver.
type Group struct {
	Config    *Config
	Telemetry *metadata.TelemetryBuilder
	Memory    *exposition.Memory
	// settings are those of the clients.
	settings  component.TelemetrySettings
	logger    *zap.Logger
	telemetry *telemetry
	plans     *plans
	defects   *defectlog.Log
	emission  emit.Settings
	// buffers hold bodies while they are read. Scrapes are spread over the
	// interval, so that many targets need few. docs/why/performance.md says what they, the plans
	// and the layouts bring.
	buffers sync.Pool
	// places limit how many large bodies are in memory. reading is held while a large
	// body is parsed, because that takes several times its size.
	places    fetch.Places
	reading   sync.Mutex
	canaries  chan struct{} // limits how many are sent at a time
	transport sharedTransport
}

// largeBodies is how many bodies of more than a megabyte may be in memory at a time.
const largeBodies = 4

// maxRememberedBlocks limits the memory of layouts. A vLLM body has about 90 blocks, so
// there is room for some hundred different models and versions.
const maxRememberedBlocks = 50000

// NewGroup returns a group without targets. The configuration must be valid.
func NewGroup(cfg *Config, settings receiver.Settings) (*Group, error) {
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	g := &Group{
		Config: cfg, Telemetry: builder, logger: settings.Logger, settings: settings.TelemetrySettings, telemetry: newTelemetry(builder),
		Memory:  exposition.NewMemory(maxRememberedBlocks),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		places:  fetch.NewPlaces(largeBodies), canaries: make(chan struct{}, MaxCanaries),
		emission: emit.Settings{
			ScopeName: metadata.ScopeName,
			SchemaURL: catalog.SchemaURL,
			MaxSeries: cfg.Limits.Series, MaxAdapters: cfg.Limits.Adapters, Own: ownMetrics(cfg),
		},
	}
	g.Memory.SetPool(cfg.Limits.memory())
	g.defects = defectlog.New(settings.Logger, cfg.Controller.CollectionInterval)
	g.plans = newPlans(planOptions(cfg), (&planLog{logger: settings.Logger, named: map[string]bool{}}).log)
	return g, nil
}

// Options are the settings that change what a body is read as.
func (g *Group) Options() *normalize.Options { return &g.plans.options }

// Emits reports whether a metric about the scrape itself is on.
func (g *Group) Emits(name string) bool { return g.emission.Own[name] != nil }

// Shutdown is called when all targets have stopped.
func (g *Group) Shutdown() {
	g.defects.Close()
	g.Telemetry.Shutdown()
}

// NewTarget returns the target of a server.
func (g *Group) NewTarget(of Server) *Target {
	stopped, cancel := context.WithCancel(context.Background())
	s := &Target{
		shared:  g,
		stopped: stopped,
		cancel:  cancel,
		client:  &of.Client,
		timeout: of.Client.Timeout,
		identity: targetIdentity{
			serviceName: g.Config.ServiceName, address: of.Address,
			configured: of.Attributes, discovered: of.Discovered, switches: g.Config.ResourceAttributes,
		},
		logger: g.logger.WithLazy(zap.String("target", InstanceID(of.Address))),
		reader: exposition.NewReader(g.Memory),
		warned: map[string]bool{},
		origin: of.Origin, recorder: of.Recorder, now: of.Now,
	}
	if s.now == nil {
		s.now = time.Now
	}
	emission := g.emission
	emission.Workload = s.identity.workload
	s.emitter = emit.New(emission)
	s.failures.logger = s.logger
	s.pod.Store(of.Pod)
	return s
}

// Configured returns the servers of the configuration. Validate has checked each address.
func Configured(cfg *Config) []Server {
	targets := cfg.Targets
	if len(targets) == 0 {
		targets = []TargetConfig{{Client: cfg.Client, Canary: cfg.Canary}}
	}
	var servers []Server
	for i := range targets {
		t := &targets[i]
		if address, err := ParseEndpoint(t.Client.Endpoint); err == nil {
			servers = append(servers, Server{Address: address, Client: t.Client, Attributes: t.ResourceAttributes, Canary: t.Canary.Get()})
		}
	}
	return servers
}

// Discovered returns the server of a target that discovery has found.
func Discovered(cfg *Config, t *discover.Target) Server {
	out := Server{
		Address: t.URL, Client: cfg.Client, Discovered: t.Attributes, Interval: t.Interval, Pod: (*emit.Pod)(t.Pod), Canary: cfg.Canary.Get(),
	}
	out.Client.Endpoint, out.Client.Timeout = t.URL.String(), t.Timeout
	return out
}

// Credentials reports whether requests to the server carry some.
func (s *Server) Credentials() bool { return hasCredentials(&s.Client, s.Address) }

// planOptions returns the settings that change a plan.
func planOptions(cfg *Config) normalize.Options {
	return normalize.Options{
		Wire: cfg.Naming == NamingWire, Preset: cfg.Preset, Enabled: switches(cfg), Prefixes: cfg.Prefixes,
		CapacityFromBlocks: cfg.CapacityFromBlocks,
		GenAI:              cfg.GenAI.Enabled,
		Source:             cfg.Source, KeepFairness: cfg.Gateway.FairnessID,
		MaxAdapters: cfg.Limits.Adapters, MaxDevices: cfg.Limits.Devices,
	}
}

func switches(cfg *Config) map[string]bool {
	out := map[string]bool{}
	for name, m := range cfg.Metrics {
		if m.Enabled != nil {
			out[name] = *m.Enabled
		}
	}
	return out
}

// ownMetrics returns the enabled metrics about the scrape itself.
func ownMetrics(cfg *Config) map[string]*catalog.Metric {
	on := switches(cfg)
	out := map[string]*catalog.Metric{}
	for _, name := range emit.OwnMetrics() {
		metric, ok := catalog.ByName(name)
		if !ok {
			continue
		}
		if enabled, set := on[name]; enabled || !set && (metric.Feeds(cfg.Preset) || name == emit.MetricHealthy && cfg.HealthCheck) {
			out[name] = metric
		}
	}
	return out
}

// plans has the plan of each layout, for all targets together: replicas of a model have
// the same layout and therefore the same plan. A plan is removed with its layout, and a
// layout with its last target, so the number of targets limits the number of plans. Without
// them a scrape of a known layout takes 4 times the processor time and allocates 3.4 times the
// bytes.
type plans struct {
	options normalize.Options
	// made is called for each new plan.
	made func(*normalize.Plan)

	mu    sync.Mutex
	byKey map[planKey]*normalize.Plan
}

type planKey struct {
	layout weak.Pointer[exposition.Layout]
	// class is the class of the server's version.
	class string
}

func newPlans(options normalize.Options, made func(*normalize.Plan)) *plans {
	return &plans{options: options, made: made, byKey: map[planKey]*normalize.Plan{}}
}

// get returns the plan of a layout for a server of this version.
func (p *plans) get(layout *exposition.Layout, version string) *normalize.Plan {
	key := planKey{weak.Make(layout), normalize.VersionClass(version)}
	p.mu.Lock()
	plan := p.byKey[key]
	p.mu.Unlock()
	if plan != nil {
		return plan
	}
	// Without the lock: a target with a huge body must not delay the others.
	options := p.options
	options.Version = version
	made := normalize.Make(layout, options)
	p.mu.Lock()
	if plan = p.byKey[key]; plan != nil {
		p.mu.Unlock()
		return plan
	}
	p.byKey[key] = made
	runtime.AddCleanup(layout, p.forget, key)
	p.mu.Unlock()
	p.made(made)
	return made
}

// forget removes the plan of a layout that was freed.
func (p *plans) forget(key planKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byKey, key)
}
