package scale

import (
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
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
	counters []fleet.Series
	// compared are points whose values must be those of the truth, by the counter.
	compared [3][]fleet.Sample
	// valid are the points of the processor's counter of an objective.
	valid      []fleet.Sample
	conditions []condition
}

// account is what the backend knows of the fleet.
type account struct {
	mu      sync.Mutex
	engines []engineAccount
	// names are the numbers of counters, by name and attributes.
	names map[string]int
	// pools are the conditions of pools, by model.
	pools map[string][]condition
	// points count what was taken, strangers the resources of no engine.
	points, strangers int
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
func (e *engineAccount) counter(name int, p fleet.Sample) {
	if name >= len(e.counters) {
		e.counters = append(e.counters, make([]fleet.Series, name+1-len(e.counters))...)
	}
	e.counters[name].Add(p)
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
	a.points, a.strangers = 0, 0
}
