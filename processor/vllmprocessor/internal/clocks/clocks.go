// Package clocks is the time of a processor: a real one, or that of a simulation.
package clocks

import (
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

// Real is the clock of the machine.
type Real struct{}

// Now returns the time.
func (Real) Now() time.Time { return time.Now() }

// Every calls f from a goroutine of its own. A call that takes longer than d delays the
// next one.
func (Real) Every(d time.Duration, f func()) (stop func()) {
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
