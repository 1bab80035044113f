package diagnose

import (
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Condition is the state of an engine or a pool. Exactly one holds.
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
	// startingFor is how long after a restart or a standstill its after-effects are
	// attributed to it. warmingUp is for how many windows latencies are not judged.
	startingFor = 10 * time.Minute
	warmingUp   = 3
	// An engine has stalled when none of its progress counters has moved for stalledFor
	// and stalledScrapes. A long prefill still moves one of them.
	stalledFor     = time.Minute
	stalledScrapes = 3
	// frozenKV is the utilization of the KV cache that cannot be real without requests.
	frozenKV = 0.5
)

// progress is when an engine was last seen to work, in Unix nanoseconds.
type progress struct {
	was     [numProgress]float64
	at      int64
	scrapes int
}

// numProgress is how many numbers move when an engine works, see reading.
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

// none reports whether nothing has moved for long enough. It is false for a server that
// does not report the tokens that it generates: the other numbers can rest while it works.
func (p *progress) none(at int64) bool {
	return signal.Known(p.was[0]) && p.scrapes >= stalledScrapes && at-p.at >= int64(stalledFor)
}

// standstill is for how many seconds nothing has moved; NaN where the server does not
// report the tokens that it generates.
func (p *progress) standstill(at int64) float64 {
	if !signal.Known(p.was[0]) {
		return math.NaN()
	}
	return float64(at-p.at) / float64(time.Second)
}

// warmUp is for how long latencies are not judged after a restart, in nanoseconds. Of a
// long window it is one: this window has nothing of the time before the restart.
func (s *Settings) warmUp() int64 {
	return min(warmingUp*int64(s.Window), max(int64(s.Window), int64(startingFor)))
}

// restarts has the time of the first restart of a loop, in which each restart comes
// before the engine has warmed up; 0 without one.
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

// again reports whether an engine has been in a loop of restarts for long enough to be
// harm: every restart ends the requests that it holds.
func (x *restarts) again(s *Settings, r *reading) bool {
	return x.since > 0 && r.At-x.since >= max(s.warmUp(), int64(startingFor))
}

// judge returns the condition that a reading alone shows. The order of the cases
// is the precedence.
func (e *engine) judge(s *Settings, r *reading, found *symptoms) Condition {
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
	case r.healthy == 0 || found.failing:
		return Failing
	case found.any(), e.restarts.again(s, r):
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

// frozen reports whether gauges show the state of an old step: KV blocks in use although
// nothing runs and nothing moves. It is harmless unless a router believes the gauges.
func (e *engine) frozen(r *reading) bool {
	return r.Signals[signal.KVUtilization] > frozenKV && r.runningNow == 0 && e.progress.none(r.At)
}
