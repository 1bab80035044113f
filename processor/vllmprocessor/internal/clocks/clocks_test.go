package clocks

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheRealClockCallsUntilItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []time.Duration
		began := Real{}.Now()
		stop := Real{}.Every(time.Minute, func() { calls = append(calls, time.Since(began)) })
		time.Sleep(3*time.Minute + time.Second)
		stop()
		stop()
		time.Sleep(time.Hour)
		assert.Equal(t, []time.Duration{time.Minute, 2 * time.Minute, 3 * time.Minute}, calls)
	})
}

func TestStopWaitsForTheCallUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Bool
		stop := Real{}.Every(time.Minute, func() {
			time.Sleep(10 * time.Second)
			ended.Store(true)
		})
		time.Sleep(time.Minute + time.Second)
		assert.False(t, ended.Load())
		stop()
		assert.True(t, ended.Load())
	})
}
