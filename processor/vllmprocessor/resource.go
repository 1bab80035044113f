package vllmprocessor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// resource is the state of one resource.
type resource struct {
	mu    sync.Mutex
	state *window.Resource
	// share is its part of max_series, engines that of the engines.
	share, engines *quota.Share
	// memory is what its derived series said last.
	memory emit.Memory
	// measured is nil without objectives.
	measured *measured
	// diagnosed is nil before the first batch, and without a diagnosis.
	diagnosed *diagnosed
	history   history
	batches   int
	// trimmed is when its state was trimmed last.
	trimmed time.Time
	// attributes are those that its derived series were written under last. The map
	// is never changed.
	attributes pcommon.Map
	// behind is when a batch came that was out of order because the newest is ahead of
	// our clock, and behindTime its time. Until strict points that are ahead are not
	// used, because it was seen that they can be wrong.
	behind     time.Time
	behindTime int64
	strict     time.Time
	// before is when another processor was seen last that derives each kind.
	before [numKinds]time.Time
	// forgotten is true once it is not in the processor's map any more.
	forgotten bool

	// arrived is when its last batch came, by our clock. It is written with the
	// processor's lock held as well, so that either lock is enough to read it.
	arrived time.Time
}

// acquire returns the state of a resource with its lock held.
func (p *vllmProcessor) acquire(key string, now time.Time) *resource {
	for {
		p.mu.Lock()
		r := p.resources[key]
		if r == nil {
			r = &resource{state: window.NewResource(p.window), share: p.series.Open(), engines: p.engines.Open(), attributes: pcommon.NewMap(), arrived: now}
			p.resources[key] = r
			p.warnLapse(key, now)
		}
		p.mu.Unlock()
		r.mu.Lock()
		if !r.forgotten {
			return r
		}
		r.mu.Unlock()
	}
}

// release gives the lock back. A resource without any series is not kept.
func (p *vllmProcessor) release(key string, r *resource) {
	defer r.mu.Unlock()
	if r.state.Series() == 0 {
		p.forget(key, r)
	}
}

// hold says what the resource takes of what is shared.
func (r *resource) hold() {
	r.share.Set(r.state.Units())
	r.engines.Set(r.state.Engines())
}

// forget takes a resource whose lock is held out of the processor, and keeps what
// is worth it for the case that it comes back.
func (p *vllmProcessor) forget(key string, r *resource) {
	p.mu.Lock()
	delete(p.resources, key)
	r.forgotten = true
	p.mu.Unlock()
	r.share.Close()
	r.engines.Close()
	p.objectives.expire(r)
	p.diagnosis.expire(r)
}

// each calls visit for every resource that is kept, with its lock held.
func (p *vllmProcessor) each(visit func(key string, r *resource)) {
	p.mu.Lock()
	all := maps.Clone(p.resources)
	p.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r := all[key]
		r.mu.Lock()
		if !r.forgotten {
			visit(key, r)
		}
		r.mu.Unlock()
	}
}

// memories are those of all that is written of a resource.
func (r *resource) memories() []*emit.Memory {
	all := []*emit.Memory{&r.memory}
	if r.measured != nil {
		all = append(all, &r.measured.memory)
	}
	if r.diagnosed != nil {
		all = append(all, &r.diagnosed.memory)
	}
	return all
}

// markOf is the mark of the resource that a memory writes to now.
func (r *resource) markOf(memory *emit.Memory) emit.Mark {
	if r.diagnosed == nil || memory != &r.memory {
		return emit.Mark{}
	}
	return r.diagnosed.beside
}

// sweep forgets resources that have been silent for too long. It looks a few
// times within that time.
func (p *vllmProcessor) sweep(ctx context.Context, now time.Time) {
	p.mu.Lock()
	if now.Sub(p.swept) < p.config.MaxStaleness/4 {
		p.mu.Unlock()
		return
	}
	p.swept = now
	silent := map[string]*resource{}
	for key, r := range p.resources {
		if now.Sub(r.arrived) > p.config.MaxStaleness {
			silent[key] = r
		}
	}
	p.mu.Unlock()
	for key, r := range silent {
		// One that is at work is not silent.
		if r.mu.TryLock() {
			p.expire(ctx, key, r, now)
			r.mu.Unlock()
		}
	}
}

// expire forgets a resource whose lock is held, if it is still silent.
func (p *vllmProcessor) expire(ctx context.Context, key string, r *resource, now time.Time) {
	if r.forgotten || now.Sub(r.arrived) <= p.config.MaxStaleness {
		return
	}
	p.mu.Lock()
	p.lapse(key, r, now)
	p.mu.Unlock()
	p.forget(key, r)
	p.telemetry.ProcessorVllmExpiredResources.Add(ctx, 1)
	if ends := r.history.pending(); ends > 0 {
		p.telemetry.ProcessorVllmDroppedEnds.Add(ctx, int64(ends))
	}
}
