package vllmreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/ending"
	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// target is one server to scrape.
type target struct {
	// address is the full URL of its metrics; it identifies the target.
	address *url.URL
	client  confighttp.ClientConfig
	// attributes are added to its resource.
	attributes map[string]any
	// discovered are resource attributes that can be switched off.
	discovered map[string]string
	// pod is what Kubernetes reports about its pod; nil for others.
	pod *emit.Pod
	// interval is the time between two scrapes; 0 means the receiver's interval.
	interval time.Duration
	// canary has the settings of its canary; nil without one.
	canary *CanaryConfig
}

// shared is used by all targets of a receiver.
type shared struct {
	config    *Config
	settings  receiver.Settings
	telemetry *telemetry
	memory    *exposition.Memory
	plans     *plans
	defects   *defectlog.Log
	emission  emit.Settings
	// buffers hold bodies while they are read. Scrapes are spread over the
	// interval, so that many targets need few. Without them a scrape takes 1.9 times the
	// processor time and allocates 5 times the bytes.
	buffers sync.Pool
	// places limit how many large bodies are in memory. reading is held while a large
	// body is parsed, because that takes several times its size.
	places    fetch.Places
	reading   sync.Mutex
	canaries  chan struct{} // limits how many are sent at a time
	transport sharedTransport
}

// vllmReceiver scrapes each target at times of its own, so that a slow target delays no
// other. Targets can come and go while it runs (running.go).
type vllmReceiver struct {
	shared *shared
	next   consumer.Metrics

	mu   sync.Mutex
	host component.Host
	// began is when it was started.
	began time.Time
	// running has the targets by address, including those that are stopping.
	running map[string]*runningTarget
	stopped bool
	// left are the removed targets, by address (left.go).
	left map[string]leftTarget
	// owed are the ends of removed targets that the pipeline refused, by address
	// (owed.go). resending is held while they are sent again.
	owed      map[string]refused.Ends
	resending sync.Mutex
	// loses is true once ends were lost because there was no room for them.
	loses atomic.Bool

	// targets is the number of running targets. Self-telemetry reads it without mu.
	targets atomic.Int64

	// overflow is the number of discovered targets above limits::targets.
	overflow atomic.Int64
	// counts are what discovery has found; nil before it has called back.
	counts atomic.Pointer[discover.Counts]

	// status reports the component status.
	status *receiverStatus
	// observed counts the points that are sent.
	observed *receiverhelper.ObsReport
	tracer   trace.Tracer

	// discovery finds targets; nil if it is not configured.
	discovery *targetDiscovery
}

func newReceiver(cfg *Config, settings receiver.Settings, next consumer.Metrics) (*vllmReceiver, error) {
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	selfTelemetry, err := newTelemetry(builder, settings)
	if err != nil {
		return nil, err
	}
	s := &shared{
		config: cfg, settings: settings, telemetry: selfTelemetry,
		memory:  exposition.NewMemory(maxRememberedBlocks),
		buffers: sync.Pool{New: func() any { return new(bytes.Buffer) }},
		places:  fetch.NewPlaces(largeBodies), canaries: make(chan struct{}, maxCanaries),
		emission: emit.Settings{
			ScopeName: metadata.ScopeName, ScopeVersion: settings.BuildInfo.Version,
			SchemaURL: catalog.SchemaURL,
			MaxSeries: cfg.Limits.Series, MaxAdapters: cfg.Limits.Adapters, Own: ownMetrics(cfg),
		},
	}
	s.memory.SetPool(cfg.Limits.memory())
	s.defects = defectlog.New(settings.Logger, cfg.Controller.CollectionInterval)
	s.plans = newPlans(planOptions(cfg), newPlanLog(settings.Logger).log)
	observed, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	return &vllmReceiver{
		shared: s, next: next, running: map[string]*runningTarget{}, left: map[string]leftTarget{}, owed: map[string]refused.Ends{},
		status: newReceiverStatus(), observed: observed, tracer: settings.TracerProvider.Tracer(helperScope),
	}, nil
}

// largeBodies is how many bodies of more than a megabyte may be in memory at a time.
const largeBodies = 4

// maxRememberedBlocks limits the memory of layouts. A vLLM body has about 90 blocks, so
// there is room for some hundred different models and versions.
const maxRememberedBlocks = 50000

// Start starts the targets of the configuration. If one of them cannot start, for
// example because its certificate cannot be read, the configuration is wrong and the
// collector does not start.
func (r *vllmReceiver) Start(ctx context.Context, host component.Host) error {
	r.mu.Lock()
	r.host, r.began = host, time.Now()
	r.mu.Unlock()
	r.status.start(host)
	if err := r.registerGauges(); err != nil {
		return err
	}
	targets := configuredTargets(r.shared.config)
	for i, t := range targets {
		if err := r.add(ctx, t, phaseOf(r.shared.config.Controller.CollectionInterval, i, len(targets))); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", instanceID(t.address), err), r.stopAll(ctx))
		}
	}
	discovery, err := startDiscovery(r, targets)
	if err != nil {
		return errors.Join(fmt.Errorf("discovery: %w", err), r.stopAll(ctx))
	}
	r.mu.Lock()
	r.discovery = discovery
	r.mu.Unlock()
	return nil
}

// Shutdown stops every target and waits for it. It is safe without Start and more than
// once. It cancels fetches at once; batches that are being sent may finish until ctx
// ends or the bound of package ending is over.
func (r *vllmReceiver) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	discovery := r.discovery
	r.mu.Unlock()
	r.status.stop()
	ended, err := ending.Within(ctx, func(ctx context.Context) error {
		// Discovery stops first, so that it adds no target after this.
		return errors.Join(discovery.shutdown(ctx), r.stopAll(ctx))
	})
	if !ended {
		r.shared.settings.Logger.Warn("The next component still holds points; the shutdown continues without it. " +
			"Give the exporter a timeout or a sending_queue")
	}
	return err
}

func (r *vllmReceiver) newScraper(t target) *targetScraper {
	stopped, cancel := context.WithCancel(context.Background())
	s := &targetScraper{
		shared:  r.shared,
		stopped: stopped,
		cancel:  cancel,
		client:  &t.client,
		identity: targetIdentity{
			serviceName: r.shared.config.ServiceName, address: t.address,
			configured: t.attributes, discovered: t.discovered, switches: r.shared.config.ResourceAttributes,
		},
		logger: r.shared.settings.Logger.WithLazy(zap.String("target", instanceID(t.address))),
		reader: exposition.NewReader(r.shared.memory),
		warned: map[string]bool{},
		now:    time.Now,
	}
	emission := r.shared.emission
	emission.Workload = s.identity.workload
	s.emitter = emit.New(emission)
	s.failures.logger = s.logger
	s.pod.Store(t.pod)
	return s
}

// configuredTargets returns the targets of the configuration. Validate has checked each
// address.
func configuredTargets(cfg *Config) []target {
	if len(cfg.Targets) == 0 {
		address, err := parseEndpoint(cfg.Client.Endpoint)
		if err != nil {
			return nil
		}
		return []target{{address: address, client: cfg.Client, canary: cfg.Canary.Get()}}
	}
	targets := make([]target, 0, len(cfg.Targets))
	for i := range cfg.Targets {
		address, err := parseEndpoint(cfg.Targets[i].Client.Endpoint)
		if err != nil {
			continue
		}
		targets = append(targets, target{
			address: address, client: cfg.Targets[i].Client, attributes: cfg.Targets[i].ResourceAttributes,
			canary: cfg.Targets[i].Canary.Get(),
		})
	}
	return targets
}

// planOptions returns the settings that change a plan.
func planOptions(cfg *Config) normalize.Options {
	return normalize.Options{
		Wire: cfg.Naming == NamingWire, Enabled: switches(cfg), Prefixes: cfg.Prefixes,
		CapacityFromBlocks: cfg.CapacityFromBlocks,
		GenAI:              cfg.GenAI.Enabled,
		Source:             planSources[cfg.Source], KeepFairness: cfg.Gateway.FairnessID,
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
		enabled := metric.Enabled || name == emit.MetricHealthy && cfg.HealthCheck
		if chosen, set := on[name]; set {
			enabled = chosen
		}
		if enabled {
			out[name] = metric
		}
	}
	return out
}

// registerGauges registers the gauges of self-telemetry. Each has the receiver's name, because all
// receivers of a collector share the instruments, and of equal series only the last value counts.
func (r *vllmReceiver) registerGauges() error {
	t := r.shared.telemetry
	name := attribute.String("receiver", r.shared.settings.ID.String())
	named := metric.WithAttributeSet(attribute.NewSet(name))
	observing := func(number func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(number(), named)
			return nil
		}
	}
	return errors.Join(
		t.RegisterReceiverVllmTargetsCallback(observing(r.targets.Load)),
		t.RegisterReceiverVllmLayoutsCallback(observing(func() int64 {
			_, layouts, _ := r.shared.memory.Stats()
			return int64(layouts)
		})),
		t.RegisterReceiverVllmLayoutOverflowCallback(observing(func() int64 {
			_, _, overflow := r.shared.memory.Stats()
			return int64(overflow)
		})),
		t.RegisterReceiverVllmDiscoveredTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			observeCounts(o, name, r.counts.Load())
			return nil
		}),
		t.RegisterReceiverVllmTargetOverflowCallback(observing(r.overflow.Load)),
	)
}
