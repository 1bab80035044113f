package diagnose

import (
	"fmt"
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

// sentFor is how long after the last request a router still sends to an engine. The gauges of one that hangs keep
// the requests that it had, so that alone the growth shows that more come.
const sentFor = time.Minute

// asked is what is sent to an engine.
type asked struct {
	Load
	// ended is how many requests it or its server has answered, at the time of that reading.
	ended float64
	at    int64
}

// observe reports whether requests have come since the reading before.
func (a *asked) observe(r *reading) (came bool) {
	before := *a
	a.at, a.Requests = r.At, signal.OrZero(r.runningNow)+signal.OrZero(r.waitingNow)+r.hidden
	a.ended = max(signal.OrZero(r.endedByEngine), signal.OrZero(r.front.ended))
	// Requests that fail at once are only counted when they end.
	a.Arrivals = signal.OrZero(r.Signals[signal.ArrivalRate])
	if ended := r.finished / r.elapsed; r.elapsed > 0 && ended > a.Arrivals {
		a.Arrivals = ended
	}
	return before.at > 0 && (a.Requests > before.Requests || r.served > 0 || a.ended > before.ended)
}

// userShare is the share of the users of its pool that an engine harms greatly: its share of the requests, or of
// those that come, whichever is greater. It is 0 where no request is sent to it any more, or nothing is known of that.
func (e *engine) userShare() (share float64, pool Load) {
	if e.beside == nil || e.Reported.Severity < 3 || e.Reported.Condition == Unreachable || e.last.At-e.Sent > int64(sentFor) {
		return 0, Load{}
	}
	pool = e.beside.Plus(e.asked.Load)
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
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("The router still sends requests to it: it has %.0f of the pool's %.0f requests, and %.0f %% of its users.",
		e.asked.Requests, pool.Requests, 100*share)
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
