package diagnose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

const (
	// An engine has stalled when none of its progress counters has moved for stalledFor
	// and stalledScrapes. A long prefill still moves one of them, and the longest steps
	// that were measured take a third of this time.
	stalledFor     = time.Minute
	stalledScrapes = 3
	// longestStep is how long a step can take: a cold start or a huge prefill. A client
	// that leaves during the last step of an engine has left within this time.
	longestStep = 20 * time.Second
	// frozenKV is the utilization of the KV cache that cannot be real without requests.
	frozenKV = 0.5
)

// standstill is what is known about an engine whose gauges show requests.
type standstill uint8

const (
	// moving means: its gauges show no request, or something has moved recently.
	moving standstill = iota
	// stuck means: it has requests and makes no progress.
	stuck
	// deserted means: all requests that the gauges show were aborted by their clients, so
	// the engine has none. The gauges stay as they are until the next request.
	deserted
	// ambiguous means: one of the two, and the data do not show which.
	ambiguous
)

// progress is when an engine was last seen to work, in Unix nanoseconds, and what
// happened to its requests since then.
type progress struct {
	was [numProgress]number
	// At is when something moved last. Scrapes are those since then.
	At      int64 `json:",omitzero"`
	Scrapes int   `json:",omitzero"`
	// Busy is true while the gauges show requests, and Asked when they did so first after a reading
	// without, or it slept last: an engine that had nothing to do did not stand still. Scrapes are those since then.
	Busy  bool  `json:",omitzero"`
	Asked int64 `json:",omitzero"`

	// Shown are the running and the waiting requests at that time. Live is true where
	// they have changed since: gauges that do not follow the requests would not.
	Shown [2]number `json:",omitzero"`
	Live  bool      `json:",omitzero"`
	// Balance is how many more requests the server has answered than the engine has
	// finished, as totals; Before is that of the scrape before At.
	Before  number `json:",omitzero"`
	Balance number `json:",omitzero"`
	// Settled is true once a step that ran at that time has ended. Left is the number of
	// requests that had left the server by then without having been finished by the
	// engine, counted from Before. Generated is the total of answers at that time.
	Settled   bool   `json:",omitzero"`
	Left      number `json:",omitzero"`
	Generated number `json:",omitzero"`
	// Later is true where a request left the server after that.
	Later bool `json:",omitzero"`
}

func (p *progress) observe(r *reading) {
	moved := p.At == 0
	for i, now := range r.progress {
		moved = moved || differ(now, p.was[i])
	}
	shown, balance := [2]number{number(r.runningNow), number(r.waitingNow)}, number(r.front.ended-r.endedByEngine)
	busy := r.runningNow > 0 || r.waitingNow > 0
	if moved {
		before := p.Balance
		if p.At == 0 {
			before = number(math.NaN())
		}
		*p = progress{was: r.progress, At: r.At, Shown: shown, Before: before, Balance: balance, Busy: busy}
		return
	}
	p.Scrapes++
	if busy && !p.Busy || r.awake == 0 {
		p.Asked, p.Scrapes = r.At, 0
	}
	p.Busy = busy
	p.Balance = balance
	p.Live = p.Live || differ(shown[0], p.Shown[0]) || differ(shown[1], p.Shown[1])
	switch {
	case r.At-p.At < int64(longestStep):
	case !p.Settled:
		p.Settled, p.Left, p.Generated = true, balance-p.Before, number(r.front.generated)
	default:
		p.Later = p.Later || number(r.front.generated) > p.Generated
	}
}

// differ reports whether two numbers differ. Two that are not known are the same.
func differ(a, b number) bool { return a != b && (a.known() || b.known()) }

// none reports whether nothing has moved for long enough. It is false for a server that
// does not report the tokens that it generates: the other numbers can rest while it works.
func (p *progress) none(at int64) bool {
	return p.was[generatedTokens].known() && p.Scrapes >= stalledScrapes && lasts(max(p.At, p.Asked), at, stalledFor)
}

// standstill is for how many seconds nothing has moved although there was something to do; NaN where the server does not
// report the tokens that it generates.
func (p *progress) standstill(at int64) float64 {
	if !p.was[generatedTokens].known() {
		return math.NaN()
	}
	return float64(at-max(p.At, p.Asked)) / float64(time.Second)
}

// judge decides about an engine whose gauges show requests. An engine works as long as it
// has a request. So an engine that stands still has stalled, unless all its requests were
// aborted at once: then vLLM before 0.10.2 leaves the gauges at their last values. The
// data show the difference where one of these is true:
//
//   - The gauges of requests still change, so they do not freeze.
//   - A request was answered later than the last step could end: it was there, and the
//     engine did not work on it.
//   - Since before the last step, each request that was answered was finished by the
//     engine: none was aborted.
//   - While the last step ended, as many requests left unfinished as the gauges show.
func (p *progress) judge(r *reading) standstill {
	if !(r.runningNow > 0 || r.waitingNow > 0) || !p.none(r.At) {
		return moving
	}
	// The totals of a server that has not answered every finished request do not belong
	// together: requests have several choices, or do not come by HTTP.
	counted := p.Before >= 0 && r.front.ended > 0
	switch {
	case !r.freezes, p.Live, p.Later, counted && p.Balance == p.Before:
		return stuck
	case counted && float64(p.Left) >= signal.OrZero(float64(p.Shown[0]))+signal.OrZero(float64(p.Shown[1])):
		return deserted
	}
	return ambiguous
}

// doubt withholds what gauges show that may have frozen. Those of a deserted engine have
// frozen: it has no requests.
func (r *reading) doubt(s standstill) {
	if s != deserted && s != ambiguous {
		return
	}
	for _, of := range ofOneEngine {
		r.Signals[of] = math.NaN()
	}
	if s == deserted {
		r.Signals[signal.Running], r.Signals[signal.Waiting] = 0, 0
	}
}

// front is what the server in front of an engine has answered, as totals: ended are all
// requests that may be for the engine, generated those for text that succeeded. NaN where
// it is not known, as where requests can be for one of several engines.
type front struct{ ended, generated float64 }

// The places of the attributes of input.HTTPRequests.
const (
	httpStatus = iota
	httpHandler
	httpMethod
)

var (
	// noRequests are the paths of requests that do not reach an engine although they
	// send something.
	noRequests = []string{"/tokenize", "/detokenize"}
	// texts are the paths of requests for text, of all versions whose gauges freeze.
	texts = []string{"/v1/completions", "/v1/chat/completions", "/v1/responses"}
)

func frontOf(v *window.View) front {
	if _, status := v.Total(input.HTTPRequests); status != window.Present {
		return unknownFront
	}
	var f front
	for label, n := range v.States(input.HTTPRequests) {
		status, handler := label.Value(httpStatus), label.Value(httpHandler)
		if method := label.Value(httpMethod); method != "" && method != "POST" || slices.Contains(noRequests, handler) {
			continue
		}
		f.ended += n
		if status != "" && status[0] == '2' && slices.Contains(texts, handler) {
			f.generated += n
		}
	}
	return f
}

// vLLM's gauges change at the end of a step. A hang leaves them as they are, at 0 where it begins between
// two requests, however many come. Each of these has a connection, which is an open file of the server: where
// the open files have followed the requests before, files beyond all that were open without requests are
// requests. They do not follow them behind a proxy or clients that keep their connections. A server with
// --enable-server-load-tracking counts them itself.
const (
	// leastHidden is the number of such files of which something can be said, hiddenFor how long they
	// must be open while nothing changes.
	leastHidden = 5.0
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
	// With few or short requests the files hardly change. Where they have stayed within a band of steadyFiles in
	// steadyReadings with progress, files beyond it are requests as well, if they are at least unservedShare of
	// those that would have come in unservedFor: connections that are opened ahead are fewer.
	steadyFiles, steadyReadings = 4.0, 20
	unservedShare, unservedFor  = 0.5, time.Minute
)

type hidden struct {
	// Moving is how many files were open in the newest reading in which the engine made progress, Quiet the
	// most in those in which it had just finished its last request, of late.
	Moving, Quiet float64
	// Changes are the changes of the requests, Followed those that the files followed; older ones count less.
	Shown, Changes, Followed float64
	// Slow is how many files are open, if they become more slowly.
	Slow float64
	// Low and High are the fewest and the most files in readings with progress, of late, and Readings how many
	// of these there were.
	Low, High float64
	Readings  int
	// Since is since when requests are hidden; 0 where none are.
	Since int64
	at    int64
}

// observe takes a reading, and returns how many requests are hidden. moved is whether the engine has made
// progress since the reading before, expected how many requests come in unservedFor at the usual rate; NaN where
// that is not known.
func (h *hidden) observe(r *reading, moved bool, expected float64) (requests float64) {
	if r.restarted == r.At {
		*h = hidden{}
	}
	if signal.Known(r.files) {
		requests = h.observeFiles(r, moved, expected)
	}
	// What the server says itself is exact.
	if more := r.load - signal.OrZero(r.runningNow) - signal.OrZero(r.waitingNow); !moved && more > 0 {
		requests = max(requests, more)
	}
	since(&h.Since, requests > 0, r.At)
	return requests
}

func (h *hidden) observeFiles(r *reading, moved bool, expected float64) (requests float64) {
	shown := signal.OrZero(r.runningNow) + signal.OrZero(r.waitingNow)
	minutes := float64(r.At-h.at) / float64(time.Minute)
	switch {
	case h.at == 0:
		*h = hidden{Moving: r.files, Slow: r.files, Shown: shown, Since: h.Since, Low: r.files, High: r.files}
	case moved:
		h.Low, h.High = min(r.files, h.Low+otherFiles*minutes), max(r.files, h.High-otherFiles*minutes)
		h.Readings = min(h.Readings+1, steadyReadings)
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
		if more := r.files - most; more >= leastHidden && h.follow() {
			requests = more
		}
		// A queue that is served leaves files behind for a while: only what an engine without requests has counts.
		enough := leastHidden
		if h.Since == 0 {
			enough = max(enough, unservedShare*expected)
		}
		if more := r.files - h.High; shown == 0 && h.Readings == steadyReadings && h.High-h.Low <= steadyFiles && more >= enough {
			requests = max(requests, more)
		}
	}
	h.at = r.At
	return requests
}

// follow reports whether the open files have followed the requests.
func (h *hidden) follow() bool {
	return h.Changes >= leastFollowed && h.Followed >= followsShare*h.Changes
}

// certain reports whether requests have been hidden for so long that the engine does not work on them.
func (h *hidden) certain(at int64) bool { return lasts(h.Since, at, hiddenFor) }

// canary is what canary requests that are not answered show. An engine works as long as it has a
// request, and a canary is one: where nothing moves, it has stalled, also where its gauges have stayed at
// 0. Where something moves, the canary waits in the queue, and the gauges show it as any other request.
type canary struct {
	// Since is when the first of the canaries was sent that show a stall, in Unix nanoseconds; 0 where
	// they show none.
	Since int64
}

// observe takes a reading, and returns whether canaries show a stall. It ends by progress, an answer, a
// restart or sleep, but not where the receiver does not know any more.
func (c *canary) observe(r *reading, p *progress) bool {
	sent := r.At - int64(r.unanswered*float64(time.Second))
	switch {
	case p.At == r.At, r.unanswered == 0, c.Since > 0 && r.restarted >= c.Since, r.awake == 0:
		c.Since = 0
	case c.Since == 0 && r.unanswered > 0 && p.was[generatedTokens].known() && (p.At <= sent || p.none(r.At)):
		// What moved between the last scrape before it was sent and the next one can have been before it, so
		// after that nothing may move for as long as with any other request.
		c.Since = max(sent, 1)
	}
	return c.Since > 0
}

// sentence says for how long no canary was answered; empty where they show no stall.
func (c *canary) sentence(at int64) string {
	if c.Since == 0 {
		return ""
	}
	return fmt.Sprintf("Canary requests have not been answered for %.0f s.", time.Duration(at-c.Since).Seconds())
}
