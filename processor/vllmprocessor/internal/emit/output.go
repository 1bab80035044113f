package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// section is what is written for some series at one time.
type section struct {
	series *Memory
	points []Point
	// attributes are those of the resource that the points belong to; zero for the
	// resource of the batch.
	attributes pcommon.Map
}

// Output is what is written for a batch. History keeps it, in case the batch is sent
// again.
type Output struct {
	time         int64
	print        uint64
	sections     []section
	values, ends int
	// call is the newest call that has it.
	call *Call
}

// NewOutput returns an empty output for a time in Unix nanoseconds and the fingerprint
// of a batch.
func NewOutput(time int64, fingerprint uint64) *Output {
	return &Output{time: time, print: fingerprint}
}

// Append writes the values of some series, which hold for a time in Unix nanoseconds,
// and the ends of those that have no value any more.
func (o *Output) Append(series *Memory, values []derive.Value, of int64) {
	o.add(section{series: series, points: series.Write(values, of, o.time)})
}

// End ends series under the attributes that their resource had before.
func (o *Output) End(series *Memory, attributes pcommon.Map) {
	o.add(section{series: series, points: series.Write(nil, o.time, o.time), attributes: attributes})
}

func (o *Output) add(s section) {
	if len(s.points) == 0 {
		return
	}
	o.sections = append(o.sections, s)
	for i := range s.points {
		if s.points[i].End {
			o.ends++
		} else {
			o.values++
		}
	}
}

// Empty reports whether nothing was written.
func (o *Output) Empty() bool { return len(o.sections) == 0 }

// write returns the metrics of an output. The first resource is that of the batch, without
// its attributes.
func (o *Output) write(version string) pmetric.Metrics {
	written := pmetric.NewMetrics()
	all := written.ResourceMetrics()
	all.AppendEmpty()
	for _, s := range o.sections {
		at := 0
		if s.attributes != (pcommon.Map{}) {
			at = 1
			for at < all.Len() && !all.At(at).Resource().Attributes().Equal(s.attributes) {
				at++
			}
			if at == all.Len() {
				s.attributes.CopyTo(all.AppendEmpty().Resource().Attributes())
			}
		}
		scopes := all.At(at).ScopeMetrics()
		if scopes.Len() == 0 {
			scope := scopes.AppendEmpty().Scope()
			scope.SetName(metadata.ScopeName)
			scope.SetVersion(version)
		}
		put(s.points, o.time, scopes.At(0).Metrics())
	}
	return written
}

// move moves what write returned to the metrics that the batch belongs to.
func move(written, metrics pmetric.Metrics, batch *input.Batch) {
	for i, rm := range written.ResourceMetrics().All() {
		to := metrics.ResourceMetrics().At(batch.Source)
		if i > 0 {
			to = resourceOf(rm.Resource().Attributes(), batch, metrics)
		}
		rm.ScopeMetrics().MoveAndAppendTo(to.ScopeMetrics())
	}
}

// resourceOf returns the former resource in metrics that points belong to, and adds it
// where it is missing.
func resourceOf(attributes pcommon.Map, batch *input.Batch, metrics pmetric.Metrics) pmetric.ResourceMetrics {
	if batch.Ends >= 0 {
		if left := metrics.ResourceMetrics().At(batch.Ends); left.Resource().Attributes().Equal(attributes) {
			return left
		}
	}
	to := metrics.ResourceMetrics().AppendEmpty()
	attributes.CopyTo(to.Resource().Attributes())
	to.SetSchemaUrl(metrics.ResourceMetrics().At(batch.Source).SchemaUrl())
	return to
}
