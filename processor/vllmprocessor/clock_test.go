package vllmprocessor

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
		began := realClock{}.Now()
		stop := realClock{}.Every(time.Minute, func() { calls = append(calls, time.Since(began)) })
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
		stop := realClock{}.Every(time.Minute, func() {
			time.Sleep(10 * time.Second)
			ended.Store(true)
		})
		time.Sleep(time.Minute + time.Second)
		assert.False(t, ended.Load())
		stop()
		assert.True(t, ended.Load())
	})
}

func TestTheClockMakesItsCallsInOrderAndStandsStillMeanwhile(t *testing.T) {
	begin := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	c := NewManualClock(begin)
	type made struct {
		name string
		at   time.Duration
	}
	var calls []made
	note := func(name string) func() {
		return func() { calls = append(calls, made{name, c.Now().Sub(begin)}) }
	}
	stop := c.Every(10*time.Second, note("ten"))
	c.Every(15*time.Second, note("fifteen"))
	c.Advance(begin.Add(30 * time.Second))
	stop()
	c.Advance(begin.Add(46 * time.Second))
	assert.Equal(t, []made{
		{"ten", 10e9}, {"fifteen", 15e9}, {"ten", 20e9}, {"ten", 30e9}, {"fifteen", 30e9}, {"fifteen", 45e9},
	}, calls)
	assert.Equal(t, begin.Add(46*time.Second), c.Now())
}
