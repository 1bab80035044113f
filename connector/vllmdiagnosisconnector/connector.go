package vllmdiagnosisconnector

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// diagnosisConnector is one instance between two pipelines.
type diagnosisConnector struct {
	config    *Config
	settings  track.Settings
	logger    *zap.Logger
	version   string
	next      consumer.Logs
	now       func() time.Time
	telemetry *telemetry

	// mu guards what follows. It is not held while a record is delivered, which may
	// take long.
	mu      sync.Mutex
	engines map[collect.Key]*engine
	swept   time.Time
	warned  warnings
}

// engine is an engine or a pool.
type engine struct {
	*track.Engine
	attributes []collect.Attribute
	// arrived is when its last points came, by our clock.
	arrived time.Time
	// waits is where the part of a frame came from whose rest is waited for; nil
	// where none is.
	waits *emit.Origin
}

func newConnector(config *Config, settings connector.Settings, next consumer.Logs) (*diagnosisConnector, error) {
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &diagnosisConnector{
		config:    config,
		settings:  track.Settings{Initial: config.Initial, MaxStaleness: config.MaxStaleness, Precedence: precedence},
		logger:    settings.Logger,
		version:   settings.BuildInfo.Version,
		next:      next,
		now:       time.Now,
		telemetry: newTelemetry(builder),
		engines:   map[collect.Key]*engine{},
	}, nil
}

// precedence is the place of a condition in the catalogue, which has the more
// pressing before the less; one that it lacks comes last.
func precedence(condition string) int {
	conditions := catalog.Conditions()
	if i := slices.IndexFunc(conditions, func(c catalog.Condition) bool { return c.Name == condition }); i >= 0 {
		return i
	}
	return len(conditions)
}

// Capabilities says that what passes is not changed.
func (*diagnosisConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start registers what is read when the collector's own metrics are.
func (c *diagnosisConnector) Start(context.Context, component.Host) error {
	return c.telemetry.observe(c)
}

// Shutdown tells what still waits for the rest of its batch: it will not come.
func (c *diagnosisConnector) Shutdown(ctx context.Context) error {
	batch := c.newBatch()
	c.mu.Lock()
	for key, e := range c.engines {
		c.settle(ctx, key, e, batch)
	}
	clear(c.engines)
	c.mu.Unlock()
	err := c.deliver(ctx, batch)
	c.telemetry.Shutdown()
	return err
}

// ConsumeMetrics tells the transitions that follow from metrics. An error is that
// of the next component; then the transitions are told with the engines' next
// points, or with the same ones if they come again.
func (c *diagnosisConnector) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	frames, unread := collect.Read(metrics)
	c.telemetry.unread(ctx, &unread)
	batch := c.newBatch()
	c.mu.Lock()
	c.look(metrics)
	c.sweep(ctx, batch)
	for _, frame := range frames {
		c.observe(ctx, frame, metrics.ResourceMetrics().At(frame.Source), batch)
	}
	c.mu.Unlock()
	return c.deliver(ctx, batch)
}

// lead is how far points may be ahead of our clock. One from later would make all
// that follows it out of order.
const lead = 5 * time.Minute

// observe takes one frame.
func (c *diagnosisConnector) observe(ctx context.Context, frame *collect.Frame, source pmetric.ResourceMetrics, batch *batch) {
	if ahead := time.Unix(0, frame.Time).Sub(batch.now); ahead > lead {
		c.telemetry.ignore(ctx, future, frame.Points)
		c.warnOnce(&c.warned.future, fmt.Sprintf("points are %s ahead of this machine's clock, and no diagnosis is read from them; "+
			"set the clock here, or where they are made", ahead.Round(time.Second)))
		return
	}
	e := c.engines[frame.Key]
	if e == nil {
		if len(c.engines) >= c.config.MaxEngines {
			c.telemetry.ignore(ctx, engineLimit, frame.Points)
			c.warnOnce(&c.warned.engines, fmt.Sprintf("there are more engines and pools than max_engines (%d), and nothing is told about the others; "+
				"raise it", c.config.MaxEngines))
			return
		}
		e = &engine{Engine: track.NewEngine(&c.settings), attributes: frame.Attributes}
		c.engines[frame.Key] = e
	}
	origin := emit.Origin{Resource: source.Resource(), SchemaURL: source.SchemaUrl()}
	outcome, transitions, incomplete := e.Observe(frame)
	for i := range transitions {
		batch.add(frame.Key, e, origin, &transitions[i])
	}
	c.incomplete(ctx, incomplete)
	switch outcome {
	case track.OutOfOrder:
		c.telemetry.ignore(ctx, outOfOrder, frame.Points)
		return
	case track.Ended:
		delete(c.engines, frame.Key)
	case track.Waiting:
		e.waits = keep(origin)
	case track.Taken:
		e.waits = nil
	}
	e.arrived = batch.now
}

// keep is an origin that outlives the call: the metrics are not ours.
func keep(origin emit.Origin) *emit.Origin {
	kept := emit.NewOrigin(origin.SchemaURL)
	origin.Resource.CopyTo(kept.Resource)
	return &kept
}

// sweep forgets engines that have been silent for too long. It looks a few times
// within that time.
func (c *diagnosisConnector) sweep(ctx context.Context, batch *batch) {
	if batch.now.Sub(c.swept) < c.config.MaxStaleness/4 {
		return
	}
	c.swept = batch.now
	for key, e := range c.engines {
		if batch.now.Sub(e.arrived) <= c.config.MaxStaleness {
			continue
		}
		c.settle(ctx, key, e, batch)
		delete(c.engines, key)
		c.telemetry.ConnectorVllmDiagnosisExpiredEngines.Add(ctx, 1)
	}
}

// settle tells what a part of a frame says whose rest does not come.
func (c *diagnosisConnector) settle(ctx context.Context, key collect.Key, e *engine, batch *batch) {
	if e.waits == nil {
		return
	}
	transitions, incomplete := e.Settle()
	for i := range transitions {
		batch.add(key, e, *e.waits, &transitions[i])
	}
	c.incomplete(ctx, incomplete)
	e.waits = nil
}

// batch is what follows from one call.
type batch struct {
	now    time.Time
	writer *emit.Writer
	told   []told
}

// told is a transition that is on its way.
type told struct {
	engine     *track.Engine
	transition track.Transition
}

func (c *diagnosisConnector) newBatch() *batch {
	return &batch{now: c.now(), writer: emit.NewWriter(metadata.ScopeName, c.version)}
}

func (b *batch) add(key collect.Key, e *engine, origin emit.Origin, t *track.Transition) {
	b.writer.Add(&key, e.attributes, origin, t, b.now)
	b.told = append(b.told, told{e.Engine, *t})
}

// deliver hands the records on.
func (c *diagnosisConnector) deliver(ctx context.Context, batch *batch) error {
	if len(batch.told) == 0 {
		return nil
	}
	err := c.next.ConsumeLogs(ctx, batch.writer.Logs)
	for _, t := range batch.told {
		c.telemetry.event(ctx, t.transition.To.Severity, err == nil)
	}
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range slices.Backward(batch.told) {
		t.engine.Untell(&t.transition)
	}
	return err
}
