package vllmprocessor

import (
	"context"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
)

// markOf is what a verdict marks series with.
func markOf(verdict *diagnose.Verdict, judged bool) (mark emit.Mark) {
	if !judged {
		return emit.Mark{}
	}
	mark.Condition = verdict.Condition.String()
	if verdict.Explained {
		mark.Cause = verdict.Primary.String()
	}
	return mark
}

// mark is that of a group. What is told over several engines, or of the server
// before them, has no one condition and so no mark.
func (d *diagnosed) mark(group int) emit.Mark { return markOf(d.state.Told(group)) }

// derived writes derived values, where the configuration wants it under a resource
// of their own that says how the server is.
func (p *vllmProcessor) derived(ctx context.Context, values []derive.Value, batch *collect.Batch, r *resource, out *output) {
	at, d := r.state.Time(), r.diagnosed
	if p.diagnosis == nil || p.diagnosis.on != OnResource {
		p.add(ctx, out, section{memory: &r.memory, points: r.memory.Write(values, at, batch.Time)})
		return
	}
	// The first part of a batch that writes something decides for all of it, and a
	// batch that only says what has ended changes nothing.
	if now := markOf(d.state.Worst()); now != d.beside && at == batch.Time && at != d.besideOf {
		p.add(ctx, out, section{memory: &r.memory, points: r.memory.Write(nil, at, at), mark: d.beside})
		d.beside = now
	}
	if p.add(ctx, out, section{memory: &r.memory, points: r.memory.Write(values, at, batch.Time), mark: d.beside}) > 0 {
		d.besideOf = at
	}
}
