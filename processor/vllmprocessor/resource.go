package vllmprocessor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// resource is what the processor keeps of one resource: in most cases a server.
type resource struct {
	mu sync.Mutex
	// Server is what the stages know.
	stages.Server
	// share is its part of max_series, engines that of the engines.
	share, engines *quota.Share
	// lacked counts the first batches with series beyond its share.
	lacked int
	// parts has the series of each stage.
	parts   []part
	history emit.History

	// batches counts the first batches, for the warning about the window.
	batches int
	defects judgedServer
	// defaultBounds is true once they were logged.
	defaultBounds bool
	// trimmed is when the window was trimmed last.
	trimmed time.Time
	// behind is when a batch arrived that was out of order because the newest is ahead
	// of our clock, and behindTime its time in Unix nanoseconds. Until strict, points that
	// are ahead are not used, because some were wrong.
	behind     time.Time
	behindTime int64
	strict     time.Time
	// forgotten is true once it has left the processor's map.
	forgotten bool
}

// part is what a resource has for each stage.
type part struct {
	series emit.Memory
	// derived is when another processor was last seen to derive the same.
	derived time.Time
}

// acquire returns the state of a resource with its lock held.
func (p *vllmProcessor) acquire(key string, now time.Time) *resource {
	for {
		p.mu.Lock()
		r := p.resources[key]
		if r == nil {
			r = &resource{
				Server: stages.Server{Key: key, Window: window.NewResource(p.window), Attributes: pcommon.NewMap(), Arrived: now},
				share:  p.series.Open(), engines: p.engines.Open(), parts: make([]part, len(p.stages)),
			}
			p.resources[key] = r
			p.warnShortLived(key, now)
		}
		p.mu.Unlock()
		r.mu.Lock()
		if !r.forgotten {
			return r
		}
		r.mu.Unlock()
	}
}

// release unlocks a resource. It forgets one without any series.
func (p *vllmProcessor) release(r *resource) {
	defer r.mu.Unlock()
	if r.Window.Series() == 0 {
		p.forget(r)
	}
}

func (r *resource) useShares() {
	r.share.Set(r.Window.Units())
	r.engines.Set(r.Window.Engines())
}

// forget removes a resource whose lock is held.
func (p *vllmProcessor) forget(r *resource) {
	p.mu.Lock()
	delete(p.resources, r.Key)
	r.forgotten = true
	p.mu.Unlock()
	r.share.Close()
	r.engines.Close()
	p.telemetry.DroppedEnds(r.history.Close())
	for _, state := range r.States {
		state.End()
	}
}

// each calls visit for every resource, with its lock held.
func (p *vllmProcessor) each(visit func(server *stages.Server)) {
	p.mu.Lock()
	all := maps.Clone(p.resources)
	p.mu.Unlock()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		r := all[key]
		r.mu.Lock()
		if !r.forgotten {
			visit(&r.Server)
		}
		r.mu.Unlock()
	}
}

func (p *vllmProcessor) numResources() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.resources)
}

// expireSilent forgets resources that have been silent for max_staleness. It looks
// a few times within that time.
func (p *vllmProcessor) expireSilent(ctx context.Context, now time.Time) {
	p.accelerators.Expire(now.UnixNano())
	p.mu.Lock()
	if now.Sub(p.expiredAt) < p.config.MaxStaleness/4 {
		p.mu.Unlock()
		return
	}
	p.expiredAt = now
	var silent []*resource
	for _, r := range p.resources {
		if now.Sub(r.Arrived) > p.config.MaxStaleness {
			silent = append(silent, r)
		}
	}
	p.mu.Unlock()
	for _, r := range silent {
		// One that is locked has a batch now.
		if !r.mu.TryLock() {
			continue
		}
		if !r.forgotten && now.Sub(r.Arrived) > p.config.MaxStaleness {
			p.mu.Lock()
			p.recordShortLived(r, now)
			p.mu.Unlock()
			p.forget(r)
			p.telemetry.ProcessorVllmExpiredResources.Add(ctx, 1)
		}
		r.mu.Unlock()
	}
}

const (
	// timesOfEngines is for how many times of one request values are derived from a
	// server with a single engine. A server with n engines has the n-th part of it, because
	// each time brings values of each engine. So a server of eight engines that is scraped
	// each 15 s can be an hour late.
	timesOfEngines = 2000
	// leastTimes is for how many times values are derived from any server.
	leastTimes = 3
)

// times is for how many of the newest times of one request values are derived.
func (r *resource) times() int {
	return max(timesOfEngines/max(r.Window.Engines(), 1), leastTimes)
}

// derivedElsewhere finds what another vllm processor has derived before this one, in the
// same pipeline or in another collector, by the name of its scope: for each resource
// which stages. A component cannot ask the service what else is in its pipeline, so this
// is known with the first metrics only.
func (p *vllmProcessor) derivedElsewhere(metrics pmetric.Metrics) map[string][]bool {
	var all map[string][]bool
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			if scope.Scope().Name() != metadata.ScopeName || identity.Size(rm.Resource().Attributes()) == identity.Unlimited {
				continue
			}
			if all == nil {
				all = map[string][]bool{}
			}
			key := identity.Of(rm.Resource().Attributes())
			if all[key] == nil {
				all[key] = make([]bool, len(p.stages))
			}
			for _, metric := range scope.Metrics().All() {
				if i := slices.IndexFunc(p.stages, func(s stages.Stage) bool { return s.Derives(metric.Name()) }); i >= 0 {
					all[key][i] = true
				}
			}
		}
	}
	return all
}

// deriveElsewhere records what another processor derives of a resource. That processor
// continues the same series, so they neither end nor are written twice.
func (p *vllmProcessor) deriveElsewhere(r *resource, stages []bool, now time.Time) {
	for i, derived := range stages {
		if !derived {
			continue
		}
		r.parts[i].derived = now
		r.parts[i].series.Forget()
		p.warnOnce(aboutDerived, pcommon.Map{}, "another vllm processor, in this pipeline or in the sending collector, has already derived metrics of the same servers; "+
			"this one does not derive them again, and its settings for them have no effect; remove one of the two processors")
	}
}

// elsewhere reports whether another processor derives what a stage derives.
func (of *part) elsewhere(now time.Time, staleness time.Duration) bool {
	return !of.derived.IsZero() && now.Sub(of.derived) <= staleness
}
