package vllmfleetextension

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/fleet"
)

const (
	// minutes is how far back the curves of an engine go, one value a minute.
	minutes = 60
	// mostEngines bounds the engines with curves: 900 bytes each, 9 MB in all.
	mostEngines = 10_000
	// mostEvents and eventBytes bound the changes that are kept; the oldest are dropped.
	mostEvents = 1000
	eventBytes = 1 << 20
)

// curves are the last hour of the numbers that are drawn.
type curves struct {
	values [len(drawn)][minutes]float32
	// next is where the next minute goes, seen the minute of the last value.
	next int
	seen time.Time
}

// drawn are the numbers with a curve.
var drawn = [...]fleet.Number{fleet.FirstToken, fleet.TokenGap, fleet.Waiting}

// history has the curves of engines and the newest changes. Its owner guards it.
type history struct {
	engines map[string]*curves
	events  []fleet.Event
	bytes   int
}

// record takes a value of each engine for one minute, and forgets engines that were not seen for an hour.
func (h *history) record(v *view) {
	for i := range v.engines {
		e := &v.engines[i]
		c := h.engines[e.Key]
		if c == nil {
			if len(h.engines) >= mostEngines {
				continue
			}
			c = &curves{}
			for n := range c.values {
				for m := range c.values[n] {
					c.values[n][m] = float32(math.NaN())
				}
			}
			h.engines[e.Key] = c
		}
		for n, of := range drawn {
			c.values[n][c.next] = float32(e.Numbers[of])
		}
		c.next, c.seen = (c.next+1)%minutes, v.at
	}
	for key, c := range h.engines {
		if v.at.Sub(c.seen) > minutes*time.Minute {
			delete(h.engines, key)
		}
	}
}

// tell keeps changes.
func (h *history) tell(events []fleet.Event) {
	for i := range events {
		h.events = append(h.events, events[i])
		h.bytes += size(&events[i])
	}
	drop := 0
	for len(h.events)-drop > mostEvents || h.bytes > eventBytes {
		h.bytes -= size(&h.events[drop])
		drop++
	}
	h.events = slices.Delete(h.events, 0, drop)
}

func size(e *fleet.Event) int {
	return len(e.Subject) + len(e.Sentence) + len(e.Detail) + 256
}

// about returns the changes of an engine or a pool or, without a key, all, the newest first.
func (h *history) about(key string) []eventDocument {
	found := []eventDocument{}
	for i := range h.events {
		if e := &h.events[len(h.events)-1-i]; key == "" || e.Key == key {
			found = append(found, eventOf(e))
		}
	}
	return found
}

// points returns a curve, the oldest minute first.
func (c *curves) points(n int) []float32 {
	return append(slices.Clone(c.values[n][c.next:]), c.values[n][:c.next]...)
}
