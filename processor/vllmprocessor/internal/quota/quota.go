// Package quota divides a limit among those that share it, so that one of them
// takes nothing from the others.
package quota

import (
	"slices"
	"sort"
	"sync"
)

// Quota is a limit for what all its shares hold together. Shares that hold little
// leave the rest to the others: where the limit is reached, no share may hold more
// than a level, which is the highest at which all fit. It is never lower than the limit
// divided by the number of shares. A share may hold more than the level as long as
// the limit is not reached, and gives that back once others need it. Until it does,
// the limit can be exceeded, up to twice the limit.
type Quota struct {
	mu          sync.Mutex
	limit, used int
	// lacking is what all shares together would hold in addition without the limit.
	lacking int
	shares  map[*Share]struct{}

	// sorted is what the shares hold, and sums[i] what the first i of them hold
	// together. changed is true where that is not so any more, and age the number of
	// questions that it has answered.
	sorted, sums []int
	changed      bool
	age          int
}

// sortedFor is how many shares there are for each question that may be answered by
// what was held before: sorting many shares takes long, and a few of them that change
// move the level little.
const sortedFor = 64

// New returns a quota.
func New(limit int) *Quota {
	return &Quota{limit: limit, shares: map[*Share]struct{}{}, sums: []int{0}}
}

// Limit is the most that all shares together may hold.
func (q *Quota) Limit() int { return q.limit }

// Used is what all shares together hold.
func (q *Quota) Used() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Wanted is what all shares together would hold without the limit, as far as they have
// said with Lack.
func (q *Quota) Wanted() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used + q.lacking
}

// Share is what one of them holds. A nil share holds nothing.
type Share struct {
	quota         *Quota
	used, lacking int
}

// Open returns a new share.
func (q *Quota) Open() *Share {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := &Share{quota: q}
	q.shares[s] = struct{}{}
	q.changed = true
	return s
}

// Close gives back all that a share holds.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.set(0)
	s.quota.lacking -= s.lacking
	s.lacking = 0
	delete(s.quota.shares, s)
	s.quota.changed = true
}

// Room is how much more the share may hold.
func (s *Share) Room() int {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	return s.room()
}

func (s *Share) room() int {
	q := s.quota
	free := q.limit - q.used
	own := q.limit/max(len(q.shares), 1) - s.used
	if free < q.limit/2 && own < q.limit-s.used {
		// The highest level at which it fits with the others.
		own = max(own, q.highest(func(level int) bool { return level-s.used+q.below(level) <= q.limit })-s.used)
	}
	return max(min(own, 2*q.limit-q.used), free, 0)
}

// Excess is how much the share has to give back.
func (s *Share) Excess() int {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	q := s.quota
	over := q.used - q.limit
	if over <= 0 {
		return 0
	}
	level := max(q.limit/max(len(q.shares), 1), q.highest(func(level int) bool { return q.below(level) <= q.limit }))
	return max(0, min(over, s.used-level))
}

// highest returns the highest level up to the limit that fits.
func (q *Quota) highest(fits func(level int) bool) int {
	q.sort()
	return sort.Search(q.limit, func(i int) bool { return !fits(i + 1) })
}

// below is what the shares would hold together if none held more than a level.
func (q *Quota) below(level int) int {
	i, _ := slices.BinarySearch(q.sorted, level)
	return q.sums[i] + (len(q.sorted)-i)*level
}

func (q *Quota) sort() {
	q.age++
	if !q.changed || q.age <= len(q.shares)/sortedFor {
		return
	}
	q.changed, q.age = false, 0
	q.sorted, q.sums = q.sorted[:0], append(q.sums[:0], 0)
	for s := range q.shares {
		q.sorted = append(q.sorted, s.used)
	}
	slices.Sort(q.sorted)
	for i, used := range q.sorted {
		q.sums = append(q.sums, q.sums[i]+used)
	}
}

// Lack says how much more the share would hold now without the limit.
func (s *Share) Lack(n int) {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.quota.lacking += n - s.lacking
	s.lacking = n
}

// Set says what the share holds now.
func (s *Share) Set(n int) {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.set(n)
}

func (s *Share) set(n int) {
	if n != s.used {
		s.quota.used += n - s.used
		s.used = n
		s.quota.changed = true
	}
}

// Take takes one more; false where there is no room.
func (s *Share) Take() bool {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	if s.room() < 1 {
		return false
	}
	s.set(s.used + 1)
	return true
}

// Give gives one back.
func (s *Share) Give() {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.set(s.used - 1)
}

// Most returns the one that holds most of something of which there are no more, and
// whether it is fair that it gives one to another.
func Most[T comparable](held map[T]int, to T) (most T, fair bool) {
	for one, n := range held {
		if n > held[most] {
			most = one
		}
	}
	return most, held[most] > held[to]+1
}
