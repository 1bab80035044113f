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
	// mostEvents and eventBytes bound the changes that are kept, and mostOfOne those of one engine or pool that are
	// shown; the oldest are left out.
	mostEvents = 1000
	eventBytes = 1 << 20
	mostOfOne  = 50
)

// curves are the last hour of the numbers that are drawn.
type curves struct {
	// values are by the minute since 1970, modulo an hour; minute is that of the newest.
	values [len(drawn)][minutes]float32
	minute int64
}

// drawn are the numbers with a curve.
var drawn = [...]fleet.Number{fleet.FirstToken, fleet.TokenGap, fleet.Waiting}

// history has the curves of engines and the newest changes. Its owner guards it.
type history struct {
	engines map[string]*curves
	events  []fleet.Event
	bytes   int
}

func minuteOf(at time.Time) int64 { return at.Unix() / 60 }

// record takes a value of each engine for one minute, and forgets engines that were not seen for an hour. Where there is
// no room for all, it forgets those first that are not there any more.
func (h *history) record(v *view) {
	now, missing := minuteOf(v.at), 0
	for i := range v.engines {
		if h.engines[v.engines[i].Key] == nil {
			missing++
		}
	}
	full := len(h.engines)+missing > mostEngines
	for key, c := range h.engines {
		if _, seen := v.byID[key]; !seen && (full || now-c.minute >= minutes) {
			delete(h.engines, key)
		}
	}
	for i := range v.engines {
		e := &v.engines[i]
		c := h.engines[e.Key]
		if c == nil {
			if len(h.engines) >= mostEngines {
				continue
			}
			c = &curves{}
			h.engines[e.Key] = c
		}
		from := max(c.minute+1, now-minutes+1)
		if now < c.minute {
			from = now - minutes + 1 // The clock was set back.
		}
		for n, of := range drawn {
			for m := from; m < now; m++ {
				c.values[n][m%minutes] = float32(math.NaN())
			}
			c.values[n][now%minutes] = float32(e.Numbers[of])
		}
		c.minute = now
	}
}

// points returns the curve of the last hour, the oldest minute first; NaN where there is no value.
func (c *curves) points(n int, at time.Time) []float32 {
	all := make([]float32, 0, minutes)
	for m := minuteOf(at) - minutes + 1; m <= minuteOf(at); m++ {
		value := float32(math.NaN())
		if m <= c.minute && m > c.minute-minutes {
			value = c.values[n][m%minutes]
		}
		all = append(all, value)
	}
	return all
}

// tell keeps changes.
func (h *history) tell(events []fleet.Event) {
	for i := max(0, len(events)-mostEvents); i < len(events); i++ {
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

// size is more than an event takes in memory.
func size(e *fleet.Event) int {
	return len(e.Key) + len(e.Subject) + len(e.Sentence) + len(e.Detail) + 256
}

// about returns so many of the changes of an engine or a pool or, without a key, of all, the newest first.
func (h *history) about(key string, most int) []eventDocument {
	found := []eventDocument{}
	for i := len(h.events) - 1; i >= 0 && len(found) < most; i-- {
		if e := &h.events[i]; key == "" || e.Key == key {
			found = append(found, eventOf(e))
		}
	}
	return found
}
