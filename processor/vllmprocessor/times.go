package vllmprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

const (
	// timesOfEngines is for how many times of one request values are derived from a
	// server with a single engine. One with n engines has the n-th part of it, because
	// each time brings values of each engine, whatever the request says of them.
	// A server of eight engines that is scraped each 15 s can so be an hour late.
	timesOfEngines = 2000
	// leastTimes is for how many times values are derived from any server.
	leastTimes = 3
)

// times is for how many of the newest times of one request values are derived.
func (r *resource) times() int {
	return max(timesOfEngines/max(r.state.Engines(), 1), leastTimes)
}

// skip passes on what must not wait for a later time of the same request: the ends
// under the attributes that the resource had before.
func (p *vllmProcessor) skip(
	ctx context.Context, batch *collect.Batch, r *resource, metrics pmetric.Metrics, attributes pcommon.Map, out *output,
) {
	p.telemetry.ProcessorVllmSkippedTimes.Add(ctx, 1)
	p.warnTimes(r, attributes)
	if len(out.sections) == 0 {
		return
	}
	p.repeat(ctx, r, out)
	p.put(out, batch, metrics)
	r.history.keep(out)
}
