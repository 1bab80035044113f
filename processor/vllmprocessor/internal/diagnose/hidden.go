package diagnose

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// vLLM's gauges change at the end of a step. A hang leaves them as they are, at 0 where it begins between
// two requests, however many come. Each of these has a connection, which is an open file of the server: where
// the open files have followed the requests before, files beyond all that were open without requests are
// requests. They do not follow them behind a proxy or clients that keep their connections.
const (
	// leastHidden is the number of such files of which something can be said, hiddenFor how long they
	// must be open while nothing changes.
	leastHidden = 5
	hiddenFor   = 30 * time.Second
	// The open files follow the requests where, of readings with at most fewShown and of those with at least
	// manyShown requests, this share has the same number of other files, up to so many. There must be so
	// many of both; an older one counts less.
	followsShare        = 0.6
	fewShown, manyShown = 1.0, 4.0
	sameFiles           = 2.0
	leastFollowed       = 3.0
	countsLess          = 0.98
	// Files that do not belong to requests may become more by so many in a minute.
	otherFiles = 1.0
)

// hidden follows the requests that the gauges do not show.
type hidden struct {
	// moving is how many files were open in the newest reading in which the engine made progress, quiet the
	// most in those in which it had just finished its last request, of late.
	moving, quiet float64
	// rest is how many files the server has open besides those of requests.
	rest float64
	// few and many are the readings with few and with many requests, and those that had rest other files.
	few, many followed
	// slow is how many files are open, if they become more slowly.
	slow float64
	at   int64
	// since is since when requests are hidden; 0 where none are.
	since int64
}

// followed counts readings; older ones count less.
type followed struct{ all, same float64 }

func (f *followed) count(same bool) {
	f.all, f.same = f.all*countsLess+1, f.same*countsLess
	if same {
		f.same++
	}
}

func (f *followed) follows() bool { return f.all >= leastFollowed && f.same >= followsShare*f.all }

// observe takes a reading, and returns how many requests are hidden. moved is whether the engine has made
// progress since the reading before.
func (h *hidden) observe(r *reading, moved bool) (requests float64) {
	if !signal.Known(r.files) {
		*h = hidden{}
		return 0
	}
	shown := signal.OrZero(r.runningNow) + signal.OrZero(r.waitingNow)
	minutes := float64(r.At-h.at) / float64(time.Minute)
	switch {
	case h.at == 0:
		*h = hidden{moving: r.files, slow: r.files, rest: math.Inf(1)}
	case moved:
		other := r.files - shown
		switch {
		case shown <= fewShown:
			h.rest = min(other, h.rest+otherFiles*minutes)
			h.few.count(other <= h.rest+sameFiles)
		case shown >= manyShown:
			h.many.count(math.Abs(other-h.rest) <= sameFiles)
		}
		if h.moving, h.slow = r.files, r.files; shown == 0 {
			h.quiet = max(r.files, h.quiet-otherFiles*minutes)
		}
	default:
		h.slow = min(r.files, h.slow+otherFiles*minutes)
		most := max(h.moving, h.slow)
		if shown == 0 {
			most = max(most, h.quiet)
		}
		if more := r.files - most; more >= leastHidden && h.few.follows() && h.many.follows() {
			requests = more
		}
	}
	h.at = r.At
	since(&h.since, requests > 0, r.At)
	return requests
}

// certain reports whether requests have been hidden for so long that the engine does not work on them.
func (h *hidden) certain(at int64) bool { return h.since > 0 && at-h.since >= int64(hiddenFor) }
