package vllmfleetextension

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

// curve is one without the minutes without a value, by the minutes that have passed since then.
func (a *asked) curve(name string, of int) map[int]float32 {
	known := map[int]float32{}
	if c := a.history.engines["key of "+name]; c != nil {
		points := c.points(of, a.clock)
		require.Len(a.t, points, minutes)
		for n, value := range points {
			if !math.IsNaN(float64(value)) {
				known[minutes-1-n] = value
			}
		}
	}
	return known
}

// wait lets minutes pass, at each of which the waiting requests of "a" are recorded; a negative number means that there is no engine.
func (a *asked) wait(waiting ...float64) {
	for _, n := range waiting {
		a.clock = a.clock.Add(tick)
		a.set()
		if n >= 0 {
			a.set(says("a", "healthy", func(e *fleet.Engine) { e.Numbers[fleet.Waiting] = n }))
		}
		a.record(a.view())
	}
}

func TestNothingIsComputedWhileNobodyAsks(t *testing.T) {
	a := ask(t, says("a", "healthy"))
	minute := func(n int) (asked int) {
		before := a.source.asked
		for range n {
			a.clock = a.clock.Add(tick)
			a.recordAsked()
		}
		return a.source.asked - before
	}
	assert.Zero(t, minute(200))
	require.Equal(t, "200 old", a.probe("/a"))
	assert.Equal(t, minutes-1, minute(200), "curves grow for the hour after a question")
	assert.Empty(t, a.history.engines, "and then take no memory")
	a.get("/")
	assert.Equal(t, 1, minute(1))
	assert.Len(t, a.history.engines, 1)
}

func TestCurves(t *testing.T) {
	const waiting = 2 // in drawn
	a := ask(t)
	a.wait(5, 6, -1, -1, 7)
	assert.Equal(t, map[int]float32{4: 5, 3: 6, 0: 7}, a.curve("a", waiting), "a gap stays a gap")
	assert.Empty(t, a.curve("a", 0), "what is not known has no value")
	a.clock = a.clock.Add(2 * tick)
	assert.Equal(t, map[int]float32{6: 5, 5: 6, 2: 7}, a.curve("a", waiting), "a curve gets old while nothing is recorded")
	for range 70 {
		a.wait(1)
	}
	assert.Len(t, a.curve("a", waiting), minutes, "one hour")
	assert.InDelta(t, 1, a.curve("a", waiting)[minutes-1], 0)
	a.clock = a.clock.Add(-30 * tick)
	a.wait(9)
	assert.Equal(t, map[int]float32{0: 9}, a.curve("a", waiting), "after the clock was set back, what was is left out")

	for range minutes {
		a.wait(-1)
	}
	assert.Empty(t, a.history.engines, "an engine that is gone for an hour is forgotten")
}

// After a restart of a large fleet under other names, the new engines have curves at once.
func TestCurvesAreBounded(t *testing.T) {
	a := ask(t)
	fill := func(prefix string) {
		var engines []fleet.Engine
		for n := range mostEngines + 10 {
			engines = append(engines, says(fmt.Sprint(prefix, n), "healthy"))
		}
		a.set(engines...)
		a.clock = a.clock.Add(tick)
		a.record(a.view())
		assert.Len(t, a.history.engines, mostEngines)
	}
	fill("a")
	fill("b")
	assert.Contains(t, a.history.engines, "key of b0")
	assert.NotContains(t, a.history.engines, "key of a0")
}

// The newest changes are kept, within their number and their bytes.
func TestEventsAreBounded(t *testing.T) {
	a := ask(t)
	event := func(n, bytes int) fleet.Event {
		return fleet.Event{Key: strconv.Itoa(n % 3), At: noon.Add(time.Duration(n) * time.Second), Sentence: strings.Repeat("x", bytes)}
	}
	for n := range 3 * mostEvents {
		a.tell([]fleet.Event{event(n, 10)})
	}
	all := a.events("", mostEvents)
	require.Len(t, all, mostEvents)
	assert.Equal(t, noon.Add((3*mostEvents-1)*time.Second), all[0].At)
	assert.Equal(t, noon.Add(2*mostEvents*time.Second), all[mostEvents-1].At)
	assert.Len(t, a.events("1", mostOfOne), mostOfOne)

	var many []fleet.Event
	for n := range 5 * mostEvents {
		many = append(many, event(n, 10_000))
	}
	a.tell(many)
	kept := 0
	for n := range a.history.events {
		kept += len(a.history.events[n].Sentence)
	}
	assert.LessOrEqual(t, kept, eventBytes)
	assert.Greater(t, kept, eventBytes*9/10)
	assert.LessOrEqual(t, cap(a.history.events), 4*mostEvents)
	a.tell([]fleet.Event{event(0, 2*eventBytes)})
	assert.Empty(t, a.history.events, "one that is too large is not kept")
	assert.Zero(t, a.history.bytes)
	a.tell([]fleet.Event{event(0, 1)})
	assert.Len(t, a.history.events, 1)
}
