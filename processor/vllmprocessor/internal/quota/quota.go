// Package quota divides a limit among those that share it, so that one of them
// takes nothing from the others.
package quota

import "sync"

// Quota is a limit for what all its shares hold together. Each share may hold the
// limit divided by the number of shares, whatever the others hold. It may hold
// more as long as the limit is not reached, and gives that back once others need
// it. Until it does, the limit can be exceeded, up to twice the limit.
type Quota struct {
	mu                  sync.Mutex
	limit, used, shares int
}

// New returns a quota.
func New(limit int) *Quota { return &Quota{limit: limit} }

// Limit is the most that all shares together may hold.
func (q *Quota) Limit() int { return q.limit }

// Used is what all shares together hold.
func (q *Quota) Used() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// Share is what one of them holds. A nil share holds nothing.
type Share struct {
	quota *Quota
	used  int
}

// Open returns a new share.
func (q *Quota) Open() *Share {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shares++
	return &Share{quota: q}
}

// Close gives back all that a share holds.
func (s *Share) Close() {
	if s == nil {
		return
	}
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.quota.used -= s.used
	s.quota.shares--
	s.used = 0
}

// Room is how much more the share may hold.
func (s *Share) Room() int {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	return s.room()
}

func (s *Share) room() int {
	q := s.quota
	own := min(q.limit/max(q.shares, 1)-s.used, 2*q.limit-q.used)
	return max(own, q.limit-q.used, 0)
}

// Excess is how much the share has to give back.
func (s *Share) Excess() int {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	q := s.quota
	return max(0, min(q.used-q.limit, s.used-q.limit/max(q.shares, 1)))
}

// Set says what the share holds now.
func (s *Share) Set(n int) {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.quota.used += n - s.used
	s.used = n
}

// Take takes one more; false where there is no room.
func (s *Share) Take() bool {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	if s.room() < 1 {
		return false
	}
	s.used++
	s.quota.used++
	return true
}

// Give gives one back.
func (s *Share) Give() {
	s.quota.mu.Lock()
	defer s.quota.mu.Unlock()
	s.used--
	s.quota.used--
}
