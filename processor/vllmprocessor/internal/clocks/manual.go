package clocks

import (
	"slices"
	"time"
)

// Manual is the time of a story or a history. It moves only when its owner says so, and
// stands still while something happens. It is not safe for concurrent use.
type Manual struct {
	now   time.Time
	calls []*call
}

// call is one of Every.
type call struct {
	next  time.Time
	every time.Duration
	f     func()
}

// NewManual returns a clock that stands at a time.
func NewManual(at time.Time) *Manual { return &Manual{now: at} }

// Now returns the time.
func (c *Manual) Now() time.Time { return c.now }

// Every calls f at an interval while the clock moves.
func (c *Manual) Every(d time.Duration, f func()) (stop func()) {
	added := &call{c.now.Add(d), d, f}
	c.calls = append(c.calls, added)
	return func() {
		c.calls = slices.DeleteFunc(c.calls, func(one *call) bool { return one == added })
	}
}

// Advance moves the clock, and makes the calls that are due on the way in the order of
// their times.
func (c *Manual) Advance(to time.Time) {
	for {
		var first *call
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
