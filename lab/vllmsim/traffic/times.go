package traffic

import (
	"fmt"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// finish makes traffic of the rows.
func (b *builder) finish() (*engine.Traffic, error) {
	t := b.traffic
	if len(t.Arrivals) == 0 && len(t.Conversations) == 0 {
		return nil, fmt.Errorf("trace: %s has a header and no request: want one line for each", b.lines.path)
	}
	t.BlockTokens = b.size.result()
	if len(t.Arrivals) > 0 {
		spread(t.Arrivals)
		t.Span = span(t.Arrivals)
	}
	return t, nil
}

// coarse is the shortest tick of a clock, in seconds, that hides how requests followed one
// another. Below, equal times are requests that came together.
const coarse = 0.1

// spread moves requests apart that share a time because the clock of the source was coarse:
// evenly, up to the next tick. Without it, each tick would be a burst.
func spread(all []engine.Arrival) {
	tick := tickOf(all)
	if tick == 0 {
		return
	}
	for from := 0; from < len(all); {
		to := from + 1
		for to < len(all) && all[to].At == all[from].At {
			to++
		}
		step := tick
		if to < len(all) {
			// Ticks differ in their last digit; a pause is several of them.
			if next := all[to].At - all[from].At; next < 1.5*tick {
				step = next
			}
		}
		start := all[from].At
		for i := from; i < to; i++ {
			all[i].At = start + step*float64(i-from)/float64(to-from)
		}
		from = to
	}
}

// tickOf returns the tick of a coarse clock, 0 where the clock is fine: the least distance
// of two times, if every distance is a multiple of it.
func tickOf(all []engine.Arrival) float64 {
	tick := math.Inf(1)
	for i := 1; i < len(all); i++ {
		if gap := all[i].At - all[i-1].At; gap > 0 {
			tick = min(tick, gap)
		}
	}
	if tick < coarse || math.IsInf(tick, 1) {
		return 0
	}
	for i := 1; i < len(all); i++ {
		ticks := (all[i].At - all[i-1].At) / tick
		// Clocks of milliseconds make ticks of 2.999 and of 3.001 s, so a pause of many ticks
		// may be off by more than one tick.
		if math.Abs(ticks-math.Round(ticks)) > 0.01*ticks {
			return 0
		}
	}
	return tick
}

// span is how long the traffic lasts: one mean gap beyond the last request, or up to the full
// hour where that is near: a window of a day has its last request just before midnight.
func span(all []engine.Arrival) float64 {
	const hour = 3600
	last := all[len(all)-1].At
	gap := 1.0
	if n := len(all) - 1; n > 0 && last > all[0].At {
		gap = (last - all[0].At) / float64(n)
	}
	if full := math.Ceil(last/hour) * hour; full > last && full-last <= max(gap, last/1000) {
		return full
	}
	return last + gap
}
