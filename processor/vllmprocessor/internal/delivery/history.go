package delivery

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
)

// unconfirmed are ends that no consumer has accepted, as far as is known.
type unconfirmed struct {
	series *emit.Memory
	// attributes are those of the resource that they were written under.
	attributes pcommon.Map
	points     []emit.Point
	calls      []*Call
}

// confirmed reports whether a consumer accepted the ends. It forgets the calls that
// failed.
func (u *unconfirmed) confirmed() bool {
	if slices.ContainsFunc(u.calls, func(call *Call) bool { return call.is(accepted) }) {
		return true
	}
	u.calls = slices.DeleteFunc(u.calls, func(call *Call) bool { return call.is(refused) })
	return false
}

// ended returns the points whose series do not have a value again. Outputs share the
// points, so the slice itself is not changed.
func (u *unconfirmed) ended(again emit.Live) []emit.Point {
	live := func(point emit.Point) bool { return again.Has(&point) }
	if !slices.ContainsFunc(u.points, live) {
		return u.points
	}
	return slices.DeleteFunc(slices.Clone(u.points), live)
}

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
	// maxUnconfirmed bounds the unconfirmed ends of a server.
	maxUnconfirmed = 10_000
)

// History has what was written for the newest batches of one server. Its zero value is
// empty.
type History struct {
	outputs     []*Output
	unconfirmed []*unconfirmed
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
		if o.time == time && o.call.is(refused) {
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

// Pending returns the number of ends that no consumer has accepted, as far as is known.
func (h *History) Pending() (ends int) {
	for _, u := range h.unconfirmed {
		if !u.confirmed() {
			ends += len(u.points)
		}
	}
	return ends
}

// Revive drops the ends of a resource that has these attributes again.
func (h *History) Revive(attributes pcommon.Map) {
	h.unconfirmed = slices.DeleteFunc(h.unconfirmed, func(u *unconfirmed) bool { return u.attributes.Equal(attributes) })
}

// Repeat adds to an output the unconfirmed ends of earlier batches, other than those of
// series that have a value again, and remembers the output's own. attributes are those
// of the resource now. It returns the number of ends that were dropped because there
// are too many.
func (h *History) Repeat(o *Output, attributes pcommon.Map) (dropped int) {
	own := len(o.sections)
	count := h.repeat(o, attributes)
	if o.call == nil {
		return 0
	}
	for _, s := range o.sections[:own] {
		first := slices.IndexFunc(s.points, func(point emit.Point) bool { return point.End })
		if first < 0 {
			continue
		}
		u := &unconfirmed{series: s.series, attributes: s.attributes, points: s.points[first:], calls: []*Call{o.call}}
		if s.attributes == (pcommon.Map{}) {
			u.attributes = attributes
		}
		h.unconfirmed = append(h.unconfirmed, u)
		o.repeated = append(o.repeated, u)
		count += len(u.points)
	}
	for count-dropped > maxUnconfirmed {
		dropped += len(h.unconfirmed[0].points)
		h.unconfirmed = slices.Delete(h.unconfirmed, 0, 1)
	}
	return dropped
}

// repeat adds the unconfirmed ends of earlier batches and returns their number.
func (h *History) repeat(o *Output, attributes pcommon.Map) (count int) {
	if len(h.unconfirmed) == 0 {
		return 0
	}
	live := map[*emit.Memory]emit.Live{}
	h.unconfirmed = slices.DeleteFunc(h.unconfirmed, func(u *unconfirmed) bool {
		if u.confirmed() {
			return true
		}
		here := u.attributes == attributes
		if here {
			if live[u.series] == nil {
				live[u.series] = u.series.Live()
			}
			u.points = u.ended(live[u.series])
		}
		if len(u.points) == 0 {
			return true
		}
		// Another batch of the same request may have them already.
		if !slices.Contains(u.calls, o.call) {
			again := section{series: u.series, points: u.points}
			if !here {
				again.attributes = u.attributes
			}
			o.add(again)
			u.calls = append(u.calls, o.call)
		}
		o.repeated = append(o.repeated, u)
		count += len(u.points)
		return false
	})
	return count
}
