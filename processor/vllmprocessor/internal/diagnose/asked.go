package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Load is what engines are asked for: the requests that run or wait at them, those included that only open files
// or the load of the server show, and how many come in a second.
type Load struct{ Requests, Arrivals float64 }

// Plus adds the load of another engine.
func (l Load) Plus(other Load) Load {
	return Load{l.Requests + other.Requests, l.Arrivals + other.Arrivals}
}

const (
	// sentFor is how long after the last request a router still sends to an engine.
	sentFor = time.Minute
	// unseenFor is the same of an engine that stands still where nothing can show that requests come: its gauges
	// keep the requests that it had, and its counters count only what it serves.
	unseenFor = 15 * time.Minute
	// sharesOver is over how long the share of an engine is measured, knownAfter how long it takes until it is known.
	sharesOver, knownAfter = 5 * time.Minute, time.Minute
)

// asked is what is sent to an engine.
type asked struct {
	Load
	// ended is how many requests it or its server has answered, at the time of that reading.
	ended float64
	at    int64
}

// observe reports whether requests have come since the reading before, or are there that only the server shows.
func (a *asked) observe(r *reading) (came bool) {
	before := *a
	a.at, a.Requests = r.At, signal.OrZero(r.runningNow)+signal.OrZero(r.waitingNow)+r.hidden
	a.ended = max(signal.OrZero(r.endedByEngine), signal.OrZero(r.front.ended))
	// Requests that fail at once are only counted when they end.
	a.Arrivals = signal.OrZero(r.Signals[signal.ArrivalRate])
	if ended := r.finished / r.elapsed; r.elapsed > 0 && ended > a.Arrivals {
		a.Arrivals = ended
	}
	return r.hidden > 0 || before.at > 0 && (a.Requests > before.Requests || r.served > 0 || a.ended > before.ended)
}

// came are requests that came to an engine, and to all of its pool, in a time.
type came struct{ Own, Pool, Seconds float64 }

// users is the share of its pool's requests that came to an engine while it worked. Once it stands still, nothing
// shows its share any more.
type users struct {
	came
	// Hidden is when requests were hidden last, in Unix nanoseconds; 0 for never.
	Hidden int64 `json:",omitzero"`
	// idle came since the last progress. It counts once there is progress again: who stands still looks idle.
	idle came
}

// observe takes a reading, which is so many seconds after the one before. moved is whether it shows progress.
func (u *users) observe(r *reading, a Load, beside *Load, seconds float64, moved bool) {
	if r.hidden > 0 {
		u.Hidden = r.At
	}
	if beside == nil || r.elapsed == 0 || !moved && a.Requests > 0 {
		return
	}
	u.idle.Own += a.Arrivals * seconds
	u.idle.Pool += (a.Arrivals + beside.Arrivals) * seconds
	u.idle.Seconds += seconds
	if moved {
		keep := math.Exp(-u.idle.Seconds / sharesOver.Seconds())
		u.came = came{u.Own*keep + u.idle.Own, u.Pool*keep + u.idle.Pool, u.Seconds*keep + u.idle.Seconds}
		u.idle = came{}
	}
}

// before is the share that an engine had before it stood still; 0 where it does not, or nothing is known of that.
func (e *engine) before() float64 {
	if e.Reported.Condition != Stalled || e.Progress.At == e.last.At || e.Users.Seconds < knownAfter.Seconds() || e.Users.Pool == 0 {
		return 0
	}
	return e.Users.Own / e.Users.Pool
}

// sends reports whether a router still sends requests to an engine; seen is false where nothing shows that.
func (e *engine) sends() (sends, seen bool) {
	if e.last.At-e.Sent <= int64(sentFor) {
		return true, e.before() == 0 || e.Sent > e.Progress.At
	}
	if e.before() == 0 || signal.Known(e.last.load) || e.Users.Hidden > e.Progress.At {
		return false, false // What has shown requests in this standstill shows as well that none are there any more.
	}
	stood := time.Duration(e.last.At - max(e.Sent, e.Progress.At))
	if signal.Known(e.last.files) && e.Hidden.follow() && stood.Seconds()*e.Users.Own/e.Users.Seconds >= 2*leastHidden {
		return false, false // Open files would show as many as came before.
	}
	return stood <= unseenFor, false
}

// load is what an engine is asked for; one that stands still as much as before.
func (e *engine) load() Load {
	l := e.asked.Load
	if sends, _ := e.sends(); sends && e.before() > 0 {
		l.Arrivals = e.Users.Own / e.Users.Seconds
	}
	return l
}

// userShare is the share of the users of its pool that an engine harms greatly: its share of the requests, or of
// those that come, whichever is greater, and where it stands still that of those that came before. It is 0 where no
// request is sent to it any more, or nothing is known of that.
func (e *engine) userShare() (share float64, pool Load) {
	sends, _ := e.sends()
	if e.beside == nil || e.Reported.Severity < 3 || e.Reported.Condition == Unreachable || !sends {
		return 0, Load{}
	}
	pool = e.beside.Plus(e.asked.Load)
	if share = e.before(); share > 0 {
		return share, pool
	}
	for _, of := range [][2]float64{{e.asked.Requests, pool.Requests}, {e.asked.Arrivals, pool.Arrivals}} {
		if of[1] > 0 {
			share = max(share, of[0]/of[1])
		}
	}
	return share, pool
}

// sentThere says that users still reach an engine that does not serve them; empty where they do not.
func (e *engine) sentThere() string {
	share, pool := e.userShare()
	_, seen := e.sends()
	switch had := fmt.Sprintf("had about %.0f %% of the pool's requests before it stood still", 100*share); {
	case share == 0:
		return ""
	case e.before() == 0:
		return fmt.Sprintf("The router still sends requests to it: it has %.0f of the pool's %.0f requests, and %.0f %% of its users.",
			e.asked.Requests, pool.Requests, 100*share)
	case seen:
		return "The router still sends requests to it: it " + had + "."
	default:
		return "It " + had + ", and nothing shows whether the router still sends requests to it."
	}
}

// Beside tells an engine what its pool was asked for at the evaluation before, and takes what it is asked for now.
// Before the first one nothing is known of the others.
func (m *Member) Beside(pool Load) {
	e := m.engine
	if e == nil {
		return
	}
	if e.beside != nil || pool != (Load{}) {
		e.beside = &Load{max(pool.Requests-e.inPool.Requests, 0), max(pool.Arrivals-e.inPool.Arrivals, 0)}
	}
	e.inPool = m.Asked
}
