package vllmprocessor

import (
	"context"
	"errors"
	"fmt"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/fleet"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pool"
)

const (
	// maxPools is against attributes that differ for each server or request.
	maxPools = 1000
	// failureLogInterval is the least time between two sentences about what could
	// not be sent.
	failureLogInterval = time.Minute
	// shutdownPatience is how long a consumer may hold up the shutdown that
	// ignores that it is called off.
	shutdownPatience = 5 * time.Second
)

// poolTicker sends what the pools say to the next consumer, at every interval.
type poolTicker struct {
	processor *vllmProcessor
	groupBy   []string
	interval  time.Duration
	next      consumer.Metrics
	resource  pcommon.Resource
	// began is what the times of the pools count from. So a clock that is set, which
	// does not change differences, neither keeps the dead nor loses the living.
	began time.Time

	// mu guards what resources are taken into. It is taken after a resource's lock.
	mu    sync.Mutex
	pools *pool.Pools
	// attributes is for reuse.
	attributes []string

	cancel context.CancelFunc
	done   sync.WaitGroup

	// What follows belongs to the goroutine. memory is what was said last of the
	// pools, told the same of their diagnosis; all is what both belong to.
	memory    emit.Memory
	diagnosis fleet.Pools
	told      emit.Memory
	all       resource

	warned   [2]bool
	failures int
	logged   time.Time
}

// newPoolTicker returns nil without a configuration of pools.
func newPoolTicker(p *vllmProcessor, settings processor.Settings, next consumer.Metrics) *poolTicker {
	config := p.config.Pool.Get()
	if config == nil {
		return nil
	}
	return &poolTicker{
		processor: p,
		groupBy:   config.GroupBy,
		interval:  config.Interval,
		next:      next,
		resource:  poolResource(settings),
		began:     p.now(),
		pools: pool.New(pool.Settings{
			GroupBy: config.GroupBy, MaxPools: maxPools, MaxStaleness: p.config.MaxStaleness,
			Enabled: p.config.enabled, Derive: &p.derive,
		}),
		diagnosis:  fleet.Pools{MaxPools: maxPools},
		attributes: make([]string, len(config.GroupBy)),
	}
}

// poolResource is the collector: it made these numbers. Its instance keeps the
// series of several collectors apart, the component's name those of several
// processors in one.
func poolResource(settings processor.Settings) pcommon.Resource {
	resource := pcommon.NewResource()
	for _, name := range []string{"service.namespace", "service.name", "service.instance.id"} {
		if value, ok := settings.Resource.Attributes().Get(name); ok {
			value.CopyTo(resource.Attributes().PutEmpty(name))
		}
	}
	resource.Attributes().PutStr("otelcol.component.id", settings.ID.String())
	return resource
}

// observe takes the newest batch of a resource into its pools. The caller holds
// the lock of the resource.
func (t *poolTicker) observe(key string, r *resource, attributes pcommon.Map) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, name := range t.groupBy {
		t.attributes[i] = ""
		if value, ok := attributes.Get(name); ok {
			t.attributes[i] = value.AsString()
		}
	}
	t.pools.Observe(key, r.state, t.attributes, int64(r.arrived.Sub(t.began)))
}

func (t *poolTicker) start() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.done.Go(func() { t.run(ctx) })
}

// shutdown ends the goroutine. A consumer that neither returns nor heeds its
// context is not waited for beyond a few seconds.
func (t *poolTicker) shutdown(ctx context.Context) {
	if t == nil || t.cancel == nil {
		return
	}
	t.cancel()
	done := make(chan struct{})
	go func() {
		t.done.Wait()
		close(done)
	}()
	patience := time.NewTimer(shutdownPatience)
	defer patience.Stop()
	select {
	case <-done:
		return
	case <-ctx.Done():
	case <-patience.C:
	}
	t.processor.logger.Warn("the next component still holds the metrics of the pools; the shutdown goes on without it")
}

func (t *poolTicker) run(ctx context.Context) {
	ticker := time.NewTicker(t.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			t.tick(ctx)
		}
	}
}

// tick tells what there is to tell. It does not hold the lock while it sends, and
// gives up on a consumer that has not taken it when the next one is due.
func (t *poolTicker) tick(ctx context.Context) {
	sent := &delivery{}
	metrics := t.collect(context.WithValue(ctx, deliveryKey{}, sent))
	if metrics.MetricCount() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.interval)
	defer cancel()
	points := metrics.DataPointCount()
	err := t.next.ConsumeMetrics(ctx, metrics)
	sent.done(err)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	t.processor.telemetry.ProcessorVllmPoolLostPoints.Add(ctx, int64(points))
	t.failures++
	now := t.processor.now()
	if now.Sub(t.logged) < failureLogInterval {
		return
	}
	t.processor.logger.Warn("the next component did not take the metrics of the pools",
		zap.Error(err), zap.Int("failures_since_last_message", t.failures))
	t.logged, t.failures = now, 0
}

// collect computes the pools.
func (t *poolTicker) collect(ctx context.Context) pmetric.Metrics {
	p := t.processor
	now := p.now()
	out := &output{time: now.UnixNano(), sent: deliveryOf(ctx)}
	t.mu.Lock()
	values, leftOut := t.pools.Evaluate(int64(now.Sub(t.began)))
	p.add(ctx, out, section{memory: &t.memory, points: t.memory.Write(values, out.time, out.time)})
	notFound := t.pools.NotFound()
	t.mu.Unlock()
	// Both are about the same servers.
	leftOut = max(leftOut, t.diagnose(ctx, now, out))
	p.repeat(ctx, &t.all, out)
	t.warn(ctx, leftOut, notFound)

	metrics := pmetric.NewMetrics()
	if len(out.sections) == 0 {
		return metrics
	}
	rm := metrics.ResourceMetrics().AppendEmpty()
	t.resource.CopyTo(rm.Resource())
	rm.SetSchemaUrl(catalog.SchemaURL)
	p.put(out, &collect.Batch{Ends: -1}, metrics)
	return metrics
}

// diagnose says in which condition the pools are, and returns how many servers were
// left out because there are too many pools. Servers that do not answer any more
// count, other than for what is added up, until nothing at all has come about them
// for max_staleness.
func (t *poolTicker) diagnose(ctx context.Context, now time.Time, out *output) (leftOut int) {
	p := t.processor
	if p.diagnosis == nil {
		return 0
	}
	t.diagnosis.Begin()
	live := func(visit func(r *resource)) {
		p.each(func(_ string, r *resource) {
			if r.diagnosed != nil && now.Sub(r.arrived) <= p.config.MaxStaleness {
				visit(r)
			}
		})
	}
	live(func(r *resource) {
		if !t.diagnosis.Add(&r.diagnosed.state, func(of []collect.Attribute) []collect.Attribute { return t.poolOf(of, r.attributes) }) {
			leftOut++
		}
	})
	live(func(r *resource) { t.diagnosis.Queue(&r.diagnosed.state) })
	values, transitions := t.diagnosis.Evaluate(&p.diagnosis.settings, out.time, p.diagnosis.wanted)
	p.diagnosis.report(ctx, transitions, t.resource.Attributes(), now)
	p.add(ctx, out, section{memory: &t.told, points: t.told.Write(values, out.time, out.time)})
	return leftOut
}

// poolOf returns the attributes of the pool that an engine belongs to: its own, or
// those of its resource.
func (t *poolTicker) poolOf(engine []collect.Attribute, resource pcommon.Map) []collect.Attribute {
	of := make([]collect.Attribute, 0, len(t.groupBy))
	for _, name := range t.groupBy {
		value := (&collect.Group{Attributes: engine}).Value(name)
		if known, has := resource.Get(name); value == "" && has {
			value = known.AsString()
		}
		if value != "" {
			of = append(of, collect.Attribute{Name: name, Value: value})
		}
	}
	return of
}

// warn says once what a user can mend.
func (t *poolTicker) warn(ctx context.Context, leftOut int, notFound []string) {
	if leftOut > 0 {
		t.processor.telemetry.ProcessorVllmPoolLeftOut.Add(ctx, int64(leftOut))
		if !t.warned[0] {
			t.warned[0] = true
			t.processor.logger.Warn(fmt.Sprintf("there are more than %d pools, and the servers of the others are left out; "+
				"write attributes in pool::group_by that many servers share", maxPools))
		}
	}
	if len(notFound) > 0 && !t.warned[1] {
		t.warned[1] = true
		t.processor.logger.Warn(fmt.Sprintf("no server has an attribute %s, which pool::group_by names, and servers are grouped without it; "+
			"write an attribute of their points or of their resource", strings.Join(notFound, " or ")))
	}
}
