package gpu

import (
	"math"
	"slices"
)

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
