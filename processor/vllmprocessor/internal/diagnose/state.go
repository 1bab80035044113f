package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Settings are the choices of a processor.
type Settings struct {
	// Window is the time that a reading is over.
	Window time.Duration
	// Hold is for how many windows a state has to last before it is told.
	Hold int
	// RelearnAfter is how long a level that is beyond the baseline has to last, and
	// be stable, until it becomes the baseline.
	RelearnAfter time.Duration
	// StartTimeout is how long a server that has never answered is starting.
	StartTimeout time.Duration
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where nobody said.
	SpeculationBreakEven float64
	Objectives           []Objective
}

// HoldTime is how long a state has to last beyond the first window that shows it.
func (s *Settings) HoldTime() int64 { return int64(s.Window) * int64(s.Hold-1) }

const (
	// explains is the least share of the harm of a primary cause: with less the
	// reason is not known.
	explains      = 0.35
	explainsAlone = 0.5
	// contributes is the share of the harm from which on a cause is told beside the
	// primary one, and stillContributes that below which it is not any more.
	contributes      = 0.2
	stillContributes = 0.12
	// overtakes is how many times as large as the primary's the share of another
	// cause has to be to take its place.
	overtakes = 1.25
	// thrashing is the number of uses beyond the first of an evicted KV block from
	// which on blocks are evicted that would have been asked for again.
	thrashing = 0.01
	// shifted is the growth of what is asked for that is worth a notice: twice.
	shifted = 0.69
)

// Verdict is what is told about an engine.
type Verdict struct {
	Condition Condition
	// Severity is that of the condition, or 1 where there is only a notice.
	Severity int
	// Because says why the condition is unknown.
	Because Because
	// Primary is the cause that explains most of the harm, where Explained.
	Primary   Cause
	Explained bool
	// Contributing and Notices are the others.
	Contributing, Notices [NumCauses]bool
	// Reference is what the latencies were compared with; Objective names the one
	// that is missed.
	Reference Reference
	Objective string
}

// same tells whether an operator would hear the same.
func (v *Verdict) same(other *Verdict) bool {
	return v.Condition == other.Condition && v.Because == other.Because && v.Explained == other.Explained && (!v.Explained || v.Primary == other.Primary)
}

// unheard is of what nothing was reported.
var unheard = Verdict{Condition: Unknown, Because: JustSeen}

// engine is the state of one engine and model.
type engine struct {
	number     int
	attributes []collect.Attribute
	// described are the details of the causes where they are known already, as those
	// of a pool; nil for an engine, see detail.
	described *[NumCauses]string
	// first is the time of its first batch, also before the collector restarted, began
	// that of its first batch since, and at that of its newest reading.
	first, began, at int64
	baseline         *learn.Baseline
	// next is what becomes the baseline if it lasts, since a time.
	next      *learn.Baseline
	nextSince int64
	// unlearned are readings that nobody knows yet whether they are healthy.
	unlearned []reading
	progress  progress
	restarts  restarts
	last      reading
	// raw is what the last reading alone showed, and since when; bad is whether that
	// is harm, and badSince since when it is or is not.
	raw Condition
	// since are the times from which on a cause contributes, or does not any more,
	// other than it is told; 0 where it is told as it is.
	since              [NumCauses]int64
	bad                bool
	rawSince, badSince int64
	// resumed is when it began to work again after it had stood still.
	resumed int64
	// shares are smoothed over a window.
	shares   Shares
	sharesAt int64
	told     Verdict
	memory   toldSeries
	// waits is true where the newest batch has nothing of the engine, or only a part of
	// it, so far.
	waits bool
	// follows is what was reported before the first word about it: of the server, before
	// any engine of it was known, or nothing.
	follows Verdict
	// lost is true where it was reported as unreachable before the collector restarted.
	lost bool
	// listed is for finding those that are not there any more.
	listed bool
}

// Transition is a change of what is told about an engine.
type Transition struct {
	At         int64
	Attributes []collect.Attribute
	From, To   Verdict
	// Details say more about a cause, by cause; empty where there is no more to say.
	Details [NumCauses]string
	// Signals are what was found, Usual what the baseline says of the same.
	Signals, Usual signal.Values
	// Failure is how the last scrape failed; empty where it is not reported.
	Failure string
	// Missed is the share of observations beyond the threshold of To.Objective.
	Missed float64
	// Relearned is true where a level that lasted has become the baseline.
	Relearned bool
}

// State is the diagnosis of one resource. Its zero value has seen nothing.
type State struct {
	// Keeper keeps baselines of engines that are not there; nil: none are kept.
	Keeper Keeper

	engines []*engine
	// byNumber finds an engine by the number of its group.
	byNumber map[int]*engine
	// queues are the requests that wait at a gateway, where the resource is one.
	queues []Queue
	// server is what is known of the server before the engines.
	server      server
	views       []window.View
	reader      reader
	transitions []Transition
}

// Observe takes the newest batch of a resource and returns what has changed. The
// result is valid until the next call.
func (s *State) Observe(settings *Settings, r *window.Resource) []Transition {
	s.transitions = s.transitions[:0]
	s.views = r.Views(s.views, false)
	before := s.reader
	s.reader = reader{settings: settings, errors: math.NaN(), healthy: math.NaN(), dropped: math.NaN()}
	s.server.begin(s.Keeper)
	up := math.NaN()
	late := s.late(r)
	s.queues = s.queues[:0]
	for i := range s.views {
		v := &s.views[i]
		s.reader.arrived += arrived(v)
		if v.Group().Engine() != "" {
			continue
		}
		s.server.observe(v)
		if waiting := value(v.Average(collect.GatewayQueue)); signal.Known(waiting) {
			s.queues = append(s.queues, Queue{v.Group().Attributes, waiting})
		}
		up = signal.Or(value(v.Gauge(collect.Up)), up)
		s.reader.healthy = signal.Or(value(v.Gauge(collect.Healthy)), s.reader.healthy)
		if share, answered := serverErrors(v); signal.Known(share) {
			s.reader.errors, s.reader.answered = share, answered
		}
		s.reader.dropped = signal.Or(value(v.Increase(collect.Dropped)), s.reader.dropped)
		late = late || v.Pending()
	}
	if late && before.settings != nil {
		s.reader.healthy = signal.Or(s.reader.healthy, before.healthy)
		if !signal.Known(s.reader.errors) {
			s.reader.errors, s.reader.answered = before.errors, before.answered
		}
		if !signal.Known(s.reader.dropped) {
			s.reader.dropped, s.reader.arrived = before.dropped, before.arrived
		}
	}
	s.server.count(up, r.Time())
	for _, e := range s.engines {
		e.listed, e.waits = false, false
	}
	for i := range s.views {
		if v := &s.views[i]; isEngine(v) {
			s.engine(v.Group(), r.Time()).observe(settings, s, v, r.Time())
		}
	}
	for number := range r.PendingGroups() {
		if e := s.byNumber[number]; e != nil {
			e.listed, e.waits = true, true
		}
	}
	if up == 0 {
		s.restore(r)
		s.unreachable(settings, r.Time())
	}
	if up == 1 && len(s.engines) > 0 {
		s.server.restored = nil
	}
	s.engines = slices.DeleteFunc(s.engines, func(e *engine) bool {
		if !e.listed {
			s.endBaseline(e)
			delete(s.byNumber, e.number)
		}
		return !e.listed
	})
	return s.transitions
}

// late tells whether what the server before the engines says is not in this part of
// a batch, so that what it said in the previous one holds.
func (s *State) late(r *window.Resource) bool {
	for g := range r.Pending() {
		if g.Engine() == "" {
			return true
		}
	}
	return false
}

// isEngine tells whether a group is an engine, and not the server before it. A
// server with several API processes may tell its counters without its gauges.
func isEngine(v *window.View) bool {
	_, running := v.Gauge(collect.Running)
	_, generated := v.Total(collect.GenerationTokens)
	return running != window.Missing || generated != window.Missing
}

// arrived is the number of requests that an engine admitted in the window, 0 where it
// does not say.
func arrived(v *window.View) float64 {
	first, _ := moments(v, collect.TimeToFirstToken)
	return max(signal.OrZero(first+value(v.Change(collect.Waiting))), 0)
}

func (s *State) engine(g *window.Group, at int64) *engine {
	if e := s.byNumber[g.Number]; e != nil {
		e.listed = true
		return e
	}
	e := &engine{number: g.Number, attributes: g.Attributes, first: s.server.first(g.Attributes, at), began: at, baseline: s.beginBaseline(g.Attributes, at), listed: true, follows: unheard}
	if server := s.byNumber[ServerOnly]; server != nil {
		e.follows = server.told
	}
	s.include(e)
	return e
}

func (s *State) include(e *engine) {
	if s.byNumber == nil {
		s.byNumber = map[int]*engine{}
	}
	s.byNumber[e.number] = e
	s.engines = append(s.engines, e)
}

// ServerOnly is the group number of a server without a known engine.
const ServerOnly = math.MaxInt32

// observe takes a reading of an engine.
func (e *engine) observe(settings *Settings, s *State, v *window.View, at int64) {
	if e.at == at {
		return
	}
	// A part of a batch looks like an engine that does nothing. One that has just
	// restarted lacks what it will say later.
	restarted, _ := v.Restarted()
	if e.waits = v.Pending() && restarted != at; e.waits {
		return
	}
	e.at = at
	r := s.reader.read(v, at)
	e.baseline.Compare(&r.Window)
	e.progress.observe(&r)
	r.Signals[signal.Standstill] = e.progress.standstill(at)
	e.restarts.observe(settings, &r)
	felt := feel(&r, e.baseline, settings.measured(v.Group().Value("model_name")), e.told.Severity >= 2)
	e.last = r
	raw := e.judge(settings, &r, &felt)
	if s.server.draining {
		raw = Draining
	}
	e.explain(settings, &r, &felt, raw)
	e.settle(settings, s, raw, at, &felt)
	e.learn(settings, s, &r, &felt, raw)
}

// conditions are the catalogue's, by number.
var conditions = func() (all [NumConditions]catalog.Condition) {
	for c := range NumConditions {
		described, _ := catalog.ConditionByName(c.String())
		all[c] = *described
	}
	return all
}()
