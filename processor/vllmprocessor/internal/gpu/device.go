// Package gpu keeps the newest readings of GPUs, joins the GPUs to the servers that use them,
// says what a GPU did in a span of time, and has the peak throughput of each kind of GPU. It is
// pure: time is a parameter.
//
// The receiver reads the exporters of GPUs (DCGM's and AMD's). A batch is what one of them
// reports of the GPUs of one workload at one time; a reading is one GPU of it. Batches may come
// from other collectors, in any order and late: readings are placed by their own time.
package gpu

import (
	"math"
	"slices"
	"sort"
)

// Device is the newest readings of one GPU of a workload.
type Device struct {
	// ID and Name are as in its readings.
	ID, Name string

	// times are in Unix nanoseconds and grow; each column has the values of a field at these
	// times, or is nil where the field was never reported.
	times   []int64
	columns [NumFields][]float64
	// parts is the number of parts whose values a field adds up.
	parts [NumFields]uint8
}

// slots is how many readings of a GPU are kept. They are a quarter of a window apart, so that
// they cover the hold, the windows of a report and those before it.
const (
	slotsOfWindow = 4
	keptWindows   = 16
	slots         = slotsOfWindow * keptWindows
)

// put places a reading by its time. Of the readings of one slot the newest is kept. It returns
// false for a reading that is older than what is kept.
func (d *Device) put(at int64, r *Reading, window int64) bool {
	slot := max(window/slotsOfWindow, 1)
	n := len(d.times)
	if n > 0 && at <= d.times[n-1]-window*keptWindows {
		return false
	}
	i := sort.Search(n, func(i int) bool { return d.times[i]/slot >= at/slot })
	switch {
	case i == n || d.times[i]/slot != at/slot:
		d.insert(i, at)
	case at < d.times[i]:
		return true
	case at > d.times[i]:
		for f := range d.columns {
			if d.columns[f] != nil {
				d.columns[f][i] = math.NaN()
			}
		}
		d.times[i] = at
	}
	for f, value := range r.Values {
		if !math.IsNaN(value) {
			d.set(Field(f), i, value, r.Parts[f])
		}
	}
	d.trim(window)
	return true
}

func (d *Device) insert(i int, at int64) {
	d.times = inserted(d.times, i, at)
	for f := range d.columns {
		if d.columns[f] != nil {
			d.columns[f] = inserted(d.columns[f], i, math.NaN())
		}
	}
}

// inserted inserts a value, and makes room for no more than are kept.
func inserted[T int64 | float64](all []T, i int, value T) []T {
	if n := len(all); n == cap(all) {
		all = append(make([]T, 0, max(min(2*n, slots+1), n+1)), all...)
	}
	return slices.Insert(all, i, value)
}

// set sets a value. Sums of another number of parts cannot be compared: the newer one counts.
func (d *Device) set(f Field, i int, value float64, parts uint8) {
	if d.columns[f] == nil {
		d.columns[f] = make([]float64, len(d.times), cap(d.times))
		for j := range d.columns[f] {
			d.columns[f][j] = math.NaN()
		}
		d.parts[f] = parts
	}
	if d.parts[f] != parts {
		if i < len(d.times)-1 {
			return
		}
		for j := range d.columns[f][:i] {
			d.columns[f][j] = math.NaN()
		}
		d.parts[f] = parts
	}
	d.columns[f][i] = value
}

func (d *Device) trim(window int64) {
	newest := d.times[len(d.times)-1]
	old := 0
	for d.times[old] <= newest-window*keptWindows || len(d.times)-old > slots {
		old++
	}
	if old == 0 {
		return
	}
	d.times = slices.Delete(d.times, 0, old)
	for f := range d.columns {
		if d.columns[f] != nil {
			d.columns[f] = slices.Delete(d.columns[f], 0, old)
		}
	}
}
