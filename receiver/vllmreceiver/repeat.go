package vllmreceiver

import (
	"hash/fnv"
	"sync/atomic"
	"time"
)

// repeater calls a function again and again, at fixed times. It has no goroutine between two
// calls: with one for each of a thousand targets, most of the memory of a target would be the
// stack that a scrape needs for a moment.
type repeater struct {
	interval time.Duration
	call     func(due time.Time)
	stopped  atomic.Bool
	// turn is held during a call; timer and next, which is when it expires, need it.
	turn  chan struct{}
	timer *time.Timer
	next  time.Time
}

// newRepeater calls a function at a time and then once in each interval, with that time. Of the calls whose time
// comes while one runs, one is made when that ends and the others are left out, as with a
// time.Ticker.
func newRepeater(first time.Time, interval time.Duration, call func(due time.Time)) *repeater {
	r := &repeater{interval: interval, call: call, next: first, turn: make(chan struct{}, 1)}
	r.turn <- struct{}{}
	r.timer = time.AfterFunc(time.Until(first), r.expired)
	<-r.turn
	return r
}

func (r *repeater) expired() {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	if r.stopped.Load() {
		return
	}
	due := r.next
	r.next = r.next.Add(r.interval)
	if behind := time.Since(r.next); behind > 0 {
		// The machine has slept.
		r.next = r.next.Add(behind.Truncate(r.interval) + r.interval)
	}
	r.call(due)
	if behind := time.Since(r.next); behind > 0 {
		r.next = r.next.Add(behind.Truncate(r.interval))
	}
	r.timer.Reset(time.Until(r.next))
}

// stop makes no further call, and waits for the one that runs.
func (r *repeater) stop() {
	r.stopped.Store(true)
	r.turn <- struct{}{}
	r.timer.Stop()
	<-r.turn
}

// The scrapes of many targets are spread over the interval, in groups: the targets of a group
// are scraped at the same moment. A scrape that follows another one at once finds the code, the
// layout and the plan in the cache of the processor, and takes less than half of the processor
// time of one for which the machine was woken up (docs/why/performance.md).
const (
	// longestStep is the longest time between two groups.
	longestStep = time.Second
	// together is the size of a group where the step is shorter than that. It bounds how many
	// bodies are in memory at a time.
	together = 16
)

// step returns the time between two groups for a number of targets. It is at most the interval.
// Each step is a half of the next longer one, so that the groups of any number of targets fall
// together.
func step(interval time.Duration, targets int) time.Duration {
	out := min(longestStep, interval)
	for longest := interval * together / time.Duration(max(1, targets)); out > longest && out > 1; {
		out /= 2
	}
	return out
}

// phaseOf returns when the i-th of a number of targets is scraped for the first time, after the
// first one. It is less than the interval.
func phaseOf(interval time.Duration, i, targets int) time.Duration {
	return (interval * time.Duration(i) / time.Duration(targets)).Truncate(step(interval, targets))
}

// phaseAt is the same for a target that is found later, one of a number of targets. It depends
// on the address, so that the targets that a restart finds at once are spread as well. passed is
// the time since the first target began: the groups of all targets fall together.
func phaseAt(interval time.Duration, address string, targets int, passed time.Duration) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(address))
	after := passed + time.Duration(hash.Sum64()%uint64(interval))
	return after.Truncate(step(interval, targets)) - passed
}
