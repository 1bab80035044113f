package emit

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

const (
	// keptTimes is for how many times outputs are kept after they were accepted: a
	// fan-out before this processor may send a batch again because another consumer
	// refused it. A batch may arrive in several parts.
	keptTimes = 2
	// keptOutputs and keptPoints bound the outputs of these times and those that were
	// not accepted. A sender has ten calls under way by default.
	keptOutputs = 12
	keptPoints  = 1000
	// keptFor is how long a sender retries by default.
	keptFor = 5 * time.Minute
)

// History has what was written for the newest batches of one server. Its zero value is
// empty.
type History struct {
	outputs []*Output
	ends    refused.Ledger
}

// Find returns the output of a batch that was processed before; nil for a new one.
func (h *History) Find(time int64, fingerprint uint64) *Output {
	for _, o := range h.outputs {
		if o.time == time && o.print == fingerprint {
			return o
		}
	}
	return nil
}

// Refused returns the outputs of a time that no consumer accepted.
func (h *History) Refused(time int64) (all []*Output) {
	for _, o := range h.outputs {
		if o.time == time && o.call.is(rejected) {
			all = append(all, o)
		}
	}
	return all
}

// Keep keeps a new output and drops old ones.
func (h *History) Keep(o *Output) {
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
		case newer > keptOutputs, points > keptPoints, o.time-old.time > int64(keptFor), times > keptTimes && old.call.is(accepted):
			h.outputs = slices.Delete(h.outputs, i, i+1)
		}
	}
}

// Put appends an output to the metrics that its batch belongs to, for a call of the next
// consumer, and returns the number of values and of ends. With the newest time go the ends
// that were refused before. An older output is the same as the first time, because what has
// ended in it may live again.
func (h *History) Put(o *Output, call *Call, metrics pmetric.Metrics, batch *input.Batch) (values, ends int) {
	o.call = call
	written := o.write()
	ends = o.ends
	if n := len(h.outputs); (n == 0 || o.time >= h.outputs[n-1].time) && (o.ends > 0 || !h.ends.Idle()) {
		metrics.ResourceMetrics().At(batch.Source).Resource().CopyTo(written.ResourceMetrics().At(0).Resource())
		sent := h.ends.Send(pcommon.Timestamp(o.time), written)
		if call == nil {
			sent.Done(nil, 0)
		} else {
			call.sent = append(call.sent, sent)
		}
		ends = written.DataPointCount() - o.values
	}
	move(written, metrics, batch)
	return o.values, ends
}

// Close ends the history of a server and returns the number of its ends that were refused. What
// is refused later is dropped.
func (h *History) Close() (ends int) { return h.ends.Close().Count() }

// Call is one call of the next consumer. A nil Call counts as accepted.
type Call struct {
	outcome atomic.Int32
	// sent are the ends in it.
	sent []*refused.Sent
}

// The outcomes.
const (
	underway int32 = iota
	accepted
	rejected
)

func (c *Call) is(outcome int32) bool {
	if c == nil {
		return outcome == accepted
	}
	return c.outcome.Load() == outcome
}

// Done records the outcome. Each server keeps up to room bytes of the ends if the call was
// refused; Done returns the number of ends that are dropped.
func (c *Call) Done(err error, room int) (dropped int) {
	outcome := accepted
	if err != nil {
		outcome = rejected
	}
	c.outcome.Store(outcome)
	for _, sent := range c.sent {
		dropped += sent.Done(err, room)
	}
	return dropped
}

type callKey struct{}

// CallOf returns the call that a context belongs to; nil where its outcome is not
// known.
func CallOf(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// Reporting is a processor that records whether the next consumer accepted the metrics.
// The processor finds the call by CallOf. No lock is held in that time.
type Reporting struct {
	processor.Metrics
	// Room returns how many bytes of refused ends each server may keep; Dropped is called with
	// the number of those that did not fit.
	Room    func() int
	Dropped func(ends int)
}

// ConsumeMetrics processes metrics and passes them on.
func (p Reporting) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	call := &Call{}
	err := errPanic
	defer func() {
		room := 0
		if err != nil {
			room = p.Room()
		}
		p.Dropped(call.Done(err, room))
	}()
	err = p.Metrics.ConsumeMetrics(context.WithValue(ctx, callKey{}, call), metrics)
	return err
}

// errPanic is the outcome of a call in which the next consumer panics: a server of HTTP goes on then.
var errPanic = errors.New("the next consumer panicked")
