package pools

import (
	"math"
	"slices"
	"time"
)

// unknownDelay is that of a pool without a gateway, or whose gateway had other requests.
var unknownDelay = Delay{math.NaN(), math.NaN(), math.NaN()}

const (
	// period is the time whose mean is one value of a history, and mostPeriods how many it has: a
	// day. So half a day is what makes a new delay usual.
	period      = 30 * time.Minute
	mostPeriods = 48
)

// history is what a number was: the means of periods. It is not stored. After a restart of the collector
// the usual value is known again once a period has passed.
type history struct {
	// means are in the order of a ring whose next place is next.
	means []float64
	next  int
	// began is the begin of the current period in Unix nanoseconds, sum and n are what it has.
	began  int64
	sum, n float64
}

// add takes a number at a time in Unix nanoseconds.
func (h *history) add(at int64, x float64) {
	switch {
	case at < h.began || h.n == 0:
		// The first one, or the clock was set back.
		h.began, h.sum, h.n = at, 0, 0
	case at-h.began >= int64(period):
		if len(h.means) < mostPeriods {
			h.means = append(h.means, 0)
		}
		h.means[h.next] = h.sum / h.n
		h.next = (h.next + 1) % mostPeriods
		h.began, h.sum, h.n = at, 0, 0
	}
	h.sum += x
	h.n++
}

// usual is the median of the periods that have passed; NaN without one.
func (h *history) usual() float64 {
	if len(h.means) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(h.means))
	return sorted[(len(sorted)-1)/2]
}
