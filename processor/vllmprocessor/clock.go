package vllmprocessor

import (
	"slices"
	"sync"
	"time"
)

// Clock is where a processor gets the time from.
type Clock interface {
	// Now returns the time.
	Now() time.Time
	// Every calls f each time that d has passed, one call at a time, until stop is called.
	// Once stop has returned there are no more calls, and none is under way.
	Every(d time.Duration, f func()) (stop func())
}

// realClock is the clock of the machine.
type realClock struct{}

// Now returns the time.
func (realClock) Now() time.Time { return time.Now() }

// Every calls f from a goroutine of its own. A call that takes longer than d delays the
// next one.
func (realClock) Every(d time.Duration, f func()) (stop func()) {
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-end:
				return
			case <-ticker.C:
			}
			select {
			case <-end: // Both were ready.
				return
			default:
				f()
			}
		}
	})
	once := sync.OnceFunc(func() { close(end) })
	return func() {
		once()
		done.Wait()
	}
}

// ManualClock is the clock of a story or a history. It moves only when its owner says so, and
// stands still while something happens. It is not safe for concurrent use.
type ManualClock struct {
	now   time.Time
	calls []*timedCall
}

// timedCall is a call of Every.
type timedCall struct {
	next  time.Time
	every time.Duration
	f     func()
}

// NewManualClock returns a clock that stands at a time.
func NewManualClock(at time.Time) *ManualClock { return &ManualClock{now: at} }

// Now returns the time.
func (c *ManualClock) Now() time.Time { return c.now }

// Every calls f at an interval while the clock moves.
func (c *ManualClock) Every(d time.Duration, f func()) (stop func()) {
	added := &timedCall{c.now.Add(d), d, f}
	c.calls = append(c.calls, added)
	return func() {
		c.calls = slices.DeleteFunc(c.calls, func(one *timedCall) bool { return one == added })
	}
}

// Advance moves the clock, and makes the calls that are due on the way in the order of
// their times.
func (c *ManualClock) Advance(to time.Time) {
	for {
		var first *timedCall
		for _, one := range c.calls {
			if !one.next.After(to) && (first == nil || one.next.Before(first.next)) {
				first = one
			}
		}
		if first == nil {
			break
		}
		c.now = first.next
		first.next = first.next.Add(first.every)
		first.f()
	}
	c.now = to
}
