package gpu

import (
	"math"
	"slices"
)

// Span is a span of time, in Unix nanoseconds.
type Span struct{ From, To int64 }

// length is in seconds.
func (s Span) length() float64 { return float64(s.To-s.From) / 1e9 }

// counted is what a counter shows of a span.
type counted struct {
	// increase is over the seconds that were seen.
	increase, seconds float64
	// last is the time of its newest value.
	last int64
	// whole is true where the counter was there throughout: from before the span to its end,
	// without a gap and without a fall.
	whole bool
}

// each goes through the known values of a field in a span: before is the newest value at or
// before its start, at most apart old; NaN without one.
func (d *Device) each(f Field, span Span, apart int64, visit func(at int64, value float64)) {
	column := d.columns[f]
	if column == nil {
		return
	}
	first, _ := slices.BinarySearch(d.times, span.From+1)
	for i := first - 1; i >= 0 && span.From-d.times[i] <= apart; i-- {
		if !math.IsNaN(column[i]) {
			visit(d.times[i], column[i])
			break
		}
	}
	for i := first; i < len(d.times) && d.times[i] <= span.To; i++ {
		if !math.IsNaN(column[i]) {
			visit(d.times[i], column[i])
		}
	}
}

// count adds up the increases of a counter in a span. An increase over a gap is left out, and
// so is what follows a fall: after a reset the value can be that of a time long ago.
func (d *Device) count(f Field, span Span, apart int64) (c counted) {
	var before float64
	var last int64
	c.whole = true
	d.each(f, span, apart, func(at int64, value float64) {
		switch {
		case last == 0:
			c.whole = at <= span.From
		case at-last > apart, value < before:
			c.whole = false
		default:
			c.increase += value - before
			c.seconds += float64(at-last) / 1e9
		}
		before, last = value, at
	})
	c.whole, c.last = c.whole && last != 0 && span.To-last <= apart, last
	return c
}

func (d *Device) mean(f Field, span Span, include func(i int) bool) (mean float64, n int) {
	column := d.columns[f]
	if column == nil {
		return math.NaN(), 0
	}
	for i, at := range d.times {
		if at > span.From && at <= span.To && !math.IsNaN(column[i]) && (include == nil || include(i)) {
			mean += column[i]
			n++
		}
	}
	if n == 0 {
		return math.NaN(), 0
	}
	return mean / float64(n), n
}

// at is the value of a field at a place; NaN where it is not known.
func (d *Device) at(f Field, i int) float64 {
	if d.columns[f] == nil {
		return math.NaN()
	}
	return d.columns[f][i]
}

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
	// leastReadings is the least number of readings for a share or a mean of states. DCGM reads a
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
// remap a row, in a span. The first value that is known is not an event: a code stays for ever.
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

// valueAt is the value of a field at a time, on the line between the readings around it; NaN
// where these are not there, too far apart, or, for a counter, have a reset between them.
func (d *Device) valueAt(f Field, at, apart int64, counter bool) float64 {
	column := d.columns[f]
	before := -1
	for i := range column {
		if math.IsNaN(column[i]) {
			continue
		}
		switch {
		case d.times[i] == at:
			return column[i]
		case d.times[i] < at:
			before = i
			continue
		case before < 0, d.times[i]-d.times[before] > apart, counter && column[i] < column[before]:
			return math.NaN()
		}
		part := float64(at-d.times[before]) / float64(d.times[i]-d.times[before])
		return column[before] + part*(column[i]-column[before])
	}
	return math.NaN()
}

// EnergyOf is the energy in joules that a GPU took in a span, by its counter; NaN where the
// counter was not there throughout.
func (d *Device) EnergyOf(span Span, apart int64) float64 {
	if c := d.count(Energy, span, apart); !c.whole {
		return math.NaN()
	}
	return d.valueAt(Energy, span.To, apart, true) - d.valueAt(Energy, span.From, apart, true)
}

// MeanOf is the mean of a state over a span, on the lines between its readings; NaN where it was
// not there throughout.
func (d *Device) MeanOf(f Field, span Span, apart int64) float64 {
	var area float64
	last, before := span.From, d.valueAt(f, span.From, apart, false)
	add := func(at int64, value float64) {
		if at-last > apart {
			area = math.NaN()
		}
		area += float64(at-last) * (before + value) / 2
		last, before = at, value
	}
	for i, at := range d.times {
		if value := d.at(f, i); at > span.From && at < span.To && !math.IsNaN(value) {
			add(at, value)
		}
	}
	add(span.To, d.valueAt(f, span.To, apart, false))
	return area / float64(span.To-span.From)
}

// newest is the place of the newest value of a field; -1 without one.
func (d *Device) newest(f Field) int {
	for i := range slices.Backward(d.times) {
		if !math.IsNaN(d.at(f, i)) {
			return i
		}
	}
	return -1
}

// Newest is the time of the newest value of a field; 0 without one.
func (d *Device) Newest(f Field) int64 {
	if i := d.newest(f); i >= 0 {
		return d.times[i]
	}
	return 0
}

// NewestReading is the time of the newest reading.
func (d *Device) NewestReading() int64 { return d.times[len(d.times)-1] }

// NewestOf is the newest value of a field; NaN where it is older than a time.
func (d *Device) NewestOf(f Field, since int64) float64 {
	if i := d.newest(f); i >= 0 && d.times[i] >= since {
		return d.columns[f][i]
	}
	return math.NaN()
}
