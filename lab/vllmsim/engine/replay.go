package engine

import (
	"container/heap"
	"math"
	"sort"
)

// recorded is what traffic has of a request.
type recorded struct {
	prompt, output int32
	prefix         []BlockRun
	// tokens is the length of a block, known how many blocks at the beginning other requests
	// can have.
	tokens, known int
	// conversation is 0 or tells the block numbers of one conversation from those of others,
	// but for the first shared tokens.
	conversation uint64
	shared       int
	// next is the turn of the conversation after this one; nil if it is not known.
	next *Turn
}

// replay is the nominal stream of traffic. The number of an arrival is its place in the
// traffic; from one span to the next it rises by the number of arrivals of a span, so that
// the same moments have the same numbers wherever a run begins.
type replay struct {
	traffic     *Traffic
	speed, from float64
	n           int // Of the next arrival; below 0 is before the traffic's beginning.
}

func newReplay(w *Workload) *replay { return &replay{w.Traffic, w.speed(), w.From, 0} }

// place returns which arrival of which span a number is.
func (p *replay) place(n int) (index, span int) {
	size := len(p.traffic.Arrivals)
	span = n / size
	if n < span*size {
		span--
	}
	return n - span*size, span
}

// time is when an arrival comes, in seconds since the start.
func (p *replay) time(n int) float64 {
	index, span := p.place(n)
	return (float64(span)*p.traffic.Span + p.traffic.Arrivals[index].At - p.from) / p.speed
}

// first returns the number of the first arrival that is not before t.
func (p *replay) first(t float64) int {
	at := p.from + t*p.speed
	span := math.Floor(at / p.traffic.Span)
	at -= span * p.traffic.Span
	arrivals := p.traffic.Arrivals
	n := int(span)*len(arrivals) + sort.Search(len(arrivals), func(i int) bool { return arrivals[i].At >= at })
	// The rounding of one sum is not that of the other.
	for p.time(n) < t {
		n++
	}
	for n > -len(arrivals) && p.time(n-1) >= t {
		n--
	}
	return n
}

func (p *replay) what(index int) *recorded {
	a := &p.traffic.Arrivals[index]
	return &recorded{
		prompt: a.Prompt, output: a.Output, prefix: a.Prefix, tokens: p.traffic.BlockTokens, known: blockCount(a.Prefix),
	}
}

func (p *replay) next() arrival {
	index, _ := p.place(p.n)
	came := arrival{at: p.time(p.n), id: p.n, what: p.what(index)}
	p.n++
	return came
}

func (p *replay) forward(t float64) arrival {
	p.n = max(p.n, p.first(t))
	return p.next()
}

// copies is a further stream of traffic: each arrival comes several times more, each time
// some seconds later, with the lengths and the beginning of an arrival nearby. A copy is of
// another user, so of its prompt only those blocks are known that the traffic had before.
// It has as much to find in the cache as what it is a copy of, with a cache that forgets
// nothing.
type copies struct {
	replay
	seed   uint64
	layer  int
	times  int // How often each arrival comes.
	seen   []int32
	coming copyQueue
}

const (
	// copiesLater is the longest time, in seconds, by which a copy comes later.
	copiesLater = 60
	// copiesNear is how far away, in arrivals, the one is whose lengths a copy has.
	copiesNear = 16
)

func newCopies(seed uint64, w *Workload, layer, times int, seen []int32) *copies {
	c := &copies{replay: *newReplay(w), seed: seed, layer: layer, times: times, seen: seen}
	c.n = math.MinInt
	return c
}

func (c *copies) next() arrival {
	for len(c.coming) == 0 || c.time(c.n) <= c.coming[0].at {
		for i := range c.times {
			// Arrivals of the span before the first one have numbers from 0.
			id := c.layer<<layerShift | (c.n+len(c.traffic.Arrivals))*c.times + i
			heap.Push(&c.coming, copied{at: c.time(c.n) + copiesLater*uniform(c.seed, uint64(id), jitter), id: id, of: c.n})
		}
		c.n++
	}
	came := heap.Pop(&c.coming).(copied)
	near := came.of + 1 + int(copiesNear*uniform(c.seed, uint64(came.id), nearby))
	index, _ := c.place(near)
	what := c.what(index)
	what.known = int(c.seen[index])
	return arrival{at: came.at, id: came.id, what: what}
}

func (c *copies) forward(t float64) arrival {
	c.coming = c.coming[:0]
	c.n = max(-len(c.traffic.Arrivals), c.first(t-copiesLater))
	for {
		if came := c.next(); came.at >= t {
			return came
		}
	}
}

// copied is a copy that is to come.
type copied struct {
	at     float64
	id, of int
}

type copyQueue []copied

func (q copyQueue) Len() int { return len(q) }
func (q copyQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || (q[i].at == q[j].at && q[i].id < q[j].id)
}
func (q copyQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *copyQueue) Push(x any)   { *q = append(*q, x.(copied)) }
func (q *copyQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}
