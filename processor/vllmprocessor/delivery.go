package vllmprocessor

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
)

// delivery is the outcome of one call of the next consumer. A nil delivery counts
// as taken.
type delivery struct{ outcome atomic.Int32 }

// The outcomes.
const (
	underway int32 = iota
	taken
	refused
)

func (d *delivery) is(outcome int32) bool {
	if d == nil {
		return outcome == taken
	}
	return d.outcome.Load() == outcome
}

func (d *delivery) done(err error) {
	if err != nil {
		d.outcome.Store(refused)
	} else {
		d.outcome.Store(taken)
	}
}

type deliveryKey struct{}

// delivering is the processor as the pipeline sees it. It reports to process
// whether the next consumer took the metrics; no lock is held meanwhile.
type delivering struct{ processor.Metrics }

// ConsumeMetrics processes metrics and passes them on.
func (p delivering) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	d := &delivery{}
	err := p.Metrics.ConsumeMetrics(context.WithValue(ctx, deliveryKey{}, d), metrics)
	d.done(err)
	return err
}

func deliveryOf(ctx context.Context) *delivery {
	d, _ := ctx.Value(deliveryKey{}).(*delivery)
	return d
}

// section is what one memory writes in a batch.
type section struct {
	memory *emit.Memory
	points []emit.Point
	// attributes are those of the resource that the points belong to; zero for the
	// resource that the batch came with.
	attributes pcommon.Map
	// mark is added to the attributes of the resource, where the configuration wants
	// it.
	mark emit.Mark
}

// output is what was written for a batch. It is kept for the case that the batch
// is sent again.
type output struct {
	time     int64
	print    uint64
	sections []section
	// sent is the newest call that had it.
	sent *delivery
	// repeated are the unconfirmed ends of earlier batches that it has, and its own.
	repeated []*unconfirmed
}

func (o *output) add(s section) (values, ends int) {
	if len(s.points) == 0 {
		return 0, 0
	}
	o.sections = append(o.sections, s)
	ends = emit.Ends(s.points)
	return len(s.points) - ends, ends
}

// unconfirmed are ends of which it is not known that a consumer took them.
type unconfirmed struct {
	memory *emit.Memory
	// attributes and mark are those of the resource that they were written under.
	attributes pcommon.Map
	mark       emit.Mark
	points     []emit.Point
	sent       []*delivery
}

// settled reports whether a consumer took the ends. It forgets the calls that
// failed.
func (u *unconfirmed) settled() bool {
	if slices.ContainsFunc(u.sent, func(d *delivery) bool { return d.is(taken) }) {
		return true
	}
	u.sent = slices.DeleteFunc(u.sent, func(d *delivery) bool { return d.is(refused) })
	return false
}

// ended returns the points whose series do not live again. Outputs have the points,
// too, so the slice itself is not changed.
func (u *unconfirmed) ended(again emit.Live) []emit.Point {
	live := func(point emit.Point) bool { return again.Has(&point) }
	if !slices.ContainsFunc(u.points, live) {
		return u.points
	}
	return slices.DeleteFunc(slices.Clone(u.points), live)
}

const (
	// keptTimes is of how many times the outputs of a resource are kept after they were
	// taken: a fan-out before this processor may send a batch again because another
	// consumer refused it. A batch may come in several parts.
	keptTimes = 2
	// keptOutputs and keptPoints bound the outputs of these times and those that were
	// not taken. A sender has ten calls under way by default.
	keptOutputs = 12
	keptPoints  = 1000
	// keptFor is how long a sender tries again by default.
	keptFor = 5 * time.Minute
	// maxUnconfirmed bounds the unconfirmed ends of a resource.
	maxUnconfirmed = 10_000
)

// history is what was written for the newest batches of a resource.
type history struct {
	outputs     []*output
	unconfirmed []*unconfirmed
}

// find returns the output of a batch that was there before.
func (h *history) find(time int64, fingerprint uint64) *output {
	for _, o := range h.outputs {
		if o.time == time && o.print == fingerprint {
			return o
		}
	}
	return nil
}

// refused returns the outputs of a time that no consumer took.
func (h *history) refused(time int64) (all []*output) {
	for _, o := range h.outputs {
		if o.time == time && o.sent.is(refused) {
			all = append(all, o)
		}
	}
	return all
}

// keep keeps a new output and forgets old ones.
func (h *history) keep(o *output) {
	h.outputs = append(h.outputs, o)
	newer, points, times, last := 0, 0, 0, int64(0)
	for i, old := range slices.Backward(h.outputs) {
		for _, s := range old.sections {
			points += len(s.points)
		}
		if old.time != last {
			times, last = times+1, old.time
		}
		newer++
		switch {
		case newer <= keptTimes:
		case newer > keptOutputs, points > keptPoints, o.time-old.time > int64(keptFor), times > keptTimes && old.sent.is(taken):
			h.outputs = slices.Delete(h.outputs, i, i+1)
		}
	}
}

// again adds what was written for a batch before to the same batch that is sent
// again.
func (p *vllmProcessor) again(ctx context.Context, outputs []*output, batch *collect.Batch, metrics pmetric.Metrics) {
	for _, o := range outputs {
		o.sent = deliveryOf(ctx)
		for _, u := range o.repeated {
			u.sent = append(u.sent, o.sent)
		}
		values, ends := 0, 0
		for _, s := range o.sections {
			n := emit.Ends(s.points)
			values, ends = values+len(s.points)-n, ends+n
		}
		p.telemetry.derived(ctx, values, ends)
		p.put(o, batch, metrics)
	}
}

// repeat adds the ends of earlier batches that no consumer has taken, as far as is
// known, and remembers those of this batch. What has a value again has not ended.
func (p *vllmProcessor) repeat(ctx context.Context, r *resource, o *output) {
	h := &r.history
	mine := len(o.sections)
	count := 0
	live := map[*emit.Memory]emit.Live{}
	h.unconfirmed = slices.DeleteFunc(h.unconfirmed, func(u *unconfirmed) bool {
		if u.settled() {
			return true
		}
		here := u.attributes == r.attributes
		if here && u.mark == r.markOf(u.memory) {
			if live[u.memory] == nil {
				live[u.memory] = u.memory.Live()
			}
			u.points = u.ended(live[u.memory])
		}
		if len(u.points) == 0 {
			return true
		}
		if slices.Contains(u.sent, o.sent) {
			// Another batch of the same request has them.
			o.repeated = append(o.repeated, u)
			count += len(u.points)
			return false
		}
		repeated := section{memory: u.memory, points: u.points, mark: u.mark}
		if !here {
			repeated.attributes = u.attributes
		}
		_, ends := o.add(repeated)
		p.telemetry.derived(ctx, 0, ends)
		u.sent = append(u.sent, o.sent)
		o.repeated = append(o.repeated, u)
		count += ends
		return false
	})
	if o.sent == nil {
		return
	}
	for _, s := range o.sections[:mine] {
		first := slices.IndexFunc(s.points, func(point emit.Point) bool { return point.End })
		if first < 0 {
			continue
		}
		u := &unconfirmed{memory: s.memory, attributes: s.attributes, mark: s.mark, points: s.points[first:], sent: []*delivery{o.sent}}
		if s.attributes == (pcommon.Map{}) {
			u.attributes = r.attributes
		}
		h.unconfirmed = append(h.unconfirmed, u)
		o.repeated = append(o.repeated, u)
		count += len(u.points)
	}
	for count > maxUnconfirmed {
		dropped := len(h.unconfirmed[0].points)
		h.unconfirmed = slices.Delete(h.unconfirmed, 0, 1)
		count -= dropped
		p.telemetry.ProcessorVllmDroppedEnds.Add(ctx, int64(dropped))
	}
}

// put writes an output to the metrics that its batch came with.
func (p *vllmProcessor) put(o *output, batch *collect.Batch, metrics pmetric.Metrics) {
	type destination struct {
		attributes pcommon.Map
		mark       emit.Mark
		added      pmetric.MetricSlice
	}
	var all []*destination
	for _, s := range o.sections {
		at := slices.IndexFunc(all, func(d *destination) bool { return d.attributes == s.attributes && d.mark == s.mark })
		if at < 0 {
			at = len(all)
			all = append(all, &destination{s.attributes, s.mark, pmetric.NewMetricSlice()})
		}
		emit.Put(s.points, o.time, all[at].added)
	}
	for _, d := range all {
		p.append(p.destination(d.attributes, d.mark, batch, metrics), d.added)
	}
}

// destination is the resource in a payload that points belong to; it is added
// where it is not there.
func (p *vllmProcessor) destination(attributes pcommon.Map, mark emit.Mark, batch *collect.Batch, metrics pmetric.Metrics) pmetric.ResourceMetrics {
	source := metrics.ResourceMetrics().At(batch.Source)
	if attributes == (pcommon.Map{}) {
		if mark == (emit.Mark{}) {
			return source
		}
		attributes = source.Resource().Attributes()
	} else if batch.Ends >= 0 && mark == (emit.Mark{}) {
		if left := metrics.ResourceMetrics().At(batch.Ends); left.Resource().Attributes().Equal(attributes) {
			return left
		}
	}
	to := metrics.ResourceMetrics().AppendEmpty()
	attributes.CopyTo(to.Resource().Attributes())
	to.SetSchemaUrl(source.SchemaUrl())
	if mark != (emit.Mark{}) {
		to.Resource().Attributes().RemoveIf(func(name string, _ pcommon.Value) bool {
			return name == "vllm.diagnosis.condition" || name == "vllm.diagnosis.cause"
		})
		mark.Put(to.Resource().Attributes())
	}
	return to
}
