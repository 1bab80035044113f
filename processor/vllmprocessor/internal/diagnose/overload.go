package diagnose

import (
	"cmp"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// backlog follows the requests that wait for room, and whether arrivals exceed what the
// engine serves: more than one request always waits for two windows, and at the end as many as
// ever in them, but for a tenth; or more than one always waits for five windows. A burst that
// queues and drains as it must is not an overload.
type backlog struct {
	recent []waited
	Over   bool  `json:",omitzero"`
	Since  int64 `json:",omitzero"`
}

// waited is a sample of the queue, at in Unix nanoseconds.
type waited struct {
	at      int64
	waiting float64
}

// asLong is the share of its greatest length at which a queue is as long: lengths vary by
// chance. shorter is the share at which an overload has ended: the queue drains.
const asLong, shorter = 0.9, 0.5

// mostSamples bounds the samples: one each second of two windows of a minute.
const mostSamples = 120

func (b *backlog) observe(at int64, waiting float64, window int64) {
	if !(waiting > 1) {
		b.recent, b.Over, b.Since = b.recent[:0], false, 0
		return
	}
	if len(b.recent) == mostSamples {
		b.recent = append(b.recent[:1], b.recent[2:]...)
	}
	b.recent = append(b.recent, waited{at, waiting})
	for len(b.recent) > 2 && at-b.recent[1].at >= 2*window {
		b.recent = b.recent[1:]
	}
	longest := 0.0
	for _, s := range b.recent {
		longest = max(longest, s.waiting)
	}
	b.Since = cmp.Or(b.Since, at)
	switch {
	case at-b.Since >= 5*window:
		b.Over = true
	case waiting < shorter*longest:
		b.Over = false
	case at-b.recent[0].at >= 2*window && waiting >= asLong*longest:
		b.Over = true
	}
}

// backlogs are the queues that an engine would have with one factor as usual, by Lindley's
// recursion (1952): what was there, and what arrives, less what is served, and at least nothing.
type backlogs struct {
	Waiting float64             `json:",omitzero"`
	Without [numFactors]float64 `json:",omitzero"`
}

// observe adds a reading. waiting is the number of requests that wait for capacity, by as from
// capacity, seconds the time since the reading before.
func (q *backlogs) observe(r *reading, waiting float64, by growths, seconds float64) {
	if !signal.Known(waiting) {
		return
	}
	arrive, serve := signal.OrZero(r.Signals[signal.ArrivalRate]), signal.OrZero(r.Signals[signal.FirstTokenRate])
	grown := waiting - q.Waiting
	for f := range numFactors {
		change := grown
		switch {
		case by[f] == 0:
		case f == moreArrivals:
			change -= arrive * (1 - math.Exp(-by[f])) * seconds
		default:
			change -= serve * (math.Exp(by[f]) - 1) * seconds
		}
		q.Without[f] = min(max(q.Without[f]+change, 0), max(waiting, 0))
	}
	q.Waiting = max(waiting, 0)
}

// shares are the parts of the queue that would not be there with a factor as usual. Together they
// are at most 1. The part that would not be there without the other factors is theirs, although
// more requests arrive: the engine would serve them. More arrivals have what is left. A queue that
// comes and goes between scrapes is divided by the capacity that each factor takes, as from capacity.
func (q *backlogs) shares(by growths) (out growths) {
	if !(q.Waiting >= 1) {
		weights := by.total()
		for f := range numFactors {
			if weights > 0 {
				out[f] = by[f] / weights
			}
		}
		return out
	}
	gone, weights := 0.0, 0.0
	for f := range numFactors {
		part := 1 - q.Without[f]/q.Waiting
		if out[f] = part * by[f]; f == moreArrivals {
			out[f] = 0
			continue
		}
		weights += out[f]
		if by[f] > 0 {
			gone += part
		}
	}
	gone = min(gone, 1)
	for f := range numFactors {
		if weights > 0 {
			out[f] *= gone / weights
		}
	}
	if by[moreArrivals] > 0 {
		out[moreArrivals] = min(1-q.Without[moreArrivals]/q.Waiting, 1-gone)
	}
	return out
}

// capacity is by how much more an engine would serve, as logarithms, if each changed factor were as
// usual; for arrivals, by how much less would arrive.
func capacity(r *reading, b *signal.Baseline, c *growths) (by growths) {
	if cacheFull(r) || c[fewerBlocks] > 0 && r.Signals[signal.Waiting] > 0 {
		by[moreArrivals], by[fewerBlocks], by[fewerAccepted] = c[moreArrivals], c[fewerBlocks], c[fewerAccepted]
		// A request holds its blocks while its answer is written: twice as long an answer
		// takes twice as long, and half of it is held.
		by[longerOutputs] = 2 * c[longerOutputs]
		by[longerPrompts] = max(c[longerPrompts], c[moreComputed])
		by[slowerSteps] = c[slowerSteps]
		return by
	}
	// The composition of a step decides whether prompts or sequences count.
	prefill := b.PromptShare(&r.Window)
	by[moreArrivals], by[fewerAccepted] = c[moreArrivals], c[fewerAccepted]
	by[moreComputed] = c[moreComputed] * prefill
	by[longerOutputs] = c[longerOutputs] * (1 - prefill)
	by[slowerSteps] = max(c[slowerSteps], c[slowerPrefills])
	return by
}

// cacheFull reports whether the KV cache limits an engine.
func cacheFull(r *reading) bool {
	return r.Signals[signal.KVUtilization] > full || r.Signals[signal.Preemptions] > preempting
}

// queued is why requests queue, by the parts of backlogs. What no changed factor explains of a queue
// that does not drain is the demand's; of a queue that drains it is not harm.
func queued(r *reading, c *growths, over bool, queues growths) (s Shares) {
	c.attribute(&s, r, queues)
	if total := s.total(); over && total < 1 {
		s[DemandExceedsCapacity] += 1 - total
	}
	return s
}
