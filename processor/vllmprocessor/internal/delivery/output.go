package delivery

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// section is what is written for some series at one time.
type section struct {
	series *emit.Memory
	points []emit.Point
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
	// repeated are the unconfirmed ends in it: of earlier batches, and its own.
	repeated []*unconfirmed
}

// NewOutput returns an empty output for a time in Unix nanoseconds and the fingerprint
// of a batch.
func NewOutput(time int64, fingerprint uint64, call *Call) *Output {
	return &Output{time: time, print: fingerprint, call: call}
}

// Append writes the values of some series, which hold for a time in Unix nanoseconds,
// and the ends of those that have no value any more.
func (o *Output) Append(series *emit.Memory, values []derive.Value, of int64) {
	o.add(section{series: series, points: series.Write(values, of, o.time)})
}

// End ends series under the attributes that their resource had before.
func (o *Output) End(series *emit.Memory, attributes pcommon.Map) {
	o.add(section{series: series, points: series.Write(nil, o.time, o.time), attributes: attributes})
}

func (o *Output) add(s section) {
	if len(s.points) == 0 {
		return
	}
	o.sections = append(o.sections, s)
	ends := emit.Ends(s.points)
	o.values += len(s.points) - ends
	o.ends += ends
}

// Empty reports whether nothing was written.
func (o *Output) Empty() bool { return len(o.sections) == 0 }

// Counts returns the number of values and of ends.
func (o *Output) Counts() (values, ends int) { return o.values, o.ends }

// Resend makes the output a part of another call.
func (o *Output) Resend(call *Call) {
	o.call = call
	for _, u := range o.repeated {
		u.calls = append(u.calls, call)
	}
}

// Put appends an output to the metrics that its batch belongs to. version is that of
// the scope.
func (o *Output) Put(metrics pmetric.Metrics, batch *input.Batch, version string) {
	type destination struct {
		attributes pcommon.Map
		added      pmetric.MetricSlice
	}
	var all []*destination
	for _, s := range o.sections {
		at := slices.IndexFunc(all, func(d *destination) bool { return d.attributes == s.attributes })
		if at < 0 {
			at = len(all)
			all = append(all, &destination{s.attributes, pmetric.NewMetricSlice()})
		}
		emit.Put(s.points, o.time, all[at].added)
	}
	for _, d := range all {
		resource := resourceOf(d.attributes, batch, metrics)
		if d.added.Len() == 0 {
			continue
		}
		scope := resource.ScopeMetrics().AppendEmpty()
		scope.Scope().SetName(metadata.ScopeName)
		scope.Scope().SetVersion(version)
		d.added.MoveAndAppendTo(scope.Metrics())
	}
}

// resourceOf returns the resource in metrics that points belong to, and adds it where
// it is missing.
func resourceOf(attributes pcommon.Map, batch *input.Batch, metrics pmetric.Metrics) pmetric.ResourceMetrics {
	source := metrics.ResourceMetrics().At(batch.Source)
	if attributes == (pcommon.Map{}) {
		return source
	}
	if batch.Ends >= 0 {
		if left := metrics.ResourceMetrics().At(batch.Ends); left.Resource().Attributes().Equal(attributes) {
			return left
		}
	}
	to := metrics.ResourceMetrics().AppendEmpty()
	attributes.CopyTo(to.Resource().Attributes())
	to.SetSchemaUrl(source.SchemaUrl())
	return to
}
