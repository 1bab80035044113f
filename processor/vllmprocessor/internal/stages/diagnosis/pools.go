package diagnosis

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/delivery"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stage"
)

// Pools diagnoses pools of servers from the diagnosis of their engines.
type Pools struct {
	stage  *Stage
	pools  fleet.Pools
	series delivery.Series
}

// NewPools returns the diagnosis of at most so many pools.
func (s *Stage) NewPools(limit int) *Pools {
	return &Pools{stage: s, pools: fleet.Pools{MaxPools: limit}}
}

// Append writes in which condition the pools are, and logs what has changed. each calls
// its visitor for every server that counts; poolOf returns the attributes of the pool of
// an engine. It returns how many servers were left out because there are too many pools.
func (p *Pools) Append(
	ctx context.Context, now time.Time, resource pcommon.Map, out *delivery.Output,
	each func(visit func(server *stage.Server)), poolOf func(engine []collect.Attribute, server *stage.Server) []collect.Attribute,
) (leftOut int) {
	p.pools.Begin()
	each(func(server *stage.Server) {
		state, has := stage.Of[*state](server)
		if has && !p.pools.Add(&state.engines, func(of []collect.Attribute) []collect.Attribute { return poolOf(of, server) }) {
			leftOut++
		}
	})
	each(func(server *stage.Server) {
		if state, has := stage.Of[*state](server); has {
			p.pools.Queue(&state.engines)
		}
	})
	values, changes := p.pools.Evaluate(&p.stage.settings, now.UnixNano(), p.stage.enabled)
	p.stage.logChanges(ctx, changes, resource, now)
	out.Append(&p.series, values, now.UnixNano())
	return leftOut
}
