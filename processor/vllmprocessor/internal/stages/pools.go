package stages

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pools"
)

// MaxPools bounds the pools, against attributes that differ for each server or request.
const MaxPools = 1000

// Pools adds up servers, and sends their pools to the next consumer at every interval.
type Pools struct {
	*Processor
	groupBy  []string
	interval time.Duration
	resource pcommon.Resource
	// began is what the times of the pools count from. A clock that is set does not change
	// differences, so it neither keeps silent servers nor drops others.
	began time.Time

	// mu guards what the servers are added to. It is taken after a server's lock.
	mu     sync.Mutex
	totals *pools.Totals

	// cancel ends the call of the next consumer that is under way, stop the calls.
	cancel context.CancelFunc
	stop   func()

	// What follows belongs to tick. diagnosis is nil where it is switched off.
	series, judged emit.Memory
	diagnosis      *Diagnosis
	history        emit.History
	warnings       poolWarnings
}

// NewPools returns the stage. values derives the same of single servers. engines is the diagnosis of the servers' engines; nil where it
// is switched off.
func NewPools(config *PoolsConfig, values *Derived, engines *Diagnosis, p *Processor) *Pools {
	s := &Pools{
		Processor: p,
		groupBy:   config.GroupBy,
		interval:  config.Interval,
		resource:  resourceOf(p.Settings),
		began:     p.Now(),
		totals: pools.NewTotals(pools.Settings{
			GroupBy: config.GroupBy, MaxPools: MaxPools, MaxStaleness: p.MaxStaleness, Enabled: p.Enabled, Derive: &values.settings,
		}),
	}
	if engines != nil {
		s.diagnosis, engines.pools = engines, pools.NewDiagnosis(MaxPools, keeper{stage: engines})
	}
	return s
}

// resourceOf is the resource of the collector, which made these numbers. Its instance
// keeps the series of several collectors apart, the component's name those of several
// processors in one.
func resourceOf(settings processor.Settings) pcommon.Resource {
	resource := pcommon.NewResource()
	for _, name := range []string{"service.namespace", "service.name", "service.instance.id"} {
		if value, ok := settings.Resource.Attributes().Get(name); ok {
			value.CopyTo(resource.Attributes().PutEmpty(name))
		}
	}
	resource.Attributes().PutStr("otelcol.component.id", settings.ID.String())
	return resource
}

// Start begins to send.
func (s *Pools) Start(context.Context, component.Host) error {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.stop = s.Every(s.interval, func() { s.tick(ctx) })
	return nil
}

// shutdownPatience bounds how long the shutdown waits for a consumer that ignores its
// context.
const shutdownPatience = 5 * time.Second

// Shutdown ends the sending. It waits some seconds for a consumer that neither returns
// nor heeds its context.
func (s *Pools) Shutdown(ctx context.Context) error {
	if s.cancel == nil {
		return nil
	}
	s.cancel()
	done := make(chan struct{})
	go func() {
		s.stop()
		close(done)
	}()
	ctx, cancel := context.WithTimeout(ctx, shutdownPatience)
	defer cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.Logger.Warn("the next component still holds the metrics of the pools; the shutdown continues without it")
	return nil
}

// Derives returns false: a pool has a resource of its own.
func (*Pools) Derives(string) bool { return false }

// Begin returns the state of a new server.
func (s *Pools) Begin(server *Server, _ *emit.Memory) State {
	return &poolState{stage: s, server: server, attributesOf: s.attributesOf(server)}
}

// poolState adds one server to its pools.
type poolState struct {
	nothingToKeep
	stage        *Pools
	server       *Server
	attributesOf pools.AttributesOf
}

// Observe takes the newest batch of a server into its pools.
func (s *poolState) Observe(context.Context, *Batch) {
	p := s.stage
	p.mu.Lock()
	defer p.mu.Unlock()
	p.totals.Observe(s.server.Key, s.server.Window, s.attributesOf, int64(s.server.Arrived.Sub(p.began)))
}

// Append does nothing: the pools emit at an interval.
func (*poolState) Append(context.Context, *emit.Output) {}

// PoolsConfig adds up servers that share attributes. A pool has the servers of one pipeline
// of one collector. Its points belong to the resource of that collector, which must have
// a service.instance.id of its own where several write to one backend, and to the
// component, which the attribute otelcol.component.id of the resource names.
type PoolsConfig struct {
	// GroupBy are the names of attributes, of points or of resources: servers
	// with equal values make a pool. A server that lacks an attribute belongs to
	// the pool without it.
	GroupBy []string `mapstructure:"group_by"`
	// Interval is the time between two points of a pool.
	Interval time.Duration `mapstructure:"interval"`

	_ struct{}
}

// DefaultPoolsConfig returns the default configuration.
func DefaultPoolsConfig() PoolsConfig {
	return PoolsConfig{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}
}

// minInterval is the shortest interval: servers are not scraped more often.
const minInterval = time.Second

// Check reports all invalid values.
func (c *PoolsConfig) Check(invalid Invalid) {
	if !invalid.LacksUnit("pool::interval", c.Interval) && c.Interval < minInterval {
		invalid("pool::interval", "%s is too short; write the time between two scrapes, for example 15s", c.Interval)
	}
	if len(c.GroupBy) == 0 {
		invalid("pool::group_by", "is empty; write for example [model_name], or an attribute that all servers share for one pool of all")
	}
	for i, name := range c.GroupBy {
		key := fmt.Sprintf("pool::group_by::%d", i)
		switch {
		case strings.TrimSpace(name) == "" || strings.ContainsFunc(name, isSpaceOrControl):
			invalid(key, "%q cannot be the name of an attribute; write for example model_name", name)
		case slices.Contains(c.GroupBy[:i], name):
			invalid(key, "%s is there twice; remove one", name)
		case name == "engine":
			invalid(key, "a pool adds up the engines of its servers, so it cannot be grouped by engine; remove it")
		case name == "quantile" || name == "signal" || name == "until":
			invalid(key, "%s is an attribute that the metrics of pools have already; remove it, or rename yours before this processor", name)
		case isInputLabel(name):
			invalid(key, "%s distinguishes values of one server, not servers; remove it", name)
		case name != "model_name" && letters(name) == "modelname":
			invalid(key, "%q is not what the attribute is called; write model_name", name)
		}
	}
}

func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }

// letters are those of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 'a' || r > 'z' {
			return -1
		}
		return r
	}, strings.ToLower(name))
}

// isInputLabel reports whether an attribute belongs to single metrics, as
// finished_reason does, and never to an engine.
func isInputLabel(name string) bool {
	for in := range input.NumMetrics {
		if slices.Contains(in.Define().Labels, name) {
			return true
		}
	}
	return name == "le"
}

// failureLogInterval is the least time between two warnings about refused metrics.
const failureLogInterval = time.Minute

// poolWarnings are what was logged about the pools.
type poolWarnings struct {
	tooMany, notFound bool
	// failures counts those since the last warning, which was at logged.
	failures int
	logged   time.Time
}

// tick sends the metrics of the pools. It holds no lock while it sends, and waits for
// the consumer for one interval.
func (s *Pools) tick(ctx context.Context) {
	call := &emit.Call{}
	metrics := s.Collect(ctx, call)
	if metrics.MetricCount() == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.interval)
	defer cancel()
	points := metrics.DataPointCount()
	err := s.Next.ConsumeMetrics(ctx, metrics)
	s.Telemetry.DroppedEnds(call.Done(err, refused.Share(1)))
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	s.Telemetry.ProcessorVllmPoolLostPoints.Add(ctx, int64(points))
	s.warnings.failures++
	now := s.Now()
	if now.Sub(s.warnings.logged) < failureLogInterval {
		return
	}
	s.Logger.Warn("the next component did not take the metrics of the pools",
		zap.Error(err), zap.Int("failures_since_last_message", s.warnings.failures))
	s.warnings.logged, s.warnings.failures = now, 0
}

// Collect computes the metrics of the pools for a call of the next consumer.
func (s *Pools) Collect(ctx context.Context, call *emit.Call) pmetric.Metrics {
	now := s.Now()
	out := emit.NewOutput(now.UnixNano(), 0)
	s.mu.Lock()
	sums, leftOut := s.totals.Evaluate(int64(now.Sub(s.began)))
	out.Append(&s.series, sums, now.UnixNano())
	notFound, delays := s.totals.NotFound(), maps.Clone(s.totals.Delays())
	s.mu.Unlock()
	if s.diagnosis != nil {
		// Both numbers are about the same servers.
		leftOut = max(leftOut, s.diagnose(ctx, now, delays, out))
	}
	s.warn(ctx, leftOut, notFound)

	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	s.resource.CopyTo(rm.Resource())
	rm.SetSchemaUrl(catalog.SchemaURL)
	values, ends := s.history.Put(out, call, metrics, &input.Batch{Ends: -1})
	s.Telemetry.Derived(ctx, values, ends)
	return metrics
}

// diagnose appends the condition of the pools, and returns how many servers were left out
// because there are too many pools. A server that does not answer any more counts, other
// than for the sums, until no batch at all has arrived about it for max_staleness.
func (s *Pools) diagnose(ctx context.Context, now time.Time, delays map[string]pools.Delay, out *emit.Output) (leftOut int) {
	d := s.diagnosis
	d.judging.Lock()
	defer d.judging.Unlock()
	live := func(visit func(server *Server, engines *diagnose.State)) {
		s.Each(func(server *Server) {
			if state, has := Of[*diagnosisState](server); has && now.Sub(server.Arrived) <= s.MaxStaleness {
				visit(server, &state.engines)
			}
		})
	}
	d.pools.Begin()
	live(func(server *Server, engines *diagnose.State) {
		if !d.pools.Add(engines, nameOf(server.Attributes), s.attributesOf(server)) {
			leftOut++
		}
	})
	live(func(_ *Server, engines *diagnose.State) { d.pools.Queue(engines) })
	d.pools.Delay(delays, now.UnixNano())
	values, changes := d.pools.Evaluate(&d.settings, now.UnixNano(), d.enabled)
	said := d.log.write(ctx, changes, "", pcommon.NewMap(), now)
	out.Append(&s.judged, values, now.UnixNano())
	out.Say("vllm.pool.diagnosis.severity", said)
	return leftOut
}

// nameOf is what people call a server: its instance, else its service.
func nameOf(resource pcommon.Map) string {
	return cmp.Or(Named(resource, "service.instance.id", "k8s.pod.name", "service.name"), "without a name")
}

// attributesOf returns the attributes of the pool that an engine of a server belongs to: its own, or
// those of its server.
func (s *Pools) attributesOf(server *Server) pools.AttributesOf {
	return func(to, engine []input.Attribute) []input.Attribute {
		for _, name := range s.groupBy {
			value := (&input.Group{Attributes: engine}).Value(name)
			if known, has := server.Attributes.Get(name); value == "" && has {
				value = known.AsString()
			}
			if value != "" {
				to = append(to, input.Attribute{Name: name, Value: value})
			}
		}
		return to
	}
}

// warn logs once what a user can correct.
func (s *Pools) warn(ctx context.Context, leftOut int, notFound []string) {
	if leftOut > 0 {
		s.Telemetry.ProcessorVllmPoolLeftOut.Add(ctx, int64(leftOut))
		if !s.warnings.tooMany {
			s.warnings.tooMany = true
			s.Logger.Warn(fmt.Sprintf("there are more than %d pools, and the servers of the others are left out; "+
				"write attributes in pool::group_by that many servers share", MaxPools))
		}
	}
	if len(notFound) > 0 && !s.warnings.notFound {
		s.warnings.notFound = true
		s.Logger.Warn(fmt.Sprintf("no server has an attribute %s, which pool::group_by names, and servers are grouped without it; "+
			"write an attribute of their points or of their resource", strings.Join(notFound, " or ")))
	}
}
