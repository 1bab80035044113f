package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/recording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// History is what a story left in a storage for each strategy.
type History struct {
	Begin, End time.Time
	Stores     []*Store
	// Outcomes are the requests that ended, by host: the truth.
	Outcomes map[string][]engine.Outcome

	mu sync.Mutex
}

// collectorInstance is service.instance.id of the collector.
const collectorInstance = "collector-a"

// Play carries out a story in virtual time.
func Play(t *testing.T, s *Story, strategies ...Strategy) *History {
	t.Helper()
	h := &History{Outcomes: map[string][]engine.Outcome{}}
	for _, strategy := range strategies {
		h.Stores = append(h.Stores, NewStore(t, strategy))
	}
	synctest.Test(t, func(t *testing.T) { h.play(t, s) })
	return h
}

func (h *History) play(t *testing.T, s *Story) {
	t.Helper()
	time.Sleep(time.Until(s.Begin))
	h.Begin = time.Now()
	h.End = h.Begin.Add(s.Length)
	hosts := network.New()
	for i := range s.Servers {
		h.serve(t, hosts, &s.Servers[i], s.Tap)
	}
	if s.Gateway != nil {
		hosts.Put(gatewayHost, s.Gateway.Handler(h.Begin))
	}
	for i := range s.Syncers {
		hosts.Put(syncerHost(i), s.Syncers[i].Handler(h.Begin))
	}
	c := &running{t: t, story: s, network: hosts, history: h}
	for at := time.Duration(0); at <= s.Length; at += s.every() {
		time.Sleep(time.Until(h.Begin.Add(at)))
		// All that happens at this moment happens first.
		synctest.Wait()
		c.follow(at)
	}
	c.stop()
}

const gatewayHost = "gateway:9090"

func exporterHost(servers *Servers, i int) string {
	return fmt.Sprintf("node-of-%s-%d:9400", servers.Name, i)
}

func syncerHost(i int) string { return fmt.Sprintf("vllm-%d:9091", i) }

// serve starts the simulated servers.
func (h *History) serve(t *testing.T, to *network.Network, servers *Servers, tap tapped) {
	t.Helper()
	config := servers.Config
	config.Clock, config.Start = time.Now, h.Begin
	hosts := servers.hosts()
	if servers.Recorded != "" {
		recorded, err := recording.Open(servers.Recorded, recording.PlayerOptions{Every: RecordedEvery, Version: config.Version})
		require.NoError(t, err)
		to.Put(hosts[0], tap.of(hosts[0], recorded))
		return
	}
	config.Truth = func(target int, o engine.Outcome) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.Outcomes[hosts[target]] = append(h.Outcomes[hosts[target]], o)
	}
	if config.GPUs != nil {
		named := servers.gpus()
		config.GPUs = &named
	}
	simulated, err := vllmsim.New(config)
	require.NoError(t, err)
	for i, target := range simulated.Targets() {
		to.Put(hosts[i], tap.of(hosts[i], target))
	}
	for i, exporter := range simulated.Exporters() {
		to.Put(exporterHost(servers, i), exporter)
	}
}

// running is the collector of a story.
type running struct {
	t       *testing.T
	story   *Story
	network *network.Network
	history *History

	// sink is the end of the pipeline, and connector the part of it that makes log records.
	sink      consumer.Metrics
	connector connector.Metrics
	processor processor.Metrics
	receivers map[string]receiver.Metrics // By the name of their servers.
	reader    *sdkmetric.ManualReader
	// begin adds a receiver of a source, empty for servers.
	begin func(name, source string, targets []any)

	mu sync.Mutex
	// last has the newest batch of each server.
	last map[string]pmetric.Metrics
}

// follow lets the collector be as the story has it at a time.
func (c *running) follow(at time.Duration) {
	away := within(c.story.Away, at)
	switch {
	case away && c.receivers != nil:
		c.stop()
	case !away && c.receivers == nil:
		c.start(at)
	}
	if away {
		return
	}
	for i := range c.story.Servers {
		servers := &c.story.Servers[i]
		r, runs := c.receivers[servers.Name]
		if !runs && servers.present(at) {
			c.add(servers)
		}
		if runs && !servers.present(at) {
			require.NoError(c.t, r.Shutdown(c.t.Context()))
			delete(c.receivers, servers.Name)
			if !servers.Silently {
				c.end(servers)
			}
		}
	}
	samples := append(c.own(), c.up(at)...)
	if c.story.Own != nil {
		samples = append(samples, c.story.Own(at)...)
	}
	for _, store := range c.history.Stores {
		require.NoError(c.t, store.Write(c.t.Context(), time.Now(), samples))
	}
}

func (c *running) start(at time.Duration) {
	t := c.t
	c.reader = sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))
	resource := pcommon.NewResource()
	resource.Attributes().PutStr("service.name", "otelcol-vllm")
	resource.Attributes().PutStr("service.instance.id", collectorInstance)
	c.receivers, c.last = map[string]receiver.Metrics{}, map[string]pmetric.Metrics{}
	diagnosis := vllmdiagnosisconnector.NewFactory()
	connected := connectortest.NewNopSettings(diagnosis.Type())
	connected.MeterProvider = meters
	var err error
	c.connector, err = diagnosis.CreateMetricsToLogs(t.Context(), connected, diagnosis.CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.connector.Start(t.Context(), c.network))
	// Both are exporters of the pipeline. The storage comes first: it only reads.
	next, err := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
		if c.story.Emitted != nil {
			c.story.Emitted(time.Since(c.history.Begin), metrics)
		}
		return errors.Join(c.history.ConsumeMetrics(ctx, metrics), c.connector.ConsumeMetrics(ctx, metrics))
	})
	require.NoError(t, err)
	c.sink = next
	if !c.story.NoProcessor {
		factory := vllmprocessor.NewFactory()
		config := factory.CreateDefaultConfig().(*vllmprocessor.Config)
		require.NoError(t, confmap.NewFromStringMap(c.story.settings()).Unmarshal(config))
		require.NoError(t, config.Validate())
		settings := processortest.NewNopSettings(factory.Type())
		settings.ID = component.NewID(factory.Type())
		settings.MeterProvider, settings.Resource = meters, resource
		p, err := factory.CreateMetrics(t.Context(), settings, config, next)
		require.NoError(t, err)
		require.NoError(t, p.Start(t.Context(), c.network))
		c.processor, next = p, p
	}
	passed, err := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
		c.drain(metrics)
		c.remember(metrics)
		return next.ConsumeMetrics(ctx, metrics)
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)
	c.begin = func(name, source string, targets []any) {
		factory := vllmreceiver.NewFactory()
		config := factory.CreateDefaultConfig().(*vllmreceiver.Config)
		section := map[string]any{
			"targets": targets, "collection_interval": c.story.every().String(), "health_check": source == "",
			// Receivers scrape one after the other, so that a story is always the same.
			"initial_delay": (time.Second + time.Duration(len(c.receivers))*100*time.Millisecond).String(),
			"middlewares":   []any{map[string]any{"id": network.ID.String()}},
		}
		if source != "" {
			section["source"] = source
		}
		if c.story.Wire {
			section["naming"] = "wire"
		}
		require.NoError(t, confmap.NewFromStringMap(section).Unmarshal(config))
		require.NoError(t, config.Validate())
		settings := receivertest.NewNopSettings(factory.Type())
		settings.ID = component.NewIDWithName(factory.Type(), name)
		settings.MeterProvider, settings.Resource = meters, resource
		r, err := factory.CreateMetrics(t.Context(), settings, config, passed)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), c.network))
		c.receivers[name] = r
	}
	for i := range c.story.Servers {
		if servers := &c.story.Servers[i]; servers.present(at) {
			c.add(servers)
		}
	}
	namespace := map[string]any{"k8s.cluster.name": "prod", "k8s.namespace.name": "chat"}
	if c.story.Gateway != nil {
		c.begin("gateway", "", []any{map[string]any{"endpoint": "http://" + gatewayHost, "resource_attributes": namespace}})
	}
	for i := range c.story.Syncers {
		c.begin(fmt.Sprintf("syncer-%d", i), "", []any{map[string]any{"endpoint": "http://" + syncerHost(i), "resource_attributes": namespace}})
	}
}

// add makes servers and the exporters of their GPUs targets of the collector.
func (c *running) add(servers *Servers) {
	var targets []any
	for i, host := range servers.hosts() {
		target := map[string]any{"endpoint": "http://" + host}
		if attributes := servers.Attributes(i); attributes != nil {
			target["resource_attributes"] = attributes
		}
		targets = append(targets, target)
	}
	c.begin(servers.Name, "", targets)
	if gpus := servers.Config.GPUs; gpus != nil {
		var exporters []any
		for i := range targets {
			exporters = append(exporters, map[string]any{"endpoint": "http://" + exporterHost(servers, i)})
		}
		c.begin(servers.Name+"-gpus", cmp.Or(gpus.Kind, gpu.DCGM), exporters)
	}
}

func (c *running) stop() {
	for _, r := range c.receivers {
		require.NoError(c.t, r.Shutdown(c.t.Context()))
	}
	if c.processor != nil {
		require.NoError(c.t, c.processor.Shutdown(c.t.Context()))
	}
	if c.connector != nil {
		require.NoError(c.t, c.connector.Shutdown(c.t.Context()))
	}
	c.receivers, c.processor, c.connector = nil, nil, nil
}

// drain adds what the receiver reports of a pod that is being deleted. It reads that from
// the API of Kubernetes, which the stories do not have.
func (c *running) drain(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		instance, _ := rm.Resource().Attributes().Get("service.instance.id")
		for i := range c.story.Servers {
			s := &c.story.Servers[i]
			if s.Drains == 0 || time.Since(c.history.Begin) < s.Drains || !slices.Contains(s.hosts(), instance.AsString()) {
				continue
			}
			m := rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
			m.SetName("vllm.pod.terminating")
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			p.SetIntValue(1)
		}
	}
}

// remember keeps the newest batch of each server.
func (c *running) remember(metrics pmetric.Metrics) {
	kept := pmetric.NewMetrics()
	metrics.CopyTo(kept)
	if kept.ResourceMetrics().Len() == 0 {
		return
	}
	instance, _ := kept.ResourceMetrics().At(0).Resource().Attributes().Get("service.instance.id")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last[instance.AsString()] = kept
}

// end ends the series of servers, as the receiver does for a target that its discovery
// removes: with a last point of each that has no value.
func (c *running) end(servers *Servers) {
	now := pcommon.NewTimestampFromTime(time.Now())
	for _, host := range servers.hosts() {
		c.mu.Lock()
		batch, known := c.last[host]
		c.mu.Unlock()
		if !known {
			continue
		}
		for _, rm := range batch.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					endMetric(m, now)
				}
			}
		}
		next := c.sink
		if c.processor != nil {
			next = c.processor
		}
		require.NoError(c.t, next.ConsumeMetrics(c.t.Context(), batch))
	}
}

func endMetric(m pmetric.Metric, now pcommon.Timestamp) {
	ended := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			p.SetFlags(ended)
			p.SetTimestamp(now)
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			p.SetFlags(ended)
			p.SetTimestamp(now)
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			p.SetFlags(ended)
			p.SetTimestamp(now)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			p.SetFlags(ended)
			p.SetTimestamp(now)
		}
	default:
	}
}

// Capabilities are those of an exporter.
func (*History) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeMetrics stores what the pipeline sends.
func (h *History) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	for _, store := range h.Stores {
		if err := store.Take(ctx, metrics); err != nil {
			return err
		}
	}
	return nil
}
