package diagnose

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// fromServer is what the server in front of the engines reports over the window. It holds for each of
// them. What is not known is NaN.
type fromServer struct {
	// errors is the share of answers with 5xx, answered the number of all answers. refused is true where
	// no answer was right, and perhaps because no request was.
	errors, answered float64
	refused          bool
	// failsNow is true where so many answers of the last half minute are errors that it is great harm.
	failsNow bool
	healthy  float64
	// dropped and arrived are the requests that the server dropped and admitted, for all
	// its engines together.
	dropped, arrived float64
	// overRequests and overTokens are the dropped requests that the limit on requests and the limit on
	// prompt tokens refused.
	overRequests, overTokens float64
	// toSleep is true while the server puts its engines to sleep.
	toSleep bool
	// These are known only of a server with one engine: what it has answered, its open files, the
	// requests that it says it works on, and for how many seconds no canary was answered.
	front                   front
	files, load, unanswered float64
	// freezes is true where gauges can keep their last values after all requests were aborted.
	freezes bool
	// merged is true where the only engine has the counters of all engines, and the gauges
	// of one of them.
	merged bool
}

var (
	unknown      = math.NaN()
	unknownFront = front{unknown, unknown}
)

func (f *fromServer) observe(v *window.View) {
	f.healthy = signal.Or(value(v.Gauge(input.Healthy)), f.healthy)
	f.files = signal.Or(value(v.Gauge(input.OpenFiles)), f.files)
	f.load = signal.Or(value(v.Gauge(input.ServerLoad)), f.load)
	f.unanswered = signal.Or(value(v.Gauge(input.CanaryUnanswered)), f.unanswered)
	if dropped := value(v.Increase(input.Dropped)); signal.Known(dropped) {
		f.dropped = dropped
		f.overRequests, _ = v.IncreaseOf(input.Dropped, "max_num_queued_reqs")
		f.overTokens, _ = v.IncreaseOf(input.Dropped, "max_num_queued_tokens")
	}
	if share, answered, refused := serverErrors(v); signal.Known(share) {
		f.errors, f.answered, f.refused = share, answered, refused
		half := v.Over(recently)
		share, answered, refused = serverErrors(&half)
		f.failsNow = share >= greatErrors && answered >= leastAnswers && !refused
	}
}

// keep keeps what was read before, where this part of a batch lacks it.
func (f *fromServer) keep(before *fromServer) {
	f.healthy, f.files = signal.Or(f.healthy, before.healthy), signal.Or(f.files, before.files)
	f.load, f.unanswered = signal.Or(f.load, before.load), signal.Or(f.unanswered, before.unanswered)
	if !signal.Known(f.errors) {
		f.errors, f.answered, f.refused = before.errors, before.answered, before.refused
	}
	if !signal.Known(f.dropped) {
		f.dropped, f.arrived, f.overRequests, f.overTokens = before.dropped, before.arrived, before.overRequests, before.overTokens
	}
	if !signal.Known(f.front.ended) {
		f.front = before.front
	}
}

// serverErrors is the share of the requests that a server answered with 5xx over
// the window; refused is true where it may be that no request was right.
func serverErrors(v *window.View) (share, answered float64, refused bool) {
	all, errors, reason := derive.HTTPErrors(v)
	switch {
	case reason != derive.OK || all <= 0:
		return unknown, unknown, false
	case derive.NoneServed(v):
		return 1, all, true
	}
	return errors[1] / all, all, false
}

// Observe takes the newest batch of a resource and returns what has changed. The
// result is valid until the next call.
func (s *State) Observe(settings *Settings, r *window.Resource) []Transition {
	s.transitions, s.upgrade = s.transitions[:0], Upgrade{}
	s.version, s.process = "", r.ProcessStart()
	if v := r.Version(); v.Exact {
		s.version = fmt.Sprintf("%d.%d.%d", v.Least[0], v.Least[1], v.Least[2])
	}
	s.views = r.Views(s.views, false)
	s.beginServer()
	up := s.observeServer(settings, r)
	s.server.count(settings, up, r.Time())
	for _, e := range s.engines {
		e.listed, e.waits = false, false
	}
	for i := range s.views {
		if v := &s.views[i]; isEngine(v) {
			s.engine(settings, v.Group(), r.Time()).observe(settings, s, v, r.Time())
		}
	}
	for number := range r.PendingGroups() {
		if e := s.byNumber[number]; e != nil {
			e.listed, e.waits = true, true
		}
	}
	if up == 0 {
		s.restore(settings, r)
		s.reportUnreachable(settings, r.Time())
	}
	if up == 1 && len(s.engines) > 0 {
		s.server.restored = nil
	}
	s.engines = slices.DeleteFunc(s.engines, func(e *engine) bool {
		if !e.listed {
			s.endEngine(e)
			delete(s.byNumber, e.number)
		}
		return !e.listed
	})
	return s.transitions
}

// observeServer reads the groups without an engine, and returns whether the scrape succeeded: 1, 0,
// or NaN where that is not known.
func (s *State) observeServer(settings *Settings, r *window.Resource) (up float64) {
	before := s.reader
	now := fromServer{
		errors: unknown, healthy: unknown, dropped: unknown, front: unknownFront, files: unknown, load: unknown, unanswered: unknown,
		freezes: r.Affected(catalog.DefectGaugesFreezeOnAbort),
	}
	engines, late := 0, false
	for g := range r.Pending() {
		late = late || g.Engine() == ""
	}
	up, s.queues = unknown, s.queues[:0]
	for i := range s.views {
		v := &s.views[i]
		now.arrived += arrived(v)
		if isEngine(v) {
			engines++
		}
		if f := frontOf(v); signal.Known(f.ended) {
			now.front = f
		}
		if v.Group().Engine() != "" {
			continue
		}
		s.server.observe(v, r.Time())
		now.observe(v)
		if waiting := value(v.Average(input.GatewayQueue)); signal.Known(waiting) {
			s.queues = append(s.queues, Queue{v.Group().Attributes, waiting})
		}
		up = signal.Or(value(v.Gauge(input.Up)), up)
		late = late || v.Pending()
	}
	if late && before.settings != nil {
		now.keep(&before.fromServer)
	}
	if engines > 1 || r.Affected(catalog.DefectOnlyLastEngine) {
		// Requests can be for another engine, perhaps for one that is not shown.
		now.front, now.files, now.load, now.unanswered = unknownFront, unknown, unknown, unknown
	}
	now.toSleep = s.server.toSleep(r.Time())
	now.merged = engines == 1 && r.Affected(catalog.DefectRayLastEngine)
	s.reader = reader{settings, now}
	return up
}

// isEngine reports whether a group is an engine, and not the server in front of it. A
// server with several API processes may report its counters without its gauges.
func isEngine(v *window.View) bool {
	_, running := v.Gauge(input.Running)
	_, generated := v.Total(input.GenerationTokens)
	return running != window.Missing || generated != window.Missing
}

// arrived is the number of requests that an engine admitted in the window; 0 where it is
// unknown.
func arrived(v *window.View) float64 {
	return max(signal.OrZero(derive.FirstTokens(v)+value(v.Change(input.Waiting))), 0)
}

func (e *engine) observe(settings *Settings, s *State, v *window.View, at int64) {
	if e.at == at {
		return
	}
	// A part of a batch looks like an engine that does nothing. An engine that has just
	// restarted lacks some series, which are not late.
	restarted, _ := v.Restarted()
	if e.waits = v.Pending() && restarted != at; e.waits {
		return
	}
	e.at = at
	s.upgraded(e)
	r := s.reader.read(v, at, e.last.At)
	e.check(settings, s, v, &r)
	e.blocks = signal.OrZero(value(v.Engine(input.KVCacheBlocks)))
	e.baseline.Compare(&r.Window)
	e.observeStandstill(&r)
	e.Restarts.observe(settings, &r)
	windows := 0.0
	if e.last.At > 0 && r.elapsed > 0 {
		windows = min(float64(at-e.last.At)/float64(settings.Window), 1)
	}
	found := e.observeHarm(settings, v, &r, windows)
	e.last = r
	since := e.asked.at
	if e.asked.observe(&r) {
		e.Sent = r.At
	}
	if since > 0 {
		seconds := min(time.Duration(at-since), settings.Window).Seconds()
		e.Users.observe(&r, e.asked.Load, e.beside, seconds, e.Progress.At == at)
	}
	raw := e.judge(settings, &r, &found)
	if s.server.contact.lost {
		// It answers now and then.
		raw = Unreachable
	}
	if s.server.draining {
		raw = Draining
	}
	if e.partial(settings, &r, raw) {
		return
	}
	e.explain(settings, &r, &found, raw)
	e.followGPUs(settings, s, at, raw)
	resumed := e.Resumed
	e.report(settings, s, raw, at, &found)
	if e.Resumed == 0 && at-resumed < warmingUp*int64(settings.Window) {
		e.Resumed = resumed // What the standstill has left may not be reported yet.
	}
	e.learn(settings, s, &r, &found, raw)
}

// observeStandstill decides whether the engine stands still, and withholds what gauges show that may
// have frozen.
func (e *engine) observeStandstill(r *reading) {
	before := e.Progress
	e.Progress.observe(r)
	moved := e.Progress.At == r.At
	requests := e.last.runningNow > 0 || e.last.waitingNow > 0 || e.last.hidden > 0
	// Those that got their first token now were there at the reading before, and its gauges did not show them.
	unseen := r.servedAfter >= max(hiddenFor, time.Duration(r.At-e.last.At)).Seconds()
	if moved && before.Scrapes > 1 && r.At-before.At >= int64(hiddenFor) && (requests || unseen) {
		e.Resumed = r.At // It was not certain that it stood still.
	}
	expected := e.baseline.Usual(signal.ArrivalRate) * unservedFor.Seconds()
	r.hidden = e.Hidden.observe(r, before.At > 0 && moved, expected)
	if e.still = e.Progress.judge(r); e.Canary.observe(r, &e.Progress) || e.Hidden.certain(r.At) && e.Progress.none(r.At) {
		e.still = stuck
	}
	r.Signals[signal.Standstill] = e.Progress.standstill(r.At)
	r.doubtful = e.still == deserted || r.freezes && !e.Progress.Live && e.standing(r) && e.still != stuck
	r.doubt(e.still)
}

const (
	// startingFor is how long after a restart or a standstill its after-effects are
	// attributed to it, unless it has served as usual for servedAgain windows. warmingUp is for how many
	// windows latencies are not judged.
	startingFor = 10 * time.Minute
	// leavesFor is how long the queue of a restart or a standstill can be its after-effect.
	leavesFor   = 15 * time.Minute
	servedAgain = 2
	warmingUp   = 3
)

// warmUp is for how long latencies are not judged after a restart, in nanoseconds. Of a
// long window it is one: this window has nothing of the time before the restart.
func (s *Settings) warmUp() int64 {
	return min(warmingUp*int64(s.Window), max(int64(s.Window), int64(startingFor)))
}

// restarts counts the restarts of a loop, in which each restart comes before the engine has warmed up;
// Newest is the time of the last one, and both are 0 without one.
type restarts struct {
	Newest int64
	Count  int
}

func (x *restarts) observe(s *Settings, r *reading) {
	switch {
	case !x.recent(s, r):
		*x = restarts{}
	case r.restarted > x.Newest:
		x.Newest = r.restarted
		x.Count++
	}
}

func (*restarts) recent(s *Settings, r *reading) bool {
	return r.restarted > 0 && r.At-r.restarted < s.warmUp()
}

// loop is how many restarts in a row are harm: each one ends the requests that the engine holds. A second
// start is often that of a server which came up with an error.
const loop = 3

func (x *restarts) again() bool { return x.Count >= loop }

// judge returns the condition that a reading alone shows. The order of the cases
// is the precedence.
func (e *engine) judge(s *Settings, r *reading, found *symptoms) Condition {
	age := r.At - max(r.restarted, e.First)
	switch {
	case r.healthy == 0 && age < int64(min(s.StartTimeout, startingFor)):
		return Starting
	case e.Restarts.recent(s, r) && !e.Restarts.again():
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
	case found.any(), e.Restarts.again():
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
