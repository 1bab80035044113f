package soak

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// answer is a body that a server has sent as a whole.
type answer struct {
	id     uint64
	target string
	at     time.Time
	// life counts how often the target was listed.
	life int
	// shape is equal for bodies that have the same series apart from names.
	shape   string
	engines int
	tokens  float64
	// settled is false for an answer that follows a change of the target or a failure: its
	// points are not compared with those of others.
	settled bool
}

// arrival is what the sink has received of one scrape.
type arrival struct {
	id     uint64
	copies int
	points int
	// The engines of which a point with the right value has arrived, as bits.
	tokens, first, last uint8
	tokenValue          float64
	wrong               bool
}

// moment identifies a scrape: all of its points have the same time.
type moment struct {
	instance string
	time     uint64
}

// window is a time in which answers may be lost, because the soak itself broke the connection
// or ended the collector.
type window struct {
	// target is empty for all targets.
	target   string
	from, to time.Time
	why      string
}

// ledger compares what was served with what was received.
type ledger struct {
	mu       sync.Mutex
	answers  []answer
	arrivals map[moment]*arrival
	byID     map[uint64]*arrival
	windows  []window
	// lastLife is the life that has ended last, by target.
	lastLife map[string]int
}

func newLedger() *ledger {
	return &ledger{arrivals: map[moment]*arrival{}, byID: map[uint64]*arrival{}, lastLife: map[string]int{}}
}

// serve notes an answer that the server has written without an error.
func (l *ledger) serve(a answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, a)
}

// end notes that a target was removed from the list in this life: its last answer may have been
// under way when the collector noticed it.
func (l *ledger) end(target string, life int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastLife[target] = max(l.lastLife[target], life)
}

// excuse notes a window. A missing answer within it is no loss.
func (l *ledger) excuse(w window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.windows = append(l.windows, w)
}

// part is what one request has of one scrape.
type part struct {
	at     moment
	points int
	// repeated is a request that has been received before, byte for byte.
	repeated bool
	// ids are the numbers at the beginning of the body; there is one if it is in this part.
	ids []uint64
	// last, tokens and first have a value by engine.
	last, tokens, first map[int]float64
}

// receive notes a part of a scrape.
func (l *ledger) receive(p part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.arrivals[p.at]
	if a == nil {
		a = &arrival{}
		l.arrivals[p.at] = a
	}
	if p.repeated {
		a.copies += len(p.ids)
		return
	}
	a.points += p.points
	for _, id := range p.ids {
		a.wrong = a.wrong || a.id != 0 && a.id != id
		a.id = id
		a.copies++
		l.byID[id] = a
	}
	for engine := range p.first {
		a.first |= 1 << engine
	}
	for engine, v := range p.tokens {
		a.wrong = a.wrong || a.tokens != 0 && a.tokenValue != v
		a.tokens |= 1 << engine
		a.tokenValue = v
	}
	for engine, v := range p.last {
		a.wrong = a.wrong || a.id != 0 && a.id != uint64(v)
		a.last |= 1 << engine
	}
}

// complete is whether everything that is looked for has arrived.
func (a *arrival) complete(served *answer) bool {
	all := uint8(1)<<served.engines - 1
	return a != nil && !a.wrong && a.id == served.id && a.tokens == all && a.first == all && a.last == all && a.tokenValue == served.tokens
}

// balance is the result of the comparison.
type balance struct {
	Served   int `json:"served"`
	Received int `json:"received"`
	// Lost were served and have not arrived; Incomplete have arrived in part; Short have fewer
	// points than other answers of the same shape.
	Lost       int `json:"lost"`
	Incomplete int `json:"incomplete"`
	Short      int `json:"short"`
	// Duplicates are answers that have arrived more than once.
	Duplicates int `json:"duplicates"`
	// Unknown are numbers that no server has given.
	Unknown int `json:"unknown"`
	// Excused are missing answers that the collector could not have read, by the reason.
	Excused map[string]int `json:"excused"`
	// Points of the receiver that have arrived.
	Points int `json:"points"`
	// Compared are the answers whose number of points was compared with others.
	Compared int `json:"compared"`
	// Examples are sentences about the first failures.
	Examples []string `json:"examples,omitempty"`
}

const mostExamples = 10

func (b *balance) example(format string, args ...any) {
	if len(b.Examples) < mostExamples {
		b.Examples = append(b.Examples, fmt.Sprintf(format, args...))
	}
}

// missing counts the answers before a time that have not arrived and have no excuse.
func (l *ledger) missing(before time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	final := l.finals()
	n := 0
	for i := range l.answers {
		a := &l.answers[i]
		if a.at.Before(before) && l.byID[a.id] == nil && l.excuseFor(a, final[a.target][a.life]) == "" {
			n++
		}
	}
	return n
}

// finals has the last answer of each life of each target.
func (l *ledger) finals() map[string]map[int]uint64 {
	final := map[string]map[int]uint64{}
	for i := range l.answers {
		a := &l.answers[i]
		if final[a.target] == nil {
			final[a.target] = map[int]uint64{}
		}
		final[a.target][a.life] = max(final[a.target][a.life], a.id)
	}
	return final
}

// counts are the answers that were served and received so far.
func (l *ledger) counts() (served, received int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.answers), len(l.byID)
}

// balance compares everything.
func (l *ledger) balance() balance {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := balance{Excused: map[string]int{}}
	usual := l.usualPoints()
	final := l.finals()
	known := make(map[uint64]bool, len(l.answers))
	for i := range l.answers {
		a := &l.answers[i]
		known[a.id] = true
		b.Served++
		got := l.byID[a.id]
		if got == nil {
			if why := l.excuseFor(a, final[a.target][a.life]); why != "" {
				b.Excused[why]++
				continue
			}
			b.Lost++
			b.example("answer %d of %s at %s has not arrived", a.id, a.target, a.at.Format(time.TimeOnly))
			continue
		}
		b.Received++
		if got.copies > 1 {
			b.Duplicates++
		}
		if !got.complete(a) {
			b.Incomplete++
			b.example("answer %d of %s at %s is incomplete: of %d engines the prompt tokens %08b, time to first token %08b and the last line %08b arrived; tokens %v, served %v",
				a.id, a.target, a.at.Format(time.TimeOnly), a.engines, got.tokens, got.first, got.last, got.tokenValue, a.tokens)
			continue
		}
		if a.settled {
			b.Compared++
			if got.points < usual[a.shape] {
				b.Short++
				b.example("answer %d of %s at %s has %d points; other answers of its shape (%s) have %d",
					a.id, a.target, a.at.Format(time.TimeOnly), got.points, a.shape, usual[a.shape])
			}
		}
	}
	for id := range l.byID {
		if !known[id] {
			b.Unknown++
		}
	}
	for _, a := range l.arrivals {
		b.Points += a.points
	}
	return b
}

// usualPoints is the most frequent number of points of settled answers, by shape.
func (l *ledger) usualPoints() map[string]int {
	counts := map[string]map[int]int{}
	for i := range l.answers {
		a := &l.answers[i]
		if got := l.byID[a.id]; a.settled && got.complete(a) && got.copies == 1 {
			if counts[a.shape] == nil {
				counts[a.shape] = map[int]int{}
			}
			counts[a.shape][got.points]++
		}
	}
	usual := map[string]int{}
	for shape, points := range counts {
		most := 0
		for _, n := range slices.Sorted(maps.Keys(points)) {
			if points[n] > most {
				most, usual[shape] = points[n], n
			}
		}
	}
	return usual
}

// excuseFor is why an answer may be missing, or nothing.
func (l *ledger) excuseFor(a *answer, finalID uint64) string {
	if a.id == finalID && a.life <= l.lastLife[a.target] {
		return "the last answer of a target that was removed"
	}
	for _, w := range l.windows {
		if (w.target == "" || w.target == a.target) && !a.at.Before(w.from) && !a.at.After(w.to) {
			return w.why
		}
	}
	return ""
}
