package diagnose

import (
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
	Critical
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
		Healthy: "healthy", Idle: "idle", Unknown: "unknown", Degraded: "degraded", Critical: "critical", Failing: "failing",
		Stalled: "stalled", Asleep: "asleep", Starting: "starting", Unreachable: "unreachable", Draining: "draining",
	}[c]
}

// harms reports whether users are served worse than they should be in a condition.
func (c Condition) harms() bool { return c == Degraded || c == Critical || c == Failing }

const (
	// startingFor is how long after a restart or a standstill its after-effects are
	// attributed to it. warmingUp is for how many windows latencies are not judged.
	startingFor = 10 * time.Minute
	warmingUp   = 3
)

// warmUp is for how long latencies are not judged after a restart, in nanoseconds. Of a
// long window it is one: this window has nothing of the time before the restart.
func (s *Settings) warmUp() int64 {
	return min(warmingUp*int64(s.Window), max(int64(s.Window), int64(startingFor)))
}

// restarts has the time of the first restart of a loop, in which each restart comes
// before the engine has warmed up; 0 without one.
type restarts struct {
	Since int64 `json:",omitzero"`
}

func (x *restarts) observe(s *Settings, r *reading) {
	switch {
	case !x.recent(s, r):
		x.Since = 0
	case x.Since == 0:
		x.Since = r.restarted
	}
}

func (*restarts) recent(s *Settings, r *reading) bool {
	return r.restarted > 0 && r.At-r.restarted < s.warmUp()
}

// again reports whether an engine has been in a loop of restarts for long enough to be
// harm: every restart ends the requests that it holds.
func (x *restarts) again(s *Settings, r *reading) bool {
	return x.Since > 0 && r.At-x.Since >= max(s.warmUp(), int64(startingFor))
}

// judge returns the condition that a reading alone shows. The order of the cases
// is the precedence.
func (e *engine) judge(s *Settings, r *reading, found *symptoms) Condition {
	age := r.At - max(r.restarted, e.First)
	switch {
	case r.healthy == 0 && age < int64(min(s.StartTimeout, startingFor)):
		return Starting
	case e.Restarts.recent(s, r) && !e.Restarts.again(s, r):
		return Starting
	case r.awake == 0:
		return Asleep
	case e.still == stuck:
		return Stalled
	case r.healthy == 0 || found.failing:
		return Failing
	case quietNow(r) && r.hidden > 0 && !found.any() && e.memory.any():
		return e.Reported.Condition // Requests have come, and whether they are served is not known yet.
	case e.Felt.On && quietNow(r) && r.hidden == 0:
		return Unknown
	case found.great:
		return Critical
	case found.any(), e.Restarts.again(s, r):
		return Degraded
	case r.elapsed == 0:
		return Unknown
	case e.still == ambiguous:
		return Unknown
	case e.still == deserted, quietNow(r):
		return Idle
	case r.lacks:
		return Unknown
	}
	return Healthy
}

// quietNow reports whether an engine has had no request in the window but canaries. One of them can be
// left in what was counted, see View.Canaries.
func quietNow(r *reading) bool {
	canary := min(r.Canaries, 1)
	return !(r.runningNow > 0) && !(r.waitingNow > 0) && !(r.Signals[signal.Running] > 0) &&
		!(r.FirstTokens > canary) && !(r.Generation*r.elapsed > canary)
}

// frozen reports whether gauges show the state of an old step: requests or KV blocks in
// use although nothing runs and nothing moves. It is harmless unless a router believes the
// gauges.
func (e *engine) frozen(r *reading) bool {
	return e.still == deserted || r.Signals[signal.KVUtilization] > frozenKV && r.runningNow == 0 && e.Progress.none(r.At)
}
