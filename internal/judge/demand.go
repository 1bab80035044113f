package judge

// queue follows how many requests wait for room, and finds the stretches in which arrivals
// exceed capacity.
type queue struct {
	window float64
	at     float64
	// since is when the queue was last empty, and first what waited a moment later; busy is
	// whether it has not been empty since.
	busy  bool
	since float64
	first int
	// until is the last time at which it was not shorter than at the beginning.
	until     float64
	stretches [][2]float64
}

// sample takes the length of the queue at a time.
func (q *queue) sample(at float64, waiting int) {
	q.at = at
	switch {
	case waiting == 0:
		q.close()
	case !q.busy:
		q.busy, q.since, q.first, q.until = true, at, waiting, at
	case waiting >= q.first:
		q.until = at
	}
}

// close ends a busy period. Arrivals exceeded capacity in it if for longer than two windows
// the queue was neither empty nor shorter at the end than at the beginning. Then what they
// wait for is demand up to the end of the period.
func (q *queue) close() {
	if q.busy && q.until-q.since > 2*q.window {
		q.stretches = append(q.stretches, [2]float64{q.since, q.at})
	}
	q.busy = false
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
