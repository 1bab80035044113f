package vllmprocessor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// vllmProcessor is one instance in one pipeline.
type vllmProcessor struct {
	config    *Config
	window    window.Settings
	logger    *zap.Logger
	now       func() time.Time
	telemetry *stages.Telemetry
	status    *archive.Status
	// stages are what the processor derives, in the order of addStages.
	stages []stages.Stage
	// dropper removes input that does not leave the processor; nil where all leaves.
	dropper *collect.Dropper
	// readers are for reuse. Without them a batch of one server takes 1.3 times the processor
	// time and allocates twice the bytes.
	readers sync.Pool

	// mu guards what follows. A resource has a lock of its own, which is taken before
	// mu where both are needed, so that one resource with much to do delays no other.
	mu         sync.Mutex
	resources  map[string]*resource
	expiredAt  time.Time
	shortLived shortLived

	warned warnings
	// advised is the max_series that the log has advised; 0 if it has not.
	advised atomic.Int64
	// defaultBounds is how many servers have them.
	defaultBounds atomic.Int64
	defects       *defectlog.Log
	// accelerators are the GPUs of the servers.
	accelerators *gpu.Store
	// series and engines are shared among the resources.
	series  *quota.Quota
	engines *quota.Quota
}

const (
	// seriesOfEngine is how many series an engine has at least; servers have 20 for
	// each engine and more. Without it invented engines with a series each would take
	// ten times the memory of the same number of series.
	seriesOfEngine = 8
	// leastEngines is for limits that are very low.
	leastEngines = 16
)

func newProcessor(config *Config, settings processor.Settings, next consumer.Metrics, archives *archive.Shared, by Clock) (*vllmProcessor, error) {
	own, err := stages.NewTelemetry(settings.TelemetrySettings, settings.ID)
	if err != nil {
		return nil, err
	}
	p := &vllmProcessor{
		config:    config,
		window:    window.Settings{Window: config.Window, MaxStaleness: config.MaxStaleness},
		logger:    settings.Logger,
		now:       by.Now,
		telemetry: own,
		status:    &archive.Status{},
		resources: map[string]*resource{},
		series:    quota.New(config.MaxSeries),
		defects:   defectlog.New(settings.Logger, config.Window),

		accelerators: gpu.NewStore(config.Window),

		engines: quota.New(max(config.MaxSeries/seriesOfEngine, leastEngines)),
	}
	if drops := config.drops(); drops != nil {
		p.dropper = collect.NewDropper(drops, config.Preset == catalog.Essential)
	}
	p.readers.New = func() any { return &collect.Reader{} }
	now := func() time.Time { return p.now() }
	err = p.addStages(&stages.Processor{
		Settings: settings, Next: next, Window: config.Window, MaxStaleness: config.MaxStaleness, Telemetry: own,
		Accelerators: p.accelerators, Now: now, Every: by.Every, Each: p.each, Enabled: config.Switched, Emits: config.emits,
		Archive: archive.Settings{
			Shared: archives, ID: settings.ID, Extension: config.Storage, Status: p.status, Now: now, Every: by.Every, Logger: settings.Logger,
			Failed:  func() { own.ProcessorVllmFailedSaves.Add(context.Background(), 1) },
			Dropped: func(n int) { own.ProcessorVllmDroppedStates.Add(context.Background(), int64(n)) },
		},
	})
	return p, err
}

// start starts the stages in their order. Nothing is started after one that fails.
func (p *vllmProcessor) start(ctx context.Context, host component.Host) error {
	p.status.Start(host)
	if err := p.telemetry.ObserveState(p.series.Used, p.numResources, p.accelerators.Devices); err != nil {
		return err
	}
	for _, s := range p.stages {
		if err := s.Start(ctx, host); err != nil {
			return err
		}
	}
	return nil
}

// shutdown stops the stages, the last one first: it may use what those before it have.
func (p *vllmProcessor) shutdown(ctx context.Context) error {
	p.status.Stop()
	var errs []error
	for _, s := range slices.Backward(p.stages) {
		errs = append(errs, s.Shutdown(ctx))
	}
	p.defects.Close()
	p.telemetry.Shutdown()
	return errors.Join(errs...)
}

// process derives from the metrics that pass through and adds the values to the
// resources that they belong to.
func (p *vllmProcessor) process(ctx context.Context, metrics pmetric.Metrics) (pmetric.Metrics, error) {
	reader := p.readers.Get().(*collect.Reader)
	defer p.readers.Put(reader)
	batches, unread := reader.Read(metrics)
	p.telemetry.Unread(ctx, &unread)
	p.warnSize(&unread)
	now := p.now()
	p.expireSilent(ctx, now)
	var found *gpuReadings
	if read := reader.Accelerators(); len(read.Sources) > 0 {
		found = &gpuReadings{Accelerators: read, matched: make([]bool, len(read.Batches))}
		p.observeGPUs(ctx, found, metrics, now.UnixNano(), false)
	}
	elsewhere := p.derivedElsewhere(metrics)
	var left map[string]int
	if len(batches) > 1 {
		left = make(map[string]int, len(batches))
	}
	for i := range batches[min(1, len(batches)):] {
		left[batches[i+1].Resource]++
	}
	for i := range batches {
		batch := &batches[i]
		if i > 0 {
			left[batch.Resource]--
		}
		r := p.acquire(batch.Resource, now)
		if r.isAhead(batch, now) {
			p.warnAhead(r, now)
			p.forget(r)
			r.mu.Unlock()
			r = p.acquire(batch.Resource, now)
			r.strict = now.Add(p.config.MaxStaleness)
		}
		p.deriveElsewhere(r, elsewhere[batch.Resource], now)
		p.batch(ctx, r, &stages.Batch{Batch: batch, Now: now}, metrics, left[batch.Resource])
		p.release(r)
	}
	if found != nil {
		p.observeGPUs(ctx, found, metrics, now.UnixNano(), true)
		p.dropUnmatched(found, metrics)
	}
	if p.dropper != nil {
		p.dropper.Remove(metrics)
	}
	if metrics.ResourceMetrics().Len() == 0 && (found != nil || p.dropper != nil) {
		return metrics, processorhelper.ErrSkipProcessingData
	}
	return metrics, nil
}

// batch takes one batch into the state of its resource and adds what is derived. later is
// the number of batches of the resource that the same request has for later times.
func (p *vllmProcessor) batch(ctx context.Context, r *resource, batch *stages.Batch, metrics pmetric.Metrics, later int) {
	if ahead := aheadOf(batch); ahead > lead || ahead > skew && batch.Now.Before(r.strict) {
		var report window.Report
		report.Ignored[window.Future] = len(batch.Samples)
		p.telemetry.Observed(ctx, &report)
		p.warnFuture(batch)
		return
	}
	out := emit.NewOutput(batch.Time, batch.Print())
	if before := r.history.Find(batch.Time, batch.Print()); before != nil {
		p.put(ctx, r, before, batch, metrics)
		return
	}
	attributes := metrics.ResourceMetrics().At(batch.Source).Resource().Attributes()
	report := p.observe(ctx, r, batch, attributes)
	if report.Used == 0 {
		// Its points arrived before, in other parts.
		for _, before := range r.history.Refused(batch.Time) {
			p.put(ctx, r, before, batch, metrics)
		}
	}
	if !report.Changed {
		return
	}
	p.move(r, batch, attributes, metrics, out)
	batch.Skipped = later >= r.times()
	p.derive(ctx, r, batch, out)
	if batch.Skipped && out.Empty() {
		return
	}
	p.put(ctx, r, out, batch, metrics)
	r.history.Keep(out)
}

// observe takes a batch into the window of its resource, as far as the limits allow.
func (p *vllmProcessor) observe(ctx context.Context, r *resource, batch *stages.Batch, attributes pcommon.Map) window.Report {
	if batch.Now.Sub(r.trimmed) >= p.config.MaxStaleness/4 {
		r.trimmed = batch.Now
		r.Window.Trim()
	}
	before := r.Window.Time()
	r.Window.Shrink(r.share.Excess(), r.engines.Excess())
	r.useShares()
	r.Window.Allow(r.Window.Engines() + r.engines.Room())
	report := r.Window.Observe(batch.Batch, r.share.Room())
	r.useShares()
	if report.Observed {
		r.share.Lack(report.Lacking)
	}
	p.telemetry.Observed(ctx, &report)
	p.warn(r, batch, attributes, &report, before)
	if report.Changed {
		p.mu.Lock()
		r.Arrived = batch.Now
		p.mu.Unlock()
		p.logDefects(r, attributes, batch.Now)
	}
	return report
}

func (p *vllmProcessor) derive(ctx context.Context, r *resource, batch *stages.Batch, out *emit.Output) {
	if len(r.States) == 0 {
		for i, s := range p.stages {
			r.States = append(r.States, s.Begin(&r.Server, &r.parts[i].series))
		}
	}
	if batch.Skipped {
		p.telemetry.ProcessorVllmSkippedTimes.Add(ctx, 1)
		p.warnTimes(r)
	}
	for i, state := range r.States {
		batch.Elsewhere = r.parts[i].elsewhere(batch.Now, p.config.MaxStaleness)
		state.Observe(ctx, batch)
	}
	for i, state := range r.States {
		if batch.Elsewhere = r.parts[i].elsewhere(batch.Now, p.config.MaxStaleness); !batch.Skipped && !batch.Elsewhere {
			state.Append(ctx, out)
		}
	}
}

// move ends the derived series under the attributes that the resource had before,
// where the input does the same with its own: a server that was updated in place.
func (p *vllmProcessor) move(r *resource, batch *stages.Batch, attributes pcommon.Map, metrics pmetric.Metrics, out *emit.Output) {
	if attributes.Equal(r.Attributes) {
		return
	}
	if batch.Ends >= 0 && metrics.ResourceMetrics().At(batch.Ends).Resource().Attributes().Equal(r.Attributes) {
		for i := range r.parts {
			out.End(&r.parts[i].series, r.Attributes)
		}
	}
	r.Attributes = pcommon.NewMap()
	attributes.CopyTo(r.Attributes)
}

// put adds an output to the metrics: of a new batch, or of one that is sent again.
func (p *vllmProcessor) put(ctx context.Context, r *resource, out *emit.Output, batch *stages.Batch, metrics pmetric.Metrics) {
	values, ends := r.history.Put(out, emit.CallOf(ctx), metrics, batch.Batch)
	p.telemetry.Derived(ctx, values, ends)
}
