package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// A canary is a request for one token that the receiver sends. The server counts it like any other
// request. What a view returns about a window is without them: increases of counters and observations
// of distributions are those of users. Totals and gauges are as the server has them.
//
// Which engine served a canary is known only where the server has one engine and one model. Elsewhere
// nothing is left out.
//
// The receiver counts a canary when it has the answer, and reads the server at another moment. So at
// either end of a window one canary can be counted by one of the two alone. Increases within the window
// are subtracted, since a difference of totals could fall, and what would be less than 0 is 0. What is
// left can be a request too many or too few.

// canaries are the canaries of a server with one engine.
type canaries struct {
	// group is the engine and model, sent the series of the receiver.
	group *Group
	sent  *series
	// seen are those of the window that is read.
	seen Histogram
}

// followCanaries finds the only engine of a server that gets canaries.
func (r *Resource) followCanaries() {
	var sent *series
	for _, g := range r.groups {
		if all := g.inputs.of(input.CanaryDuration); len(all) > 0 {
			sent = all[0]
		}
	}
	if sent == nil {
		r.canaries = nil
		return
	}
	var only *Group
	engines := 0
	for _, g := range r.groups {
		if !g.ended && g.seq >= r.seq-1 && (len(g.inputs.of(input.Running)) > 0 || len(g.inputs.of(input.GenerationTokens)) > 0) {
			engines, only = engines+1, g
		}
	}
	switch {
	case engines != 1 || r.Affected(catalog.DefectOnlyLastEngine):
		r.canaries = nil
	case r.canaries == nil || r.canaries.group != only || r.canaries.sent != sent:
		r.canaries = &canaries{group: only, sent: sent}
	}
}

// Canaries returns the number of canaries that the only engine of the server has served over the
// window; 0 where it has several.
func (v *View) Canaries() float64 {
	c := v.resource.canaries
	if c == nil {
		return 0
	}
	c.seen.Reset()
	v.observations(c.sent, observedCanaries{}, c.seen.Add)
	return c.seen.Count
}

// served is Canaries of the group of the view.
func (v *View) served() float64 {
	if c := v.resource.canaries; c == nil || c.group != v.group {
		return 0
	}
	return v.Canaries()
}

// increase returns by how much a series of a counter grew over the window, without canaries.
func (v *View) increase(in input.Metric, s *series) (float64, Status) {
	value, status := v.difference(s)
	if value > 0 {
		value = max(value-v.ofCanaries(in, s), 0)
	}
	return value, status
}

// ofCanaries is what canaries have added to a counter. The number of tokens of their prompt is not
// known: the one that each has at least is left out. What else they add is too little to matter.
func (v *View) ofCanaries(in input.Metric, s *series) float64 {
	const whole, cut, computed = input.Label("stop"), input.Label("length"), input.Label("local_compute")
	alone := len(v.group.inputs.of(in)) == 1
	switch in {
	case input.GenerationTokens, input.PromptTokens:
		return v.served()
	case input.PrefixCacheQueries:
		if !s.older { // Some older servers count blocks, of which it has none.
			return v.served()
		}
	case input.PromptTokensBySource:
		if alone || s.label == computed {
			return v.served()
		}
	case input.RequestSuccess:
		if alone || s.label == cut {
			return v.served()
		}
		if s.label != whole {
			return 0
		}
		// Its only token can be the end of the text.
		n := v.served()
		if other := v.labelled(in, cut); other != nil && n > 0 {
			grown, _ := v.difference(other)
			n -= min(n, max(grown, 0))
		}
		return n
	}
	return 0
}

// observedCanaries are the canaries among the observations of a distribution over a window.
type observedCanaries struct {
	// left are those that are not removed yet, by their times; nil without any.
	left *Histogram
	// value is what each was observed with; less than 0 for its time, of which mean is the mean.
	value, mean float64
}

// canariesIn returns the canaries that a distribution has observed over the window.
func (v *View) canariesIn(in input.Metric) (o observedCanaries) {
	switch in {
	case input.TimeToFirstToken, input.E2ERequestLatency, input.PrefillTime, input.InferenceTime:
		o.value = -1 // Of a canary that waited in the queue this is too much for the latter two.
	case input.QueueTime, input.DecodeTime, input.TimePerOutputToken:
	case input.RequestPromptTokens, input.RequestGenerationTokens:
		o.value = 1
	case input.IterationTokens:
		o.value = 2 // As if each had a step of its own.
	default:
		return o
	}
	if v.served() > 0 {
		o.left = &v.resource.canaries.seen
		o.mean = o.left.Sum / o.left.Count
	}
	return o
}

func (o *observedCanaries) remove(h *Histogram) {
	if o.left == nil {
		return
	}
	if o.value < 0 {
		removeTimes(h, o.left, o.mean)
	} else {
		removeValues(h, o.left, o.value)
	}
	if h.Sum = max(h.Sum, 0); h.Count == 0 {
		h.Sum = 0
	}
}

// removeTimes removes the times of canaries. The server measures at most the time of the receiver,
// which has the way to the server as well: it is in the bucket of the receiver or in a lower one, and
// then at most its bound.
func removeTimes(h, canaries *Histogram, mean float64) {
	for i := range canaries.Counts {
		value, bucket := mean, len(h.Bounds)
		if i < len(canaries.Bounds) {
			bucket, _ = slices.BinarySearch(h.Bounds, canaries.Bounds[i])
		}
		for bucket = min(bucket, len(h.Counts)-1); bucket >= 0; bucket-- {
			take(h, bucket, &canaries.Counts[i], value)
			if bucket > 0 {
				value = min(value, h.Bounds[bucket-1])
			}
		}
	}
}

// removeValues removes an observation of each canary: those from the bucket of its value on.
func removeValues(h, canaries *Histogram, value float64) {
	bucket, _ := slices.BinarySearch(h.Bounds, value)
	for ; bucket < len(h.Counts); bucket++ {
		for i := range canaries.Counts {
			take(h, bucket, &canaries.Counts[i], value)
		}
	}
}

// take removes at most n observations from a bucket, and subtracts them from n.
func take(h *Histogram, bucket int, n *float64, value float64) {
	removed := max(min(*n, h.Counts[bucket]), 0)
	*n -= removed
	h.Counts[bucket] -= removed
	h.Count -= removed
	h.Sum -= removed * value
}
