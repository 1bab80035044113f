package gpu

import (
	"math"
	"slices"
)

// Limit is what limits the clocks of a GPU.
type Limit uint8

// The limits.
const (
	ByPower Limit = iota
	ByHeat

	// NumLimits is the number of limits, for arrays over them.
	NumLimits
)

const (
	// seenPart is the part of a span that readings have to cover.
	seenPart = 0.5
	// leastReadings is of how many readings a share or a mean of states is known. DCGM reads a
	// GPU every 30 s.
	leastReadings = 3
	// busy is the utilization from which on a GPU is at work: below it the clocks may be low
	// because there is little to do.
	busy = 0.3
)

// source is where the share of the time comes from, the best first: a counter of seconds, one of
// samples, the reasons at each reading, and shares of a moment.
type source uint8

const (
	seconds source = iota
	samples
	reasons
	ratios

	numSources
)

var fieldsOf = [NumLimits][numSources]Field{
	ByPower: {PowerTime, PowerResidency, PowerActive, PowerRatio},
	ByHeat:  {ThermalTime, ThermalResidency, ThermalActive, ThermalRatio},
}

// Limited is the share of the time in which a limit held the clocks down, in two spans, both
// from the same source. It returns false where it is not known in one of them.
func (d *Device) Limited(l Limit, before, now Span, apart int64) (was, is float64, known bool) {
	for s := range numSources {
		was, is = d.share(l, s, before, apart), d.share(l, s, now, apart)
		if !math.IsNaN(was) && !math.IsNaN(is) {
			return was, is, true
		}
	}
	return math.NaN(), math.NaN(), false
}

// LimitedThroughout is the same of one span, from counters that were there throughout, and until
// a time at least. It returns false where they were not: then a limit cannot be ruled out.
func (d *Device) LimitedThroughout(l Limit, span Span, until, apart int64) (share float64, whole bool) {
	for s := range reasons {
		c, per := d.counted(l, s, span, apart)
		if c.whole && per > 0 && c.last >= until {
			return min(c.increase/per, 1), true
		}
	}
	return math.NaN(), false
}

// counted is the increase of the counter of a limit, and of what it is a part of.
func (d *Device) counted(l Limit, s source, span Span, apart int64) (c counted, per float64) {
	c = d.count(fieldsOf[l][s], span, apart)
	if s == seconds {
		return c, c.seconds
	}
	all := d.count(ResidencyReference, span, apart)
	c.whole = c.whole && all.whole
	return c, all.increase
}

func (d *Device) share(l Limit, s source, span Span, apart int64) float64 {
	if s == seconds || s == samples {
		c, per := d.counted(l, s, span, apart)
		if c.seconds < seenPart*span.length() || !(per > 0) {
			return math.NaN()
		}
		return min(c.increase/per, 1)
	}
	mean, n := d.mean(fieldsOf[l][s], span, nil)
	if n < leastReadings {
		return math.NaN()
	}
	return mean
}

// BusyClock is the mean clock of the readings in a span at which the GPU was at work; NaN where
// it is not known.
func (d *Device) BusyClock(span Span) float64 {
	mean, n := d.mean(Clock, span, func(i int) bool {
		idle, utilization := d.at(IdleActive, i), d.at(Utilization, i)
		if idle == 1 {
			return false
		}
		return utilization >= busy || math.IsNaN(utilization) && idle == 0
	})
	if n < leastReadings {
		return math.NaN()
	}
	return mean
}

// Rate is by how much a counter grew in a span, and by how much in a second. Both are NaN
// where less than half of the span was seen.
func (d *Device) Rate(f Field, span Span, apart int64) (increase, perSecond float64) {
	c := d.count(f, span, apart)
	if c.seconds < seenPart*span.length() || !(c.seconds > 0) {
		return math.NaN(), math.NaN()
	}
	return c.increase, c.increase / c.seconds
}

// memoryCodes are the XIDs that report an error of the GPU's memory, by NVIDIA's catalogue:
// an uncorrectable error (48), a row remapped or a page retired (63), the same failed (64), a
// high rate of corrected errors (92), an uncorrectable error that was contained (94) or not
// (95), and one that could not be recovered (140).
var memoryCodes = map[float64]bool{48: true, 63: true, 64: true, 92: true, 94: true, 95: true, 140: true}

// MemoryEvents counts the changes of the last error code to one of the memory, and failures to
// remap a row, in a span. The first value that is known is no event: a code stays for ever.
func (d *Device) MemoryEvents(span Span, apart int64) (events int) {
	for _, f := range [...]Field{XID, RemapFailed} {
		var before float64
		var last int64
		d.each(f, span, apart, func(at int64, value float64) {
			isEvent := f == XID && memoryCodes[value] || f == RemapFailed && value > 0
			if last != 0 && at-last <= apart && value != before && isEvent {
				events++
			}
			before, last = value, at
		})
	}
	return events
}

// NewestBefore reports whether the GPU was read in the time up to apart before a time.
func (d *Device) NewestBefore(at, apart int64) bool {
	return slices.ContainsFunc(d.times, func(t int64) bool { return t <= at && at-t <= apart })
}
