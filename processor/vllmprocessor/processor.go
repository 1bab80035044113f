package vllmprocessor

import (
	"context"
	"errors"
	"slices"
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
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/hardware"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/slo"
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

	// mu guards what follows. A resource has a lock of its own, which is taken before
	// mu where both are needed, so that one resource with much to do holds up no
	// other.
	mu        sync.Mutex
	resources map[string]*resource
	swept     time.Time
	warned    warnings
	lapsed    lapsed

	// series and engines are shared among the resources.
	series  *quota.Quota
	engines *quota.Quota
	workers sync.Pool
	// pools is nil where none are configured.
	pools *poolTicker
	// objectives is nil without any.
	objectives *objectives
	// diagnosis is nil where it is switched off.
	diagnosis *diagnosis
}

// worker is memory that calls use again.
type worker struct {
	settings derive.Settings
	derive   derive.Evaluator
	slo      slo.Evaluator
	values   []derive.Value
}

const (
	// seriesOfEngine is how many series an engine has at least; servers have 20 for
	// each engine and more. Without it engines that are made up, with a series each,
	// would take ten times the memory of the same number of series.
	seriesOfEngine = 8
	// leastEngines is for limits that are very low.
	leastEngines = 16
)

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
		series:    quota.New(config.MaxSeries),
		engines:   quota.New(max(config.MaxSeries/seriesOfEngine, leastEngines)),
	}
	p.workers.New = func() any { return &worker{} }
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
	p.warnSize(&unread)
	now := p.now()
	p.sweep(ctx, now)
	w := p.workers.Get().(*worker)
	defer p.workers.Put(w)
	derived := derivedBefore(metrics)
	left := map[string]int{}
	for i := range batches {
		left[batches[i].Resource]++
	}
	for i := range batches {
		batch := &batches[i]
		left[batch.Resource]--
		r := p.acquire(batch.Resource, now)
		if r.isAhead(batch, now) {
			p.warnAhead(r, now)
			p.forget(batch.Resource, r)
			r.mu.Unlock()
			r = p.acquire(batch.Resource, now)
			r.strict = now.Add(p.config.MaxStaleness)
		}
		p.noteDerived(r, derived[batch.Resource], now)
		p.batch(ctx, w, batch, r, metrics, now, left[batch.Resource])
		p.release(batch.Resource, r)
	}
	p.telemetry.absent(ctx, &w.derive.Absent)
	p.telemetry.absent(ctx, &w.slo.Absent)
	return metrics, nil
}

// batch takes one batch into the state of its resource and adds what is derived. later
// is the number of batches of the resource that the same request has for later times.
func (p *vllmProcessor) batch(
	ctx context.Context, w *worker, batch *collect.Batch, r *resource, metrics pmetric.Metrics, now time.Time, later int,
) {
	if ahead := time.Unix(0, batch.Time).Sub(now); ahead > lead || ahead > skew && now.Before(r.strict) {
		var report window.Report
		report.Ignored[window.Future] = len(batch.Samples)
		p.telemetry.observed(ctx, &report)
		p.warnFuture(batch, now)
		return
	}
	out := &output{time: batch.Time, print: batch.Print(), sent: deliveryOf(ctx)}
	if before := r.history.find(out.time, out.print); before != nil {
		p.again(ctx, []*output{before}, batch, metrics)
		return
	}
	if now.Sub(r.trimmed) >= p.config.MaxStaleness/4 {
		r.trimmed = now
		r.state.Trim()
	}
	before := r.state.Time()
	r.state.Shrink(r.share.Excess(), r.engines.Excess())
	r.hold()
	r.state.Allow(r.state.Engines() + r.engines.Room())
	report := r.state.Observe(batch, r.share.Room())
	r.hold()
	p.telemetry.observed(ctx, &report)
	attributes := metrics.ResourceMetrics().At(batch.Source).Resource().Attributes()
	p.warnings(batch, r, attributes, &report, before)
	if report.Changed {
		p.mu.Lock()
		r.arrived = now
		p.mu.Unlock()
	}
	if report.Used == 0 {
		// It came before, in other parts.
		p.again(ctx, r.history.refused(batch.Time), batch, metrics)
	}
	if !report.Changed {
		return
	}
	p.move(ctx, batch, r, attributes, metrics, out)
	p.pools.observe(batch.Resource, r, attributes)
	p.objectives.observe(ctx, batch, r, now)
	if later < r.times() {
		p.evaluate(ctx, w, batch, r, attributes, now, out)
	} else {
		p.telemetry.ProcessorVllmSkippedTimes.Add(ctx, 1)
		p.warnTimes(r, attributes)
		if len(out.sections) == 0 {
			// Nothing has ended under former attributes, which could not wait.
			return
		}
	}
	p.repeat(ctx, r, out)
	p.put(out, batch, metrics)
	r.history.keep(out)
}

// evaluate adds to an output what is derived from a resource at the time of a batch.
func (p *vllmProcessor) evaluate(
	ctx context.Context, w *worker, batch *collect.Batch, r *resource, attributes pcommon.Map, now time.Time, out *output,
) {
	p.diagnosis.observe(ctx, batch, r, attributes, now)
	w.settings = p.derive
	w.settings.Peak = peak(p.hardware, attributes)
	if !r.derivedBefore(ofWindows, now, p.config.MaxStaleness) {
		p.derived(ctx, w.derive.Evaluate(&w.settings, r.state), batch, r, out)
	}
	if !r.derivedBefore(ofObjectives, now, p.config.MaxStaleness) {
		p.objectives.tell(ctx, w, batch, r, out)
	}
	if !r.derivedBefore(ofDiagnosis, now, p.config.MaxStaleness) {
		p.diagnosis.tell(ctx, w, batch, r, out)
	}
}

// add adds points to an output and counts them.
func (p *vllmProcessor) add(ctx context.Context, out *output, s section) (values int) {
	values, ends := out.add(s)
	p.telemetry.derived(ctx, values, ends)
	return values
}

// move ends the derived series under the attributes that the resource had before,
// where the input does the same with its own: a server that was updated in place.
func (p *vllmProcessor) move(
	ctx context.Context, batch *collect.Batch, r *resource, attributes pcommon.Map, metrics pmetric.Metrics, out *output,
) {
	if attributes.Equal(r.attributes) {
		return
	}
	if batch.Ends >= 0 && metrics.ResourceMetrics().At(batch.Ends).Resource().Attributes().Equal(r.attributes) {
		for _, memory := range r.memories() {
			p.add(ctx, out, section{
				memory: memory, points: memory.Write(nil, batch.Time, batch.Time), attributes: r.attributes, mark: r.markOf(memory),
			})
		}
	}
	r.attributes = pcommon.NewMap()
	attributes.CopyTo(r.attributes)
	// Where the resource has these attributes again, its series there live again.
	r.history.unconfirmed = slices.DeleteFunc(r.history.unconfirmed, func(u *unconfirmed) bool { return u.attributes.Equal(r.attributes) })
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
