package scale

import (
	"slices"
	"sync"
)

// arrival is a scrape of which the backend has received the number of the answer.
type arrival struct {
	// at is the time of the points in unix nanoseconds, tick that of the answer.
	at   uint64
	tick int64
	life int
	// copies is how often it came.
	copies int
}

// point is a number at a time.
type point struct {
	at, start uint64
	value     float64
}

// series is what the backend knows of one counter: the arithmetic of a backend that follows
// OTLP. A value counts from the one before, and from zero where the start time is later than
// the point before.
type series struct {
	known         bool
	first, last   point
	increments    float64
	resets, falls int
	// fell are the points of the first fall, the later one last.
	fell [2]point
}

// fall notes that a point is less than one before it.
func (s *series) fall(before, after point) {
	s.falls++
	if s.falls == 1 {
		s.fell = [2]point{before, after}
	}
}

// add takes a point. Points may arrive late; a late one changes nothing, and is only checked.
func (s *series) add(p point) {
	switch {
	case !s.known:
		s.known, s.first, s.last = true, p, p
	case p.at == s.last.at:
		if p.value != s.last.value {
			s.fall(s.last, p)
		}
	case p.at < s.last.at:
		if p.start == s.last.start && p.value > s.last.value {
			s.fall(p, s.last)
		}
		if p.at < s.first.at && p.start == s.first.start {
			s.increments += s.first.value - p.value
			s.first = p
		}
	case p.start != s.last.start && p.start >= s.last.at:
		s.resets++
		s.increments += p.value
		s.last = p
	default:
		if p.start != s.last.start {
			s.resets++
		}
		if p.value < s.last.value {
			s.fall(s.last, p)
		}
		s.increments += p.value - s.last.value
		s.last = p
	}
}

// condition is what a diagnosis said at a time.
type condition struct {
	at   uint64
	what string
}

// engineAccount is what the backend knows of one engine.
type engineAccount struct {
	arrivals []arrival
	// byTime has the places of arrivals.
	byTime map[uint64]int
	// counters are all counters of the receiver, by the number of the name.
	counters []series
	// compared are points whose values must be those of the truth, by the counter.
	compared [3][]point
	// valid are the points of the processor's counter of an objective.
	valid      []point
	conditions []condition
	// ends counts points without a value.
	ends int
}

// account is what the backend knows of the fleet.
type account struct {
	mu      sync.Mutex
	engines []engineAccount
	// names are the numbers of counters, by name and attributes.
	names map[string]int
	// pools are the conditions of pools, by model.
	pools map[string][]condition
	// requests and bytes count what was taken, strangers the resources of no engine.
	requests, bytes, points, strangers int
}

func newAccount(engines int) *account {
	a := &account{engines: make([]engineAccount, engines), names: map[string]int{}, pools: map[string][]condition{}}
	for i := range a.engines {
		a.engines[i].byTime = map[uint64]int{}
	}
	return a
}

// name is the number of a counter.
func (a *account) name(key []byte) int {
	n, known := a.names[string(key)]
	if !known {
		n = len(a.names)
		a.names[string(key)] = n
	}
	return n
}

// counter notes a point of a counter.
func (e *engineAccount) counter(name int, p point) {
	if name >= len(e.counters) {
		e.counters = append(e.counters, make([]series, name+1-len(e.counters))...)
	}
	e.counters[name].add(p)
}

// arrive notes the number of an answer.
func (e *engineAccount) arrive(at uint64, answer int64) {
	if i, known := e.byTime[at]; known {
		e.arrivals[i].copies++
		return
	}
	n, life := splitAnswer(answer)
	e.byTime[at] = len(e.arrivals)
	e.arrivals = append(e.arrivals, arrival{at: at, tick: n, life: life, copies: 1})
}

// heard is how many engines, and the number of the first other one, have at least so many answers of these processes that were given
// at a tick or later.
func (a *account) heard(answers int, since int64, lives map[int]bool) (n, other int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	other = -1
	for i := range a.engines {
		got := 0
		for _, one := range slices.Backward(a.engines[i].arrivals) {
			if one.tick >= since && lives[one.life] {
				got++
			}
		}
		if got >= answers {
			n++
		} else if other < 0 {
			other = i
		}
	}
	return n, other
}

// forget drops everything, after the limits were found.
func (a *account) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := newAccount(len(a.engines))
	a.engines, a.pools = fresh.engines, fresh.pools
	a.requests, a.bytes, a.points, a.strangers = 0, 0, 0, 0
}
