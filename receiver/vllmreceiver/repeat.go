package vllmreceiver

import (
	"sync"
	"time"
)

// repeater calls a function again and again, at fixed times. It has no goroutine between two
// calls: with one for each of a thousand targets, most of the memory of a target would be the
// stack that a scrape needs for a moment.
type repeater struct {
	interval time.Duration
	call     func()

	mu    sync.Mutex
	timer *time.Timer
	// next is when the timer expires.
	next time.Time
	// running is true during a call, and late if the time of the next one came meanwhile.
	running, late bool
	stopped       bool
	// idle is closed when a call ends after stop.
	idle chan struct{}
}

// newRepeater calls a function at a time and then once in each interval. Of the calls whose time
// comes while one runs, one is made when that ends and the others are left out, as with a
// time.Ticker.
func newRepeater(first time.Time, interval time.Duration, call func()) *repeater {
	r := &repeater{interval: interval, call: call, next: first, idle: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(time.Until(first), r.expired)
	return r
}

func (r *repeater) expired() {
	if !r.begin() {
		return
	}
	for {
		r.call()
		if !r.again() {
			return
		}
	}
}

// begin reports whether a call can be made now, and sets the time of the next one.
func (r *repeater) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return false
	}
	now := time.Now()
	r.next = r.next.Add(r.interval)
	if behind := now.Sub(r.next); behind > 0 {
		// The machine has slept.
		r.next = r.next.Add(behind.Truncate(r.interval) + r.interval)
	}
	r.timer.Reset(r.next.Sub(now))
	if r.running {
		r.late = true
		return false
	}
	r.running = true
	return true
}

// again reports whether the next call is due already.
func (r *repeater) again() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.late && !r.stopped {
		r.late = false
		return true
	}
	r.running = false
	if r.stopped {
		close(r.idle)
	}
	return false
}

// stop makes no further call, and waits for the one that runs. It must be called once.
func (r *repeater) stop() {
	r.mu.Lock()
	r.stopped = true
	r.timer.Stop()
	running := r.running
	r.mu.Unlock()
	if running {
		<-r.idle
	}
}
