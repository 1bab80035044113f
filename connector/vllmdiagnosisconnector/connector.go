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
	"github.com/otelcol-vllm/otelcol-vllm/internal/ending"
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

	// mu guards what follows. It is not held while records are delivered, which may
	// take long.
	mu      sync.Mutex
	engines engines
	// pending are records that were refused.
	pending   pending
	expiredAt time.Time
	warned    warnings
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
		telemetry: newTelemetry(builder, settings.ID),
		engines:   newEngines(config.MaxEngines),
		pending:   pending{limit: maxPending},
	}, nil
}

// precedence is the place of a condition in the catalogue, which has the more
// pressing before the less; one that it lacks is last.
func precedence(condition string) int {
	conditions := catalog.Conditions()
	if i := slices.IndexFunc(conditions, func(c catalog.Condition) bool { return c.Name == condition }); i >= 0 {
		return i
	}
	return len(conditions)
}

// Capabilities reports that the metrics are not changed.
func (*diagnosisConnector) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// Start registers what is read when the collector's own metrics are.
func (c *diagnosisConnector) Start(context.Context, component.Host) error {
	return c.telemetry.observe(c)
}

// Shutdown emits what still waits for the rest of its batch, which will not come, and
// tries once more to deliver what was refused.
func (c *diagnosisConnector) Shutdown(ctx context.Context) error {
	batch := c.newBatch()
	c.mu.Lock()
	for key, e := range c.engines.all() {
		c.emitWaiting(ctx, key, e, batch)
	}
	c.engines = newEngines(c.config.MaxEngines)
	c.pending.again = time.Time{}
	c.mu.Unlock()
	ended, err := ending.Within(ctx, func(ctx context.Context) error { return c.deliver(ctx, batch) })
	if !ended {
		c.logger.Warn("the next component still holds events of the diagnosis; the shutdown continues without it. " +
			"Give the exporter of the logs a timeout or a sending_queue")
	}
	c.mu.Lock()
	if lost := len(c.pending.records); lost > 0 {
		c.telemetry.drop(ctx, c.pending.records)
		c.logger.Warn("events of the diagnosis could not be delivered until the end and are lost", zap.Int("events", lost))
	}
	c.pending.records = nil
	c.mu.Unlock()
	c.telemetry.Shutdown()
	return err
}

// ConsumeMetrics emits a record for each transition that follows from metrics. An
// error is that of the next component, and about transitions of these metrics. Their
// records are kept and delivered with a later call, whatever it brings; so the same
// metrics again do no harm and are not needed.
func (c *diagnosisConnector) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	frames, unread := collect.Read(metrics)
	c.telemetry.unread(ctx, &unread)
	batch := c.newBatch()
	c.mu.Lock()
	c.look(metrics)
	c.expireSilent(ctx, batch)
	for _, frame := range frames {
		c.observe(ctx, frame, metrics.ResourceMetrics().At(frame.Source), batch)
	}
	c.mu.Unlock()
	return c.deliver(ctx, batch)
}

const (
	// lead is how far points may be ahead of our clock. One from later would make all
	// that follows it out of order.
	lead = 5 * time.Minute
	// early is how far the newest points of an engine must be ahead of our clock for
	// older ones to be believed instead.
	early = 30 * time.Second
)

// observe takes one frame.
func (c *diagnosisConnector) observe(ctx context.Context, frame *collect.Frame, source pmetric.ResourceMetrics, batch *batch) {
	ahead := time.Unix(0, frame.Time).Sub(batch.now)
	if ahead > lead {
		c.telemetry.ignore(ctx, future, frame.Points)
		c.warnOnce(&c.warned.future, fmt.Sprintf("points are %s ahead of this machine's clock, and no diagnosis is read from them; "+
			"synchronize the clock of this machine, or of the machine that makes the points", ahead.Round(time.Second)))
		return
	}
	e := c.engines.get(frame.Key)
	if e == nil {
		if e = c.begin(ctx, frame, batch); e == nil {
			return
		}
	}
	if c.wasEarly(frame, e, batch.now) {
		c.emitWaiting(ctx, frame.Key, e, batch)
		e.SetBack()
	}
	origin := emit.Origin{Resource: source.Resource(), SchemaURL: source.SchemaUrl()}
	before := e.Ended()
	outcome, transitions, incomplete := e.Observe(frame)
	c.engines.mark(frame.Key, before, e.Ended())
	for i := range transitions {
		batch.add(frame.Key, e, origin, &transitions[i])
	}
	c.incomplete(ctx, incomplete)
	switch outcome {
	case track.OutOfOrder:
		c.telemetry.ignore(ctx, outOfOrder, frame.Points)
		return
	case track.Waiting:
		e.waits = batch.keep(frame.Source, origin)
	case track.Taken, track.Ended:
		e.waits = nil
	}
	e.arrived, e.behind = batch.now, 0
}

// wasEarly reports whether the newest points of an engine were made by a clock that has
// been set right since. To wait for the time that it showed would silence the engine for
// minutes. One older frame may be one that was sent again; two in their order are not.
func (c *diagnosisConnector) wasEarly(frame *collect.Frame, e *engine, now time.Time) bool {
	ahead := time.Unix(0, e.Time()).Sub(now)
	if frame.Time >= e.Time() || ahead <= early || time.Unix(0, frame.Time).Sub(now) > early {
		return false
	}
	if e.behind == 0 || frame.Time <= e.behind {
		e.behind = frame.Time
		return false
	}
	c.warnOnce(&c.warned.early, fmt.Sprintf("points were %s ahead of this machine's clock, and those that follow are not; "+
		"the connector continues with the latter. Synchronize the clock of the machine that makes the points", ahead.Round(time.Second)))
	return true
}

// begin makes room for a new engine. It returns nil where there is none.
func (c *diagnosisConnector) begin(ctx context.Context, frame *collect.Frame, batch *batch) *engine {
	if key, full := c.engines.makeRoom(frame.Key.Resource); full {
		if key == nil {
			c.telemetry.ignore(ctx, engineLimit, frame.Points)
			c.warnOnce(&c.warned.engines, fmt.Sprintf("there are more engines and pools than max_engines (%d), and no events are emitted about some of them; "+
				"raise it. One server gets at most %d, so look first whether one sends more than it has", c.config.MaxEngines, c.engines.share))
			return nil
		}
		c.emitWaiting(ctx, *key, c.engines.get(*key), batch)
		c.engines.remove(*key)
	}
	return c.engines.add(frame.Key, &engine{Engine: track.NewEngine(&c.settings), attributes: frame.Attributes})
}

// expireSilent forgets engines that have been silent for too long. It looks a few times
// within that time.
func (c *diagnosisConnector) expireSilent(ctx context.Context, batch *batch) {
	if batch.now.Sub(c.expiredAt) < c.config.MaxStaleness/4 {
		return
	}
	c.expiredAt = batch.now
	for key, e := range c.engines.all() {
		if batch.now.Sub(e.arrived) <= c.config.MaxStaleness {
			continue
		}
		c.emitWaiting(ctx, key, e, batch)
		if !e.Ended() {
			c.telemetry.ConnectorVllmDiagnosisExpiredEngines.Add(ctx, 1)
		}
		c.engines.remove(key)
	}
}

// emitWaiting emits the part of a frame whose rest has not arrived.
func (c *diagnosisConnector) emitWaiting(ctx context.Context, key collect.Key, e *engine, batch *batch) {
	if e.waits == nil {
		return
	}
	transitions, incomplete := e.TakeIncomplete()
	for i := range transitions {
		batch.add(key, e, *e.waits, &transitions[i])
	}
	c.incomplete(ctx, incomplete)
	e.waits = nil
}
