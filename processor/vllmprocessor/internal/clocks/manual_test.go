package clocks

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTheClockMakesItsCallsInOrderAndStandsStillMeanwhile(t *testing.T) {
	begin := time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)
	c := NewManual(begin)
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
