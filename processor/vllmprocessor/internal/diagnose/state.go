package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Settings are the choices of a processor.
type Settings struct {
	// Window is the time that a reading is over.
	Window time.Duration
	// Hold is the least number of windows until harm is reported, see evidence. What has no
	// evidence of its own, as errors, has to last for as many.
	Hold int
	// RelearnAfter is how long a level beyond the baseline has to be stable, or work has to
	// have grown, until it is what is usual.
	RelearnAfter time.Duration
	// MaxStaleness is after how long a server that is silent is forgotten.
	MaxStaleness time.Duration
	// StartTimeout is for how long a server that has never answered is starting.
	StartTimeout time.Duration
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where it is not configured.
	SpeculationBreakEven float64
	Objectives           []Objective
	Without              Without
}

// Without are the parts of the method that are left out: none. The accuracy page measures with it
// what each is there for ("make ablations"); no user has a reason to leave one out.
type Without struct {
	// FixedPoint is the expectation of step, prefill and queue from rates that a fault does not
	// change, ConditionalGates the tests of a change given the work of the window.
	FixedPoint, ConditionalGates bool
	// Lindley is the backlog that arrivals alone explain.
	Lindley bool
	// Sequential is the evidence that adds up over windows, ObjectivesSequential that for
	// objectives.
	Sequential, ObjectivesSequential bool
	// SlowReference is the reference over days, Peers the comparison with the other engines of a
	// pool at equal work.
	SlowReference, Peers bool
	// LearningByFactor is that learning stops only for what may have changed, Floor what is broken
	// before there is a baseline.
	LearningByFactor, Floor bool
}

// HoldTime is how long a state has to last beyond the first window that shows it, in
// nanoseconds.
func (s *Settings) HoldTime() int64 { return int64(s.Window) * int64(s.Hold-1) }

const (
	// explains is the least share of the harm of a primary cause. Without such a cause
	// the reason is not known.
	explains      = 0.35
	explainsAlone = 0.5
	// contributes is the share of the harm from which on a cause is reported in addition
	// to the primary one. Below stillContributes it no longer is.
	contributes      = 0.2
	stillContributes = 0.12
	// overtakes is how many times the primary cause's share another cause needs to become
	// the primary one.
	overtakes = 1.25
	// thrashing is the number of reuses per evicted KV block from which on blocks are
	// evicted that would be needed again.
	thrashing = 0.01
	// shifted is the growth of the work that is worth a notice: twice.
	shifted = 0.69
)

// Verdict is the reported diagnosis of an engine or a pool.
type Verdict struct {
	Condition Condition
	// Severity is that of the condition; 1 where there is only a notice, and 2 where the
	// engine may have stalled.
	Severity int `json:"-"`
	// Because is why the condition is unknown, or that the server was never read.
	Because Because `json:",omitzero"`
	// Primary is the cause that explains most of the harm, where Explained.
	Primary   Cause `json:",omitzero"`
	Explained bool  `json:",omitzero"`
	// Contributing and Notices are the others.
	Contributing [NumCauses]bool `json:",omitzero"`
	Notices      [NumCauses]bool `json:",omitzero"`
	// Reference is what the latencies were compared with. Objective is the name of the
	// missed objective.
	Reference Reference `json:",omitzero"`
	Objective string    `json:",omitzero"`
}

// same reports whether an operator would read the same.
func (v *Verdict) same(other *Verdict) bool {
	return v.Condition == other.Condition && v.Because == other.Because && v.Explained == other.Explained && (!v.Explained || v.Primary == other.Primary)
}

// Harms reports whether users are served worse than they should be.
func (v *Verdict) Harms() bool { return v.Condition.harms() }

// notReported is the verdict before the first report.
var notReported = Verdict{Condition: Unknown, Because: JustSeen}

// engine is the state of one engine and model.
type engine struct {
	saved
	number     int
	attributes []input.Attribute
	// described are the details of a pool's causes; nil for an engine, see detail.
	described *[NumCauses]string
	// began is the time of its first batch since the collector started, at that of its newest
	// reading, both in Unix nanoseconds.
	began, at int64
	baseline  *signal.Baseline
	// next is the level, observed since nextSince, that becomes the baseline if it lasts.
	next      *signal.Baseline
	nextSince int64
	// unlearned are readings that are learned once it is known that no harm followed.
	unlearned []unlearned
	// peers are its siblings, model what they are compared with of it. blocks is the number of KV
	// blocks; 0 where it is not known.
	peers  *Peers
	model  *signal.Model
	blocks float64
	// instead is the median sibling while it shows more than the own baseline; else nil.
	instead *signal.Model
	// slowed is the logarithm by how much longer its steps take for the same work, slowedPrefills
	// that of its prefills. excess is what its GPUs show of that.
	slowed, slowedPrefills float64
	excess                 excess

	swings swings
	still  standstill
	last   reading
	// resumption is nil where nothing is resumed, or not any more.
	resumption *resumption
	// since is, for each cause, since when its contribution differs from the reported one;
	// 0 where it does not.
	since  [NumCauses]int64
	memory reportedSeries
	// waits is true where the newest batch has nothing of the engine, or only a part of
	// it, so far.
	waits bool
	// follows is the verdict before its first report: that of the server, where it was
	// reported before any engine was known.
	follows Verdict
	// listed is true while the newest batch has the engine, or may still have it.
	listed bool
}

// Transition is a change of the reported diagnosis.
type Transition struct {
	// At is the time of the reading in Unix nanoseconds.
	At         int64
	Attributes []input.Attribute
	From, To   Verdict
	// Details are by cause; empty where a cause has none. Refined is true where the detail of
	// the primary cause has changed, and it is the same cause of the same condition.
	Details [NumCauses]string
	Refined bool
	// Shares are those of the reported harm; 0 without any.
	Shares Shares
	// Signals are those of the reading, Usual those of the baseline.
	Signals, Usual signal.Values
	// Failure is the outcome of the last scrape, where it failed; empty where unknown.
	Failure string
	// Missed is the share of observations beyond the threshold of To.Objective.
	Missed float64
	// Slower is by what share steps take longer for the same work since the version Earlier was
	// replaced by Version, where the detail of slow_steps is sinceVersion.
	Slower           float64
	Earlier, Version string
	// Felt says how long users wait, where they are harmed or were; empty elsewhere.
	Felt string
	// GPU is what the GPUs show of slow_steps; empty where they show nothing.
	GPU string
	// Relearned is true where a stable level has become the baseline.
	Relearned bool
	// Continues is true where nothing has changed: it is what was reported before the collector
	// restarted, and At the time of the last reading before.
	Continues bool
}

// State is the diagnosis of one resource. Its zero value is ready for use.
type State struct {
	// Keeper keeps the baselines of engines that have gone; nil for none.
	Keeper Keeper
	// GPUs calls visit with the GPUs of the server, if it has any; nil where none are known.
	GPUs func(visit func(*gpu.Joined))

	engines []*engine
	// byNumber finds an engine by the number of its group.
	byNumber map[int]*engine
	// queues are the requests that wait at a gateway, where the resource is one.
	queues []Queue
	// server is the server in front of the engines.
	server      server
	views       []window.View
	reader      reader
	transitions []Transition
	// version is that of the server; empty where it is not known exactly.
	version string
	// process is when its process began, in Unix seconds; 0 where it does not say.
	process float64
	upgrade Upgrade
}

// Observe takes the newest batch of a resource and returns what has changed. The
// result is valid until the next call.
func (s *State) Observe(settings *Settings, r *window.Resource) []Transition {
	s.transitions, s.upgrade = s.transitions[:0], Upgrade{}
	s.version = versionOf(r)
	s.views = r.Views(s.views, false)
	before := s.reader
	s.reader = reader{settings: settings, errors: math.NaN(), healthy: math.NaN(), dropped: math.NaN(), front: front{math.NaN(), math.NaN()}, files: math.NaN(), load: math.NaN(), unanswered: math.NaN(), freezes: freezes(r)}
	engines := 0
	s.beginServer()
	s.process = r.ProcessStart()
	up := math.NaN()
	late := s.late(r)
	s.queues = s.queues[:0]
	for i := range s.views {
		v := &s.views[i]
		s.reader.arrived += arrived(v)
		if isEngine(v) {
			engines++
		}
		if f := frontOf(v); signal.Known(f.ended) {
			s.reader.front = f
		}
		if v.Group().Engine() != "" {
			continue
		}
		s.server.observe(v)
		if waiting := value(v.Average(input.GatewayQueue)); signal.Known(waiting) {
			s.queues = append(s.queues, Queue{v.Group().Attributes, waiting})
		}
		up = signal.Or(value(v.Gauge(input.Up)), up)
		s.reader.observe(v)
		if share, answered, refused := serverErrors(v); signal.Known(share) {
			s.reader.errors, s.reader.answered, s.reader.refused = share, answered, refused
			half := v.Over(recently)
			share, answered, refused = serverErrors(&half)
			s.reader.failsNow = share >= greatErrors && answered >= leastAnswers && !refused
		}
		s.reader.dropped = signal.Or(value(v.Increase(input.Dropped)), s.reader.dropped)
		late = late || v.Pending()
	}
	if late && before.settings != nil {
		s.reader.keep(&before)
		if !signal.Known(s.reader.errors) {
			s.reader.errors, s.reader.answered, s.reader.refused = before.errors, before.answered, before.refused
		}
		if !signal.Known(s.reader.dropped) {
			s.reader.dropped, s.reader.arrived = before.dropped, before.arrived
		}
	}
	if late && before.settings != nil && !signal.Known(s.reader.front.ended) {
		s.reader.front = before.front
	}
	if engines > 1 || r.Affected(catalog.DefectOnlyLastEngine) {
		// Requests can be for another engine, perhaps for one that is not shown.
		s.reader.front, s.reader.files, s.reader.load, s.reader.unanswered = front{math.NaN(), math.NaN()}, math.NaN(), math.NaN(), math.NaN()
	}
	s.reader.merged = engines == 1 && r.Affected(catalog.DefectRayLastEngine)
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

// late reports whether this part of a batch lacks what the server in front of the engines
// reported before. Then the previous values hold.
func (s *State) late(r *window.Resource) bool {
	for g := range r.Pending() {
		if g.Engine() == "" {
			return true
		}
	}
	return false
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
	first, _ := moments(v, input.TimeToFirstToken)
	return max(signal.OrZero(first+value(v.Change(input.Waiting))), 0)
}

// observe reads an engine and reports its diagnosis.
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
	before := e.Progress
	e.Progress.observe(&r)
	if e.Progress.At == at && before.Scrapes > 1 && at-before.At >= int64(hiddenFor) && (e.last.runningNow > 0 || e.last.waitingNow > 0 || e.last.hidden > 0) {
		e.Resumed = at // It stood still for too short a time to be certain of it.
	}
	r.hidden = e.Hidden.observe(&r, before.At > 0 && e.Progress.At == at)
	if e.still = e.Progress.judge(&r); e.Canary.observe(&r, &e.Progress) || e.Hidden.certain(at) && e.Progress.none(at) {
		e.still = stuck
	}
	r.Signals[signal.Standstill] = e.Progress.standstill(at)
	r.doubtful = e.still == deserted || r.freezes && !e.Progress.Live && e.standing(&r) && e.still != stuck
	r.doubt(e.still)
	e.Restarts.observe(settings, &r)
	windows := 0.0
	if e.last.At > 0 && r.elapsed > 0 {
		windows = min(float64(at-e.last.At)/float64(settings.Window), 1)
	}
	found := e.observeHarm(settings, v, &r, windows)
	e.last = r
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
	e.report(settings, s, raw, at, &found)
	e.learn(settings, s, &r, &found, raw)
}

// conditions are the catalogue's, by number.
var conditions = func() (all [NumConditions]catalog.Condition) {
	for c := range NumConditions {
		described, _ := catalog.ConditionByName(c.String())
		all[c] = *described
	}
	return all
}()
