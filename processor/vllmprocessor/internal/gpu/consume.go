package gpu

import "math"

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
	last, value := span.From, d.valueAt(f, span.From, apart, false)
	end := d.valueAt(f, span.To, apart, false)
	var area float64
	for i, at := range d.times {
		if d.columns[f] == nil || at <= span.From || at >= span.To || math.IsNaN(d.columns[f][i]) {
			continue
		}
		if at-last > apart {
			return math.NaN()
		}
		area += float64(at-last) * (value + d.columns[f][i]) / 2
		last, value = at, d.columns[f][i]
	}
	if span.To-last > apart {
		return math.NaN()
	}
	area += float64(span.To-last) * (value + end) / 2
	return area / float64(span.To-span.From)
}

// Newest is the time of the newest value of a field; 0 without one.
func (d *Device) Newest(f Field) int64 {
	for i := len(d.times) - 1; i >= 0 && d.columns[f] != nil; i-- {
		if !math.IsNaN(d.columns[f][i]) {
			return d.times[i]
		}
	}
	return 0
}

// NewestReading is the time of the newest reading.
func (d *Device) NewestReading() int64 { return d.times[len(d.times)-1] }

// NewestOf is the newest value of a field; NaN where it is older than a time.
func (d *Device) NewestOf(f Field, since int64) float64 {
	for i := len(d.times) - 1; i >= 0 && d.times[i] >= since && d.columns[f] != nil; i-- {
		if !math.IsNaN(d.columns[f][i]) {
			return d.columns[f][i]
		}
	}
	return math.NaN()
}
