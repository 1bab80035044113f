package vllmprocessor

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

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

// write writes derived values to added, or where the configuration wants it to a
// resource beside the input's that says how the server is.
func (p *vllmProcessor) write(
	ctx context.Context, values []derive.Value, batch *collect.Batch, r *resource, metrics pmetric.Metrics, added pmetric.MetricSlice,
) {
	at := r.state.Time()
	if p.diagnosis == nil || p.diagnosis.on != OnResource {
		points, ends := r.memory.Write(values, at, batch.Time, r.state.Attributes, added)
		p.telemetry.derived(ctx, points, ends)
		return
	}
	source, d := metrics.ResourceMetrics().At(batch.Source), r.diagnosed
	// The first part of a batch that writes something decides for all of it, and a
	// batch that only says what has ended changes nothing.
	if now := markOf(d.state.Worst()); now != d.beside && at == batch.Time && at != d.besideOf {
		ended := pmetric.NewMetricSlice()
		_, ends := r.memory.Write(nil, at, at, r.state.Attributes, ended)
		p.telemetry.derived(ctx, 0, ends)
		p.appendBeside(metrics, source, d.beside, ended)
		d.beside = now
	}
	beside := pmetric.NewMetricSlice()
	points, ends := r.memory.Write(values, at, batch.Time, r.state.Attributes, beside)
	p.telemetry.derived(ctx, points, ends)
	if points > 0 {
		d.besideOf = at
	}
	p.appendBeside(metrics, source, d.beside, beside)
}

// endDerived ends the derived series under the attributes of a resource that had
// them until now.
func (p *vllmProcessor) endDerived(at int64, r *resource, metrics pmetric.Metrics, left pmetric.ResourceMetrics, added pmetric.MetricSlice) (ends int) {
	if p.diagnosis == nil || p.diagnosis.on != OnResource || r.diagnosed == nil {
		_, ends = r.memory.Write(nil, at, at, r.state.Attributes, added)
		return ends
	}
	beside := pmetric.NewMetricSlice()
	_, ends = r.memory.Write(nil, at, at, r.state.Attributes, beside)
	p.appendBeside(metrics, left, r.diagnosed.beside, beside)
	return ends
}

// appendBeside adds derived metrics as a resource of their own, that of the input
// with a mark. Without a mark they go to the input's.
func (p *vllmProcessor) appendBeside(metrics pmetric.Metrics, source pmetric.ResourceMetrics, mark emit.Mark, added pmetric.MetricSlice) {
	if mark == (emit.Mark{}) || added.Len() == 0 {
		p.append(source, added)
		return
	}
	to := metrics.ResourceMetrics().AppendEmpty()
	source.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(source.SchemaUrl())
	attributes := to.Resource().Attributes()
	attributes.RemoveIf(func(name string, _ pcommon.Value) bool {
		return name == "vllm.diagnosis.condition" || name == "vllm.diagnosis.cause"
	})
	mark.Put(attributes)
	p.append(to, added)
}
