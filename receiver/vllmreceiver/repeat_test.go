package vllmreceiver

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// The times of the calls are those of a time.Ticker behind a delay, whatever the calls take.
func TestARepeaterCallsWhenATickerWould(t *testing.T) {
	for name, takes := range map[string]func(call int) time.Duration{
		"at once":          func(int) time.Duration { return 0 },
		"one is late":      func(call int) time.Duration { return map[int]time.Duration{2: 15 * time.Second}[call] },
		"one is very late": func(call int) time.Duration { return map[int]time.Duration{1: 45 * time.Second}[call] },
		"all are late":     func(int) time.Duration { return 14 * time.Second },
		"exactly one long": func(int) time.Duration { return 9999 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			const delay, interval, until = 3 * time.Second, 10 * time.Second, 2 * time.Minute
			var want, got []time.Duration
			synctest.Test(t, func(*testing.T) {
				began, done := time.Now(), make(chan struct{})
				go func() {
					defer close(done)
					time.Sleep(delay)
					ticker := time.NewTicker(interval)
					defer ticker.Stop()
					for time.Since(began) < until {
						want = append(want, time.Since(began))
						time.Sleep(takes(len(want) - 1))
						<-ticker.C
					}
				}()
				<-done
			})
			synctest.Test(t, func(*testing.T) {
				began := time.Now()
				r := newRepeater(began.Add(delay), interval, func(time.Time) {
					got = append(got, time.Since(began))
					time.Sleep(takes(len(got) - 1))
				})
				time.Sleep(until)
				r.stop()
			})
			assert.GreaterOrEqual(t, len(want), 8)
			assert.Equal(t, want[:8], got[:8])
		})
	}
}

func TestAStoppedRepeaterWaitsForItsCallAndMakesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, ended atomic.Int64
		r := newRepeater(time.Now().Add(time.Second), time.Second, func(time.Time) {
			calls.Add(1)
			time.Sleep(90 * time.Second)
			ended.Add(1)
		})
		time.Sleep(30 * time.Second)
		began := time.Now()
		r.stop()
		assert.Equal(t, 61*time.Second, time.Since(began))
		time.Sleep(time.Hour)
		assert.EqualValues(t, 1, calls.Load())
		assert.EqualValues(t, 1, ended.Load())
	})
}

func TestARepeaterThatIsStoppedBeforeItsDelayCallsNothing(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		r := newRepeater(time.Now().Add(time.Minute), time.Second, func(time.Time) { panic("called") })
		time.Sleep(59 * time.Second)
		r.stop()
		time.Sleep(time.Hour)
	})
}
