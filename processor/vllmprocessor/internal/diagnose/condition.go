package diagnose

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Condition is how an engine is: exactly one holds.
type Condition uint8

// The conditions. String is the name in the catalogue.
const (
	Healthy Condition = iota
	Idle
	Unknown
	Degraded
	Failing
	Stalled
	Asleep
	Starting
	Unreachable
	Draining

	// NumConditions is the number of conditions, for arrays over them.
	NumConditions
)

// String is the condition's name in the catalogue.
func (c Condition) String() string {
	return [NumConditions]string{
		Healthy: "healthy", Idle: "idle", Unknown: "unknown", Degraded: "degraded", Failing: "failing",
		Stalled: "stalled", Asleep: "asleep", Starting: "starting", Unreachable: "unreachable", Draining: "draining",
	}[c]
}

const (
	// startingFor is how long after a restart or a standstill what is left behind is
	// put down to it, warmingUp how many windows its latencies are not judged.
	startingFor = 10 * time.Minute
	warmingUp   = 3
	// An engine has stalled where nothing of it has moved for so long and so many
	// scrapes: a long prefill still moves some of what is looked at.
	stalledFor     = time.Minute
	stalledScrapes = 3
	// frozenKV is the utilization of the KV cache that nobody uses.
	frozenKV = 0.5
)

// progress is when an engine was last seen to do something.
type progress struct {
	was     [numProgress]float64
	at      int64
	scrapes int
}

// numProgress is the number of what moves when an engine works, see reading.
const numProgress = 5

func (p *progress) observe(r *reading) {
	moved := p.at == 0
	for i, now := range r.progress {
		// Two numbers that are not known are the same.
		moved = moved || now != p.was[i] && (signal.Known(now) || signal.Known(p.was[i]))
	}
	if moved {
		*p = progress{was: r.progress, at: r.At}
		return
	}
	p.scrapes++
}

// none tells whether nothing has moved for long enough. Where the server does not
// tell the tokens that it generates, nobody can say so.
func (p *progress) none(at int64) bool {
	return signal.Known(p.was[0]) && p.scrapes >= stalledScrapes && at-p.at >= int64(stalledFor)
}

// standstill is for how many seconds nothing has moved; NaN where the server does not
// tell the tokens that it generates.
func (p *progress) standstill(at int64) float64 {
	if !signal.Known(p.was[0]) {
		return math.NaN()
	}
	return float64(at-p.at) / float64(time.Second)
}

// warmUp is for how long latencies are not judged after a restart. Long windows are
// not waited for longer than it takes one to have nothing of the time before.
func (s *Settings) warmUp() int64 {
	return min(warmingUp*int64(s.Window), max(int64(s.Window), int64(startingFor)))
}

// restarts is when the first of restarts was that followed each other before the
// engine had warmed up; 0 where it has.
type restarts struct{ since int64 }

func (x *restarts) observe(s *Settings, r *reading) {
	switch {
	case !x.recent(s, r):
		x.since = 0
	case x.since == 0:
		x.since = r.restarted
	}
}

func (*restarts) recent(s *Settings, r *reading) bool {
	return r.restarted > 0 && r.At-r.restarted < s.warmUp()
}

// again tells whether an engine restarts again and again and so never works for
// long: every restart ends the requests that it holds.
func (x *restarts) again(s *Settings, r *reading) bool {
	return x.since > 0 && r.At-x.since >= max(s.warmUp(), int64(startingFor))
}

// judge returns the condition that a reading alone shows. The order of the cases
// is the precedence.
func (e *engine) judge(s *Settings, r *reading, felt *symptoms) Condition {
	age := r.At - max(r.restarted, e.first)
	demand := r.runningNow > 0 || r.waitingNow > 0
	switch {
	case r.healthy == 0 && age < int64(s.StartTimeout):
		return Starting
	case e.restarts.recent(s, r) && !e.restarts.again(s, r):
		return Starting
	case r.awake == 0:
		return Asleep
	case demand && e.progress.none(r.At):
		return Stalled
	case r.healthy == 0 || felt.failing:
		return Failing
	case felt.any(), e.restarts.again(s, r):
		return Degraded
	case r.elapsed == 0:
		return Unknown
	case !demand && !(r.Signals[signal.Running] > 0) && !(r.FirstTokens > 0) && !(r.Generation > 0):
		return Idle
	case r.lacks:
		return Unknown
	}
	return Healthy
}

// frozen tells whether gauges show the state of a step long ago: KV blocks in use
// although nothing runs and nothing moves. Nobody is harmed unless a router
// believes them.
func (e *engine) frozen(r *reading) bool {
	return r.Signals[signal.KVUtilization] > frozenKV && r.runningNow == 0 && e.progress.none(r.At)
}
