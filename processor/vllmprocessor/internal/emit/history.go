package emit

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

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
// ended in it may live again. version is that of the scope.
func (h *History) Put(o *Output, call *Call, metrics pmetric.Metrics, batch *input.Batch, version string) (values, ends int) {
	o.call = call
	written := o.write(version)
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
