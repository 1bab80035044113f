package vllmprocessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/hardware"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// vllmProcessor is one instance in one pipeline.
type vllmProcessor struct {
	id        component.ID
	config    *Config
	window    window.Settings
	derive    derive.Settings
	logger    *zap.Logger
	version   string
	hardware  []hardware.Rule
	now       func() time.Time
	telemetry *telemetry
	storage   *storageStatus

	// mu guards what follows. A batch takes well under a millisecond, so one lock
	// for all resources is enough.
	mu        sync.Mutex
	resources map[string]*resource
	series    int
	swept     time.Time
	evaluator derive.Evaluator
	warned    warnings
	lapsed    lapsed
	// pools is nil where none are configured.
	pools *poolTicker
	// objectives is nil without any.
	objectives *objectives
	// diagnosis is nil where it is switched off.
	diagnosis *diagnosis
}

// resource is the state of one resource.
type resource struct {
	state  *window.Resource
	memory emit.Memory
	// measured is nil without objectives.
	measured *measured
	// diagnosed is nil before the first batch, and without a diagnosis.
	diagnosed *diagnosed
	// arrived is when its last batch came, by our clock.
	arrived time.Time
	batches int
	// beside are the attributes that its derived series were told with last.
	beside pcommon.Map
}

func newProcessor(config *Config, settings processor.Settings, next consumer.Metrics) (*vllmProcessor, error) {
	rules, err := config.rules()
	if err != nil {
		return nil, err
	}
	p := &vllmProcessor{
		id:     settings.ID,
		config: config,
		window: window.Settings{Window: config.Window, MaxStaleness: config.MaxStaleness},
		derive: derive.Settings{
			Enabled:            make([]bool, len(derive.Rows())),
			MeanConstrained:    config.Percentiles.Interpolation == MeanConstrained,
			PerEngineQuantiles: config.Percentiles.PerEngine,
			MinCount:           float64(config.MinCount),
			CapacityFromBlocks: config.CapacityFromBlocks,
		},
		logger:    settings.Logger,
		version:   settings.BuildInfo.Version,
		hardware:  rules,
		now:       time.Now,
		storage:   &storageStatus{},
		resources: map[string]*resource{},
	}
	for _, q := range config.Quantiles {
		p.derive.Quantiles = append(p.derive.Quantiles, derive.NewQuantile(q))
	}
	for i := range derive.Rows() {
		p.derive.Enabled[i] = config.enabled(derive.Rows()[i].Metric)
	}
	builder, err := metadata.NewTelemetryBuilder(settings.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	p.telemetry = newTelemetry(builder)
	p.pools = newPoolTicker(p, settings, next)
	return p, nil
}

// keep gives a new processor what has a state to keep over a restart: its objectives
// and its diagnosis.
func (p *vllmProcessor) keep(shared *archives) error {
	p.diagnose(shared)
	return p.measure(shared)
}

// newArchive returns an archive that counts what it loses.
func (p *vllmProcessor) newArchive(of kind) *archive {
	a := newArchive(of, func() time.Time { return p.now() }, p.logger)
	a.failed = func() { p.telemetry.ProcessorVllmFailedSaves.Add(context.Background(), 1) }
	a.dropped = func(n int) { p.telemetry.ProcessorVllmDroppedStates.Add(context.Background(), int64(n)) }
	return a
}

// enabled tells whether a metric is wanted.
func (c *Config) enabled(name string) bool {
	if chosen := c.Metrics[name].Enabled; chosen != nil {
		return *chosen
	}
	metric, known := catalog.ByName(name)
	return known && metric.Enabled
}

// start opens the storage and begins with the pools.
func (p *vllmProcessor) start(ctx context.Context, host component.Host) error {
	p.storage.start(host)
	if err := errors.Join(p.telemetry.observe(p), p.objectives.start(ctx, host), p.diagnosis.start(ctx, host)); err != nil {
		return err
	}
	p.pools.start()
	return nil
}

func (p *vllmProcessor) shutdown(ctx context.Context) error {
	p.storage.stop()
	p.pools.shutdown(ctx)
	err := errors.Join(p.objectives.shutdown(ctx), p.diagnosis.shutdown(ctx))
	p.telemetry.Shutdown()
	return err
}

// process derives from the metrics that pass through and adds the values to the
// resources that they come from.
func (p *vllmProcessor) process(ctx context.Context, metrics pmetric.Metrics) (pmetric.Metrics, error) {
	batches, unread := collect.Read(metrics)
	p.telemetry.unread(ctx, &unread)
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	p.sweep(ctx, now)
	for i := range batches {
		p.batch(ctx, &batches[i], metrics, now)
	}
	p.telemetry.absent(ctx, &p.evaluator.Absent)
	return metrics, nil
}

// lead is how far the time of a batch may be ahead of our clock. One from later
// would make all that follows it out of order.
const lead = 5 * time.Minute

// batch takes one batch into the state of its resource and adds what is derived.
func (p *vllmProcessor) batch(ctx context.Context, batch *collect.Batch, metrics pmetric.Metrics, now time.Time) {
	r := p.resources[batch.Resource]
	if r == nil {
		r = &resource{state: window.NewResource(p.window), beside: pcommon.NewMap(), arrived: now}
		p.warnLapse(batch.Resource, now)
	}
	if time.Unix(0, batch.Time).Sub(now) > lead {
		var report window.Report
		report.Ignored[window.Future] = len(batch.Samples)
		p.telemetry.observed(ctx, &report)
		p.warnFuture(batch, now)
		return
	}
	before := r.state.Time()
	report := r.state.Observe(batch, p.config.MaxSeries-p.series)
	p.series += report.NewSeries
	p.telemetry.observed(ctx, &report)
	p.warnings(batch, r, &report, before)
	if r.state.Series() > 0 {
		p.resources[batch.Resource] = r
	}
	if !report.Changed {
		return
	}
	r.arrived = now
	source := metrics.ResourceMetrics().At(batch.Source)
	p.move(ctx, batch, r, metrics)
	p.derive.Peak = peak(p.hardware, source.Resource().Attributes())
	p.pools.observe(batch.Resource, r, source.Resource().Attributes())
	p.diagnosis.observe(ctx, batch, r, source.Resource().Attributes(), now)
	added := pmetric.NewMetricSlice()
	p.write(ctx, p.evaluator.Evaluate(&p.derive, r.state), batch, r, metrics, added)
	for _, more := range []func() (points, ends int){
		func() (int, int) { return p.objectives.batch(ctx, batch, r, now, added) },
		func() (int, int) { return p.diagnosis.tell(batch, r, added) },
	} {
		points, ends := more()
		p.telemetry.derived(ctx, points, ends)
	}
	p.append(source, added)
}

// move ends the derived series under the attributes that the resource had before,
// where the input does the same with its own: a server that was updated in place.
func (p *vllmProcessor) move(ctx context.Context, batch *collect.Batch, r *resource, metrics pmetric.Metrics) {
	attributes := metrics.ResourceMetrics().At(batch.Source).Resource().Attributes()
	if attributes.Equal(r.beside) {
		return
	}
	if batch.Ends >= 0 {
		if left := metrics.ResourceMetrics().At(batch.Ends); left.Resource().Attributes().Equal(r.beside) {
			added := pmetric.NewMetricSlice()
			ends := p.endDerived(batch.Time, r, metrics, left, added)
			ends += r.measured.end(batch.Time, added)
			ends += r.diagnosed.end(r, batch.Time, added)
			p.telemetry.derived(ctx, 0, ends)
			p.append(left, added)
		}
	}
	attributes.CopyTo(r.beside)
}

// append adds derived metrics to a resource.
func (p *vllmProcessor) append(to pmetric.ResourceMetrics, added pmetric.MetricSlice) {
	if added.Len() == 0 {
		return
	}
	scope := to.ScopeMetrics().AppendEmpty()
	scope.Scope().SetName(metadata.ScopeName)
	scope.Scope().SetVersion(p.version)
	added.MoveAndAppendTo(scope.Metrics())
}

// sweep forgets resources that have been silent for too long. It looks a few
// times within that time.
func (p *vllmProcessor) sweep(ctx context.Context, now time.Time) {
	if now.Sub(p.swept) < p.config.MaxStaleness/4 {
		return
	}
	p.swept = now
	for key, r := range p.resources {
		if now.Sub(r.arrived) <= p.config.MaxStaleness {
			r.state.Trim()
			continue
		}
		p.series -= r.state.Series()
		p.lapse(key, r, now)
		p.objectives.expire(r)
		p.diagnosis.expire(r)
		delete(p.resources, key)
		p.telemetry.ProcessorVllmExpiredResources.Add(ctx, 1)
	}
}

// warnings are the sentences that are logged once.
type warnings struct{ seriesLimit, window, future, staleness bool }

// lapsed is a resource that was forgotten after a single batch, and how often in
// a row.
type lapsed struct {
	key     string
	arrived time.Time
	times   int
}

// lapse notes that a resource is forgotten. One is watched at a time; one that
// does not come back gives way.
func (p *vllmProcessor) lapse(key string, r *resource, now time.Time) {
	switch {
	case r.batches > 0:
	case p.lapsed.key == key:
		p.lapsed.arrived = r.arrived
		p.lapsed.times++
	case p.lapsed.key == "" || now.Sub(p.lapsed.arrived) > 10*p.config.MaxStaleness:
		p.lapsed = lapsed{key, r.arrived, 1}
	}
}

// warnLapse says once that resources come less often than they are forgotten.
// Once proves nothing, so it has to happen twice.
func (p *vllmProcessor) warnLapse(key string, now time.Time) {
	if p.warned.staleness || p.lapsed.times < 2 || p.lapsed.key != key {
		return
	}
	p.warned.staleness = true
	interval := now.Sub(p.lapsed.arrived)
	p.logger.Warn(fmt.Sprintf("a server comes every %s only, which is longer than max_staleness (%s), so that it is forgotten each time "+
		"and nothing is derived from it; set window and max_staleness to %s or more, or scrape more often",
		interval.Round(time.Millisecond), p.config.MaxStaleness, (2 * interval).Round(time.Second)))
}

func (p *vllmProcessor) warnFuture(batch *collect.Batch, now time.Time) {
	if p.warned.future {
		return
	}
	p.warned.future = true
	p.logger.Warn(fmt.Sprintf("points are %s ahead of this machine's clock, and nothing is derived from them; "+
		"set the clock here, or where they are made", time.Unix(0, batch.Time).Sub(now).Round(time.Second)))
}

// warnings says once what a user can mend.
func (p *vllmProcessor) warnings(batch *collect.Batch, r *resource, report *window.Report, before int64) {
	if report.Ignored[window.SeriesLimit] > 0 && !p.warned.seriesLimit {
		p.warned.seriesLimit = true
		p.logger.Warn(fmt.Sprintf("there are more series than max_series (%d), and nothing is derived from the others; "+
			"raise it, or keep metrics that are not vLLM's from this processor", p.config.MaxSeries))
	}
	if before == 0 || batch.Time <= before || !report.Observed {
		return
	}
	r.batches++
	// One gap proves nothing, so two intervals have to be long.
	interval := time.Duration(batch.Time - before)
	if r.batches > 10 || 2*interval <= p.config.Window {
		r.batches = 11
		return
	}
	if r.batches == 2 && !p.warned.window {
		p.warned.window = true
		p.logger.Warn(fmt.Sprintf("the window (%s) is shorter than twice the time between two scrapes (%s), "+
			"so that a single missed scrape leaves nothing to derive; set window to %s or more, or scrape more often",
			p.config.Window, interval.Round(time.Millisecond), (2 * interval).Round(time.Second)))
	}
}
