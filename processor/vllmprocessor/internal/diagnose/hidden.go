package diagnose

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// vLLM's gauges change at the end of a step. A hang leaves them as they are, at 0 where it begins between
// two requests, however many come. Each of these has a connection, which is an open file of the server: where
// the open files have followed the requests before, files beyond all that were open without requests are
// requests. They do not follow them behind a proxy or clients that keep their connections. A server with
// --enable-server-load-tracking counts them itself.
const (
	// leastHidden is the number of such files of which something can be said, hiddenFor how long they
	// must be open while nothing changes.
	leastHidden = 5
	hiddenFor   = 30 * time.Second
	// The open files follow the requests where this share of the changes of the requests, by at least
	// leastChange from one reading to the next, changed the files as well, by half of it or more exactly. There
	// must be so many changes; an older one counts less.
	followsShare  = 0.6
	leastChange   = 2.0
	leastFollowed = 5.0
	countsLess    = 0.98
	// Files that do not belong to requests may become more by so many in a minute.
	otherFiles = 1.0
)

// hidden follows the requests that the gauges do not show.
type hidden struct {
	// Moving is how many files were open in the newest reading in which the engine made progress, Quiet the
	// most in those in which it had just finished its last request, of late.
	Moving float64 `json:",omitzero"`
	Quiet  float64 `json:",omitzero"`
	// Changes are the changes of the requests, Followed those that the files followed; older ones count less.
	Shown    float64 `json:",omitzero"`
	Changes  float64 `json:",omitzero"`
	Followed float64 `json:",omitzero"`
	// Slow is how many files are open, if they become more slowly.
	Slow float64 `json:",omitzero"`
	// Since is since when requests are hidden; 0 where none are.
	Since int64 `json:",omitzero"`
	at    int64
}

// observe takes a reading, and returns how many requests are hidden. moved is whether the engine has made
// progress since the reading before.
func (h *hidden) observe(r *reading, moved bool) (requests float64) {
	if r.restarted == r.At {
		*h = hidden{}
	}
	if signal.Known(r.files) {
		requests = h.observeFiles(r, moved)
	}
	// What the server says itself is exact.
	if more := r.load - signal.OrZero(r.runningNow) - signal.OrZero(r.waitingNow); !moved && more > 0 {
		requests = max(requests, more)
	}
	since(&h.Since, requests > 0, r.At)
	return requests
}

// observeFiles takes the open files of a reading.
func (h *hidden) observeFiles(r *reading, moved bool) (requests float64) {
	shown := signal.OrZero(r.runningNow) + signal.OrZero(r.waitingNow)
	minutes := float64(r.At-h.at) / float64(time.Minute)
	switch {
	case h.at == 0:
		*h = hidden{Moving: r.files, Slow: r.files, Shown: shown, Since: h.Since}
	case moved:
		if change := shown - h.Shown; math.Abs(change) >= leastChange {
			h.Changes, h.Followed = h.Changes*countsLess+1, h.Followed*countsLess
			if math.Abs(r.files-h.Moving-change) < math.Abs(change)/2 {
				h.Followed++
			}
		}
		h.Shown = shown
		if h.Moving, h.Slow = r.files, r.files; shown == 0 {
			h.Quiet = max(r.files, h.Quiet-otherFiles*minutes)
		}
	default:
		if h.Since == 0 {
			h.Slow = min(r.files, h.Slow+otherFiles*minutes)
		}
		most := max(h.Moving, h.Slow)
		if shown == 0 {
			most = max(most, h.Quiet)
		}
		if more := r.files - most; more >= leastHidden && h.Changes >= leastFollowed && h.Followed >= followsShare*h.Changes {
			requests = more
		}
	}
	h.at = r.At
	return requests
}

// certain reports whether requests have been hidden for so long that the engine does not work on them.
func (h *hidden) certain(at int64) bool { return lasts(h.Since, at, hiddenFor) }
