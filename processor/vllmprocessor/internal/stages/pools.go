package stages

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/delivery"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
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
	// attributes is for reuse.
	attributes []string

	// cancel ends the call of the next consumer that is under way, stop the calls.
	cancel context.CancelFunc
	stop   func()

	// What follows belongs to tick. diagnosis is nil where it is switched off.
	series    emit.Memory
	diagnosis *poolDiagnosis
	history   delivery.History
	warnings  poolWarnings
}

// New returns the stage. engines is the diagnosis of the servers' engines; nil where it
// is switched off.
func NewPools(config *PoolsConfig, settings *derive.Settings, engines *Diagnosis, p *Processor) *Pools {
	s := &Pools{
		Processor: p,
		groupBy:   config.GroupBy,
		interval:  config.Interval,
		resource:  resourceOf(p.Settings),
		began:     p.Now(),
		totals: pools.NewTotals(pools.Settings{
			GroupBy: config.GroupBy, MaxPools: MaxPools, MaxStaleness: p.MaxStaleness, Enabled: p.Enabled, Derive: settings,
		}),
		attributes: make([]string, len(config.GroupBy)),
	}
	if engines != nil {
		s.diagnosis = engines.NewPools(MaxPools)
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
	patience := time.NewTimer(shutdownPatience)
	defer patience.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-patience.C:
	}
	s.Logger.Warn("the next component still holds the metrics of the pools; the shutdown continues without it")
	return nil
}

// Derives returns false: a pool has a resource of its own.
func (*Pools) Derives(string) bool { return false }

// Begin returns the state of a new server.
func (s *Pools) Begin(server *Server, _ *emit.Memory) State {
	return &poolState{stage: s, server: server}
}

// state adds one server to its pools.
type poolState struct {
	nothingToKeep
	stage  *Pools
	server *Server
}

// Observe takes the newest batch of a server into its pools.
func (s *poolState) Observe(context.Context, *Batch) {
	p := s.stage
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, name := range p.groupBy {
		p.attributes[i] = ""
		if value, ok := s.server.Attributes.Get(name); ok {
			p.attributes[i] = value.AsString()
		}
	}
	p.totals.Observe(s.server.Key, s.server.Window, p.attributes, int64(s.server.Arrived.Sub(p.began)))
}

// Append does nothing: the pools emit at an interval.
func (*poolState) Append(context.Context, *delivery.Output) {}
