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
// before its begin, at most apart old; NaN without one.
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

// mean is the mean of a state in a span, and of how many readings.
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
