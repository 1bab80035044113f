package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
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
	// SpeculationBreakEven is the number of tokens that a step of speculative
	// decoding has to give to be worth its drafts; 0 where nobody said.
	SpeculationBreakEven float64
	Objectives           []Objective
}

// span is how long a state has to last beyond the first window that shows it.
func (s *Settings) span() int64 { return int64(s.Window) * int64(s.Hold-1) }

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

// engine is the state of one engine and model.
type engine struct {
	number     int
	attributes []collect.Attribute
	// described are the details of the causes where they are known already, as those
	// of a pool; nil for an engine, see detail.
	described *[NumCauses]string
	// first is the time of its first batch, at of its newest reading.
	first, at int64
	baseline  *baseline
	// next is what becomes the baseline if it lasts, since a time.
	next      *baseline
	nextSince int64
	// unlearned are readings that nobody knows yet whether they are healthy.
	unlearned []reading
	progress  progress
	last      reading
	// raw is what the last reading alone showed, since when, and since when all have
	// been harmful.
	raw                Condition
	rawSince, badSince int64
	// resumed is when it began to work again after it had stood still.
	resumed int64
	// shares are smoothed over a window.
	shares   Shares
	sharesAt int64
	told     Verdict
	memory   toldSeries
	// waits is true where the newest batch has only a part of the engine, so far.
	waits bool
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
	Signals, Usual Signals
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
	// queues are the requests that wait at a gateway, where the resource is one.
	queues      []queue
	views       []window.View
	reader      reader
	transitions []Transition
}

// queue is what waits at a gateway in the mean over the window, by the gateway's
// attributes.
type queue struct {
	attributes []collect.Attribute
	requests   float64
}

// Observe takes the newest batch of a resource and returns what has changed. The
// result is valid until the next call.
func (s *State) Observe(settings *Settings, r *window.Resource) []Transition {
	s.transitions = s.transitions[:0]
	s.views = r.Views(s.views, false)
	before := s.reader
	s.reader = reader{settings: settings, errors: math.NaN(), healthy: math.NaN()}
	up := math.NaN()
	late := s.late(r)
	s.queues = s.queues[:0]
	for i := range s.views {
		v := &s.views[i]
		if v.Group().Engine() != "" {
			continue
		}
		if waiting := value(v.Average(collect.GatewayQueue)); known(waiting) {
			s.queues = append(s.queues, queue{v.Group().Attributes, waiting})
		}
		up = or(value(v.Gauge(collect.Up)), up)
		s.reader.healthy = or(value(v.Gauge(collect.Healthy)), s.reader.healthy)
		if share, answered := serverErrors(v); known(share) {
			s.reader.errors, s.reader.answered = share, answered
		}
		late = late || v.Pending()
	}
	if late && before.settings != nil {
		s.reader.healthy = or(s.reader.healthy, before.healthy)
		if !known(s.reader.errors) {
			s.reader.errors, s.reader.answered = before.errors, before.answered
		}
	}
	for _, e := range s.engines {
		e.listed, e.waits = false, false
	}
	for i := range s.views {
		if v := &s.views[i]; isEngine(v) {
			s.engine(v.Group(), r.Time()).observe(settings, s, v, r.Time())
		}
	}
	for number := range r.PendingGroups() {
		for _, e := range s.engines {
			e.listed = e.listed || e.number == number
		}
	}
	if up == 0 {
		s.unreachable(settings, r.Time())
	}
	s.engines = slices.DeleteFunc(s.engines, func(e *engine) bool {
		if !e.listed {
			s.end(e)
		}
		return !e.listed
	})
	return s.transitions
}

// late tells whether what the server before the engines says is not in this part of
// a batch, so that what it said in the previous one holds.
func (s *State) late(r *window.Resource) bool {
	for number := range r.PendingGroups() {
		if group := (collect.Group{Attributes: r.Attributes(number)}); group.Engine() == "" {
			return true
		}
	}
	return false
}

// isEngine tells whether a group is an engine, and not the server before it.
func isEngine(v *window.View) bool {
	_, status := v.Gauge(collect.Running)
	return status != window.Missing
}

func (s *State) engine(g *window.Group, at int64) *engine {
	for _, e := range s.engines {
		if e.number == g.Number {
			e.listed = true
			return e
		}
	}
	e := &engine{number: g.Number, attributes: g.Attributes, first: at, baseline: s.begin(g.Attributes, at), listed: true}
	s.engines = append(s.engines, e)
	return e
}

// unreachable judges the engines of a server that does not answer. One that never
// has is starting for some time.
func (s *State) unreachable(settings *Settings, at int64) {
	if len(s.engines) == 0 {
		s.engines = append(s.engines, &engine{number: serverOnly, first: at, baseline: newBaseline()})
	}
	for _, e := range s.engines {
		e.listed = true
		condition := Unreachable
		if e.number == serverOnly && at-e.first < int64(startingFor) {
			condition = Starting
		}
		e.last.at, e.last.Signals = at, unknown()
		e.settle(settings, s, condition, at, &symptoms{})
	}
}

// serverOnly is the number of a server of which no engine is known.
const serverOnly = math.MaxInt32

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
	e.baseline.compare(&r)
	e.progress.observe(&r)
	felt := feel(&r, e.baseline, settings.measured(v.Group().Value("model_name")), e.told.Severity >= 2)
	e.last = r
	raw := e.judge(settings, &r, &felt)
	e.explain(settings, &r, &felt, raw)
	e.settle(settings, s, raw, at, &felt)
	e.learn(settings, s, &r, &felt, raw)
}

// explain keeps the shares of the causes, smoothed over a window.
func (e *engine) explain(settings *Settings, r *reading, felt *symptoms, raw Condition) {
	if raw != Degraded && raw != Failing {
		if e.told.Severity < 2 {
			e.shares, e.sharesAt = Shares{}, 0
		}
		return
	}
	latency, weight := split(r, e.baseline, felt)
	if weight > 0 {
		latency = e.before(r, latency)
	}
	now := e.others(settings, r, felt, latency.scale(weight), weight)
	keep := 0.0
	if e.sharesAt > 0 {
		keep = math.Exp(-float64(r.at-e.sharesAt) / float64(settings.Window))
	}
	e.shares = e.shares.scale(keep).plus(now.scale(1 - keep))
	e.sharesAt = r.at
}

// before gives what nothing explains that holds now to what held before: to the
// time that the engine did not work, or to the causes that were told, whose queue
// is still there. A KV cache that is full for no other reason is a cause itself.
func (e *engine) before(r *reading, s Shares) Shares {
	rest := 1.0
	for _, share := range s {
		rest -= share
	}
	switch {
	case rest <= 0:
	case e.resumed > 0 && r.at-e.resumed < int64(startingFor):
		s[Restarting] += rest
	case e.shares != Shares{}:
		s = s.plus(e.shares.whole().scale(rest))
	case r.Signals[KVUtilization] > full || r.Signals[Preemptions] > preempting:
		s[KVPressure] += rest
	}
	return s
}

// others adds the causes that are no part of a latency to the shares of what is, of
// which there is so much. Together they are at most 1.
func (e *engine) others(settings *Settings, r *reading, felt *symptoms, s Shares, all float64) Shares {
	if felt.errors {
		wrong := max(orZero(r.Signals[ErrorRatio]), orZero(r.Signals[CorruptedRatio]))
		cause := Erroring
		if r.Signals[CorruptedRatio] >= orZero(r.Signals[ErrorRatio]) {
			cause = CorruptedOutput
		}
		s[cause] += weight(wrong, harmfulErrors)
		all += weight(wrong, harmfulErrors)
	}
	if r.healthy == 0 {
		s[Erroring]++
		all++
	}
	if e.detail(PrefillHeavy) == reuseFell && r.Signals[KVBlockReuses] > thrashing {
		// What is evicted had been of use: prompts do repeat.
		s[CacheThrash] += s[PrefillHeavy]
		s[PrefillHeavy] = 0
	}
	if length := r.Signals[AcceptanceLength]; length < settings.SpeculationBreakEven {
		s[SpeculationWasteful] = max(s[SpeculationWasteful], contributes*all)
	}
	if r.restarted > 0 && r.at-r.restarted < int64(startingFor) {
		// A cold cache and what has queued meanwhile.
		s[Restarting] += s[PrefillHeavy] + s[DemandExceedsCapacity]
		s[PrefillHeavy], s[DemandExceedsCapacity] = 0, 0
	}
	if all <= 0 {
		return Shares{}
	}
	return s.scale(1 / all)
}

// settle decides what is told, given what the newest reading alone shows.
func (e *engine) settle(settings *Settings, s *State, raw Condition, at int64, felt *symptoms) {
	if raw != e.raw || e.rawSince == 0 {
		e.raw, e.rawSince = raw, at
	}
	bad := conditions[raw].Severity >= 2
	switch {
	case !bad:
		e.badSince = 0
	case e.badSince == 0:
		e.badSince = at
	}
	before := e.told
	span := settings.span()
	switch {
	case !e.memory.any():
		// The first word; harm has to last all the same.
		if e.told.Condition = raw; bad && raw != Stalled {
			e.told.Condition = Unknown
		}
	case raw == e.told.Condition:
	case raw == Stalled, at-e.rawSince >= span, !bad && e.told.Because == JustSeen:
		e.told.Condition = raw
	case bad && at-e.badSince >= span && conditions[e.told.Condition].Severity < 2:
		// It is one harm and then another, but harm all the time.
		e.told.Condition = Degraded
	}
	if still(before.Condition) && !still(e.told.Condition) {
		e.resumed = at
	}
	if e.told.Condition == Degraded || e.told.Condition == Failing {
		e.causes(felt)
	} else {
		e.told.Explained, e.told.Contributing = false, [NumCauses]bool{}
	}
	e.notices()
	e.told.Because = e.because()
	e.told.Severity = conditions[e.told.Condition].Severity
	if e.told.Notices != ([NumCauses]bool{}) {
		e.told.Severity = max(e.told.Severity, 1)
	}
	if !e.memory.any() || !e.told.same(&before) || e.told.Notices != before.Notices || e.told.Contributing != before.Contributing {
		first := !e.memory.any()
		e.memory.see(e)
		if !first || e.told.Severity > 0 {
			s.transitions = append(s.transitions, e.transition(before, felt))
		}
	}
}

// still tells whether an engine does no work in a condition.
func still(c Condition) bool { return c == Stalled || c == Asleep || c == Unreachable || c == Starting }

func (e *engine) transition(before Verdict, felt *symptoms) Transition {
	t := Transition{At: e.last.at, Attributes: e.attributes, From: before, To: e.told, Signals: e.last.Signals, Usual: unknown(), Missed: felt.objective.share}
	for s := range NumSignals {
		t.Usual[s] = e.baseline.usual(s)
	}
	for c := range NumCauses {
		t.Details[c] = e.detail(c)
	}
	return t
}

// causes chooses the primary cause and those that contribute.
func (e *engine) causes(felt *symptoms) {
	if felt.any() {
		e.told.Reference, e.told.Objective = felt.reference, felt.objective.name
	}
	largest := Cause(0)
	for c := range NumCauses {
		if e.shares[c] > e.shares[largest] {
			largest = c
		}
	}
	switch {
	case e.shares[largest] < e.explains() && !e.told.Explained:
	case e.shares[largest] < e.explains()*stillHarm:
		e.told.Explained = false
	case !e.told.Explained, e.shares[largest] > overtakes*e.shares[e.told.Primary]:
		e.told.Primary, e.told.Explained = largest, true
	}
	for c := range NumCauses {
		least := contributes
		if e.told.Contributing[c] {
			least = stillContributes
		}
		e.told.Contributing[c] = e.shares[c] >= least && !(e.told.Explained && c == e.told.Primary)
	}
}

// explains is the least share of the harm that makes a cause the primary one. With
// nothing to compare with it has to be most of it. A pool compares nothing itself.
func (e *engine) explains() float64 {
	if e.described == nil && e.baseline != nil && !e.baseline.ready() {
		return explainsAlone
	}
	return explains
}

// notices are what is worth knowing and harms nobody.
func (e *engine) notices() {
	e.told.Notices[FrozenGauges] = e.told.Condition == Idle && e.frozen(&e.last)
	grown := 0.0
	if e.told.Condition == Healthy && e.baseline.ready() && e.last.firstTokens >= leastObjectiveSeen {
		for _, s := range []Signal{ArrivalRate, PromptTokens, OutputTokens} {
			grown = max(grown, math.Abs(orZero(e.baseline.growth(&e.last, s)))/max(shifted, deviations*e.baseline.spread(s)))
		}
	}
	e.told.Notices[WorkloadShift] = grown >= 1 || (e.told.Notices[WorkloadShift] && grown >= stillHarm)
}

// reuseFell is the detail of prompts that are computed more and are not longer.
const reuseFell = "reuse_fell"

// detail says more about a cause.
func (e *engine) detail(c Cause) string {
	if e.described != nil {
		return e.described[c]
	}
	r, b := &e.last, e.baseline
	switch c {
	case DemandExceedsCapacity:
		switch {
		case r.Signals[KVUtilization] > full || r.Signals[Preemptions] > preempting:
			return "kv"
		case orZero(r.Signals[Waiting]) >= 1 && b.Step.N > 0 && b.promptShare(r) > 0.5:
			return "tokens"
		case orZero(r.Signals[Waiting]) >= 1 && r.Signals[KVUtilization] <= full:
			return "seqs"
		}
		return "unknown"
	case PrefillHeavy:
		if prompt := orZero(b.growth(r, PromptTokens)); prompt >= orZero(b.growth(r, ComputedTokens))-prompt {
			return "prompts_grew"
		}
		return reuseFell
	case DecodeLoad:
		if orZero(b.growth(r, OutputTokens)) >= orZero(b.growth(r, ArrivalRate)) {
			return "longer_outputs"
		}
		return "more_sequences"
	}
	return ""
}

// conditions are the catalogue's, by number.
var conditions = func() (all [NumConditions]catalog.Condition) {
	for c := range NumConditions {
		described, _ := catalog.ConditionByName(c.String())
		all[c] = *described
	}
	return all
}()
