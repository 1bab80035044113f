package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// vLLM computes some times of a request from milestones without checking that these were
// reached. The time of a milestone that was not reached is 0. So a request that ends before
// it is scheduled is observed with minus the uptime of the machine as its time in the
// queue, and with the uptime as its time of prefill and of inference. A request that is
// queued again is observed with a negative time in the queue.
//
// Such observations are found, not guessed: each rule below is broken by no history of true
// observations. The buckets and the count of a distribution with a bad observation remain
// those of its requests, so it is not a restart.

// milestones are the distributions with such times. All of them observe each request once,
// at its end, and a request that is bad in one may be bad in all.
var milestones = [...]input.Metric{input.QueueTime, input.PrefillTime, input.InferenceTime}

// defective reports whether a distribution has a bad observation after a batch.
func (g *Group) defective(in input.Metric, from int64) bool {
	return g.bad > from && slices.Contains(milestones[:], in)
}

func (u *update) inspect(g *Group) {
	if g.bad == u.seq || !u.observedBadly(g) {
		return
	}
	g.badBefore, g.bad = g.bad, u.seq
}

// acquit takes back what an earlier part of the batch seemed to show: the engine has
// restarted.
func (u *update) acquit(g *Group) {
	if g.bad == u.seq {
		g.bad = g.badBefore
	}
}

// observedBadly applies the rules to what the group counted since the previous batch.
func (u *update) observedBadly(g *Group) bool {
	var ofWhole, ofPart [2]buffer
	whole, compared := u.grew(g, input.E2ERequestLatency, &ofWhole)
	for _, in := range milestones {
		part, ok := u.grew(g, in, &ofPart)
		if ok && (part.tooLow() || compared && part.longerThan(&whole)) {
			return true
		}
	}
	return false
}

// growth is what a distribution counted since the previous batch: the totals of its
// buckets, and then of its sum, at both ends. was is shared and valid until the next call
// of zeros or while the room of grew is not used again.
type growth struct {
	bounds, is, was []float64
}

// grew returns what a distribution of a group counted since the previous batch. It returns
// false where it has no sum or no previous total.
func (u *update) grew(g *Group, in input.Metric, room *[2]buffer) (growth, bool) {
	if len(g.inputs.of(in)) != 1 {
		return growth{}, false
	}
	s := g.inputs.of(in)[0]
	if noSum := s.rest().noSum; s.newest != u.seq || noSum > 0 && noSum >= u.seq-1 {
		return growth{}, false
	}
	was := s.total(u.seq-1, u.zeros(s.totals.stride), room[0][:])
	if was == nil {
		return growth{}, false
	}
	return growth{bounds: s.bounds, is: s.totals.at(u.seq, room[1][:]), was: was}, true
}

// exactly is less than 1 by more than what rounding takes from a sum. Below 1e12 s it takes
// less than 0.1 ms for each observation, and the lowest bound of these distributions is
// 0.3 s.
const exactly = 1 - 1e-3

func (g *growth) counted(bucket int) float64 { return g.is[bucket] - g.was[bucket] }

func (g *growth) sum() float64 { return g.counted(len(g.is) - 1) }

func (g *growth) count() float64 { return total(g.is) - total(g.was) }

// total returns the observations in all buckets.
func total(numbers []float64) (n float64) {
	for _, one := range numbers[:len(numbers)-1] {
		n += one
	}
	return n
}

// tooLow reports whether the sum grew by less than the new observations add up to at least.
// Each is greater than the lower bound of its bucket, and at least 0. So one of them is
// negative. A negative observation is counted in the first bucket.
//
// A server with several processes may be read while it counts: it adds to the sum first,
// and to the bucket after that. Then one observation is in the sum of the previous point
// already. It adds nothing to this sum, so the greatest lower bound is left out once.
func (g *growth) tooLow() bool {
	least, greatest := 0.0, 0.0
	for i, bound := range g.bounds {
		if n := g.counted(i + 1); n > 0 && bound > 0 {
			least += n * bound
			greatest = bound
		}
	}
	return g.sum() < least*exactly-greatest
}

// clock is by how many seconds a request may seem longer in one of its parts than as a
// whole. vLLM takes the whole from the wall clock, which can be set, and the parts from one
// that cannot.
const clock = 60

// longerThan reports whether the observations cannot be parts of those of a whole. Where
// both have counted the same number since their beginning, they have counted the same
// requests: a server counts both together, at the end of each request. No part of a request
// is longer than the whole of it, so
//
//   - the sum of the parts is at most that of the wholes, and
//   - at most as many parts are longer than a bound as wholes are.
//
// The second rule needs no sum, and finds one long observation among many: a part in the
// open bucket while no whole is near.
func (g *growth) longerThan(whole *growth) bool {
	n := g.count()
	if n <= 0 || n != whole.count() || total(g.is) != total(whole.is) {
		return false
	}
	if g.sum() > whole.sum()+n*clock {
		return true
	}
	parts, wholes, next := 0.0, 0.0, len(whole.bounds)-1
	for i, bound := range slices.Backward(g.bounds) {
		parts += g.counted(i + 1)
		for next >= 0 && whole.bounds[next] > bound-clock {
			wholes += whole.counted(next + 1)
			next--
		}
		if next < 0 {
			return false
		}
		// The wholes that are longer than the bound next.
		if parts > wholes+whole.counted(next+1) {
			return true
		}
	}
	return false
}
