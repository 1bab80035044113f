package judge

import "slices"

// queues are those of the engines of a server.
//
// Each engine has its own: requests that arrive in a step wait for the next one, and of many
// engines some have such requests at any time, also where each of them is far from full.
type queues struct {
	window float64
	// at is the time of the last sample, in seconds of the story.
	at float64
	of []queue
}

// sample takes the lengths of the queues at a time. Engines can be added while a story
// lasts; those that are not among them, as during a restart, have no queue.
func (q *queues) sample(at float64, waiting []int) {
	q.at = at
	for len(q.of) < len(waiting) {
		q.of = append(q.of, queue{window: q.window})
	}
	for i := range q.of {
		n := 0
		if i < len(waiting) {
			n = waiting[i]
		}
		q.of[i].sample(at, n)
	}
}

// close ends the busy periods of all.
func (q *queues) close() {
	for i := range q.of {
		q.of[i].close()
	}
}

// exceeded reports whether arrivals exceeded the capacity of an engine within a time.
func (q *queues) exceeded(engine int, from, to float64) bool {
	return engine < len(q.of) && q.of[engine].exceeded(from, to)
}

// busy reports whether the queue of an engine was never empty within a time.
func (q *queues) busy(engine int, from, to float64) bool {
	return engine < len(q.of) && slices.ContainsFunc(q.of[engine].periods, func(p [2]float64) bool { return p[0] <= from && p[1] >= to })
}

// queue follows how many requests wait for room at one engine, and finds the stretches in
// which arrivals exceed capacity.
//
// For longer than two windows more has arrived than was served if the queue was never empty
// in them, and is as long at their end as ever in them, but for a tenth. A burst that only
// drains is shorter then.
type queue struct {
	window float64
	at     float64
	// recent are the samples of the last two windows since it was last empty.
	recent []waited
	// over is whether arrivals have exceeded capacity since it was last empty, since when
	// they did so first.
	over      bool
	since     float64
	stretches [][2]float64
	// began is when it was last empty, in seconds; periods are the times in which it was not, at least a
	// minute each.
	began   float64
	periods [][2]float64
}

// asLong is the share of its greatest length at which a queue is as long: lengths vary by
// chance.
const asLong = 0.9

// waited is a sample of the length of the queue.
type waited struct {
	at float64
	n  int
}

// sample takes the length of the queue at a time.
func (q *queue) sample(at float64, waiting int) {
	q.at = at
	if waiting == 0 {
		q.close()
		q.began = at
		return
	}
	if q.over {
		return
	}
	q.recent = append(q.recent, waited{at, waiting})
	for len(q.recent) > 2 && at-q.recent[1].at > 2*q.window {
		q.recent = q.recent[1:]
	}
	first := q.recent[0].at
	if at-first <= 2*q.window {
		return
	}
	for _, s := range q.recent {
		if asLong*float64(s.n) > float64(waiting) {
			return
		}
	}
	q.over, q.since = true, first
}

// close ends a busy period. What waited since arrivals exceeded capacity waited for that,
// also while the queue drained.
func (q *queue) close() {
	if q.over {
		q.stretches = append(q.stretches, [2]float64{q.since, q.at})
	}
	if q.at-q.began > minuteSeconds {
		q.periods = append(q.periods, [2]float64{q.began, q.at})
	}
	q.over, q.recent = false, q.recent[:0]
}

// exceeded reports whether arrivals exceeded capacity within a time.
func (q *queue) exceeded(from, to float64) bool {
	for _, s := range q.stretches {
		if s[0] < to && s[1] > from {
			return true
		}
	}
	return false
}
