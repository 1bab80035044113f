package diagnose

import (
	"fmt"
	"math"
	"os"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Reference is what latencies are compared with.
type Reference uint8

// The references. A later one wins over an earlier one.
const (
	// Defaults are documented limits for interactive services.
	Defaults Reference = iota
	// Learned is the engine's own baseline.
	Learned
	// Objectives are the user's.
	Objectives
)

// String is the reference as the log has it.
func (r Reference) String() string { return [...]string{"defaults", "baseline", "objective"}[r] }

// Objective is an objective for a latency, see the processor's configuration.
type Objective struct {
	Name  string
	Input collect.Input
	// Threshold is in seconds. Target is the share that should be within it.
	Threshold, Target float64
	// Matches reports whether the objective is for a model.
	Matches func(model string) bool
}

const (
	// What changed factors cost is harm from harmRatio times the usual latency and the least
	// difference on: 30 %, and 100 ms of the first token or 5 ms of each further one, less the
	// error that a mean over a window can have.
	harmRatio      = 1.28
	harmFirstToken = 0.09
	harmTokenGap   = 0.0045
	// StillHarm is the part of a threshold below which a primary cause, a shift of the work or a
	// harmed pool no longer is one: without it a value near the threshold would change the report
	// again and again.
	StillHarm          = 0.75
	deviations         = 4
	defaultFirstToken  = 2.0
	defaultTokenGap    = 0.1
	leastObjectiveSeen = 20
	// fewFirstTokens is how many requests a window needs to be judged by latency, unless some
	// wait.
	fewFirstTokens = 2

	// harmfulErrors and failingErrors are shares of requests without a right answer.
	// leastErrors is the least number of them.
	harmfulErrors = 0.05
	failingErrors = 0.2
	leastErrors   = 3
)

// symptoms are the harm that is certain enough to be reported.
type symptoms struct {
	reference Reference
	// firstToken and tokenGap are true where that latency is too long, errors where too
	// many requests have no right answer, failing where so many that the server fails.
	firstToken, tokenGap, errors, failing bool
	// dropped is true where the server drops requests.
	dropped bool
	// objective is the missed objective, if any.
	objective missed
	// suspect is true where the newest reading shows harm, certain or not.
	suspect bool
	// perhaps is true where what may have changed would be harm.
	perhaps bool
	effects effects
}

func (s *symptoms) any() bool {
	return s.firstToken || s.tokenGap || s.errors || s.dropped || s.failing || s.objective.name != ""
}

// The kinds of harm that evidence is collected for.
const (
	lateFirst = iota
	slowTokens
	missedObjective
	wrongAnswers
	droppedRequests

	numHarms
)

// noise is the standard deviation of an effect. Effects are what changed factors and queues cost,
// and vary far less than latencies do.
const noise = 0.5

// observeHarm collects the evidence of harm, and returns what is certain.
func (e *engine) observeHarm(settings *Settings, v *window.View, r *reading, windows float64) (s symptoms) {
	b, measured := e.baseline, settings.measured(v.Group().Value("model_name"))
	var c, perhaps growths
	swing := e.swings.observe(r.At, signal.OrZero(r.runningNow), int64(settings.Window))
	few := !(r.FirstTokens >= fewFirstTokens)
	if !few || r.gaps >= leastObjectiveSeen {
		grown, deviations := newGrowths(r, b, swing)
		if few {
			grown, deviations = grown.only(slowerSteps), deviations.only(slowerSteps) // Steps need no new requests.
		}
		for f := range numFactors {
			if !signal.Known(deviations[f]) && !f.hasUsual(b) {
				e.changes[f] = change{}
			}
			e.changes[f].observe(deviations[f], windows, f.changedAt())
		}
		e.observePeers(r, swing, windows, &grown, &deviations)
		e.slowed = signal.OrZero(grown[slowerSteps])
		c = e.changed(&grown, &deviations)
		for f := range numFactors {
			if perhaps[f] = c[f]; c[f] == 0 && grown[f] > 0 && e.changes[f].score > f.changedAt()-4 {
				perhaps[f] = grown[f]
			}
		}
	}
	var queues growths
	if !r.doubtful {
		waiting := r.waitingNow - signal.OrZero(r.Signals[signal.Deferred])
		e.backlog.observe(r.At, waiting, int64(settings.Window))
		by := capacity(r, b, &c)
		queuePerhaps := perhaps
		for f := range longerOutputs + 1 {
			queuePerhaps[f] = c[f]
		}
		e.without.observe(r, waiting, capacity(r, b, &queuePerhaps), windows*settings.Window.Seconds())
		queues = e.without.shares(by)
	}
	if !e.backlog.over {
		// More requests take longer and queue for a while, as they must. That is no harm before
		// more arrive than are served.
		c[moreArrivals], perhaps[moreArrivals], queues[moreArrivals] = 0, 0, 0
	}
	s.effects = newEffects(r, e.reference(), &c, e.backlog.over, queues)
	first := effect(s.effects.first, s.effects.usualFirst, harmFirstToken)
	gap := effect(s.effects.gap, s.effects.usualGap, harmTokenGap)
	mayBe := newEffects(r, e.reference(), &perhaps, e.backlog.over, queues)
	mayFirst := max(first, effect(mayBe.first, mayBe.usualFirst, harmFirstToken))
	mayGap := max(gap, effect(mayBe.gap, mayBe.usualGap, harmTokenGap))
	s.reference = Learned
	// What is broken from the start is compared with documented limits.
	if !b.Ready() || !signal.Known(b.Usual(signal.TimeToFirstToken)) {
		s.reference = Defaults
		if late := max(signal.OrZero(r.Signals[signal.TimeToFirstToken]), r.leastWait) / defaultFirstToken; late > 1 {
			first = max(first, late)
			mayFirst = first
		}
	}
	if !b.Ready() || !signal.Known(b.Usual(signal.InterTokenLatency)) {
		s.reference = Defaults
		if late := lateGap(r); late > 1 {
			gap = max(gap, late)
			mayGap = gap
		}
	}
	if few && !(r.waitingNow > 1) || r.elapsed == 0 {
		first, mayFirst = 0, 0
	}
	if few && !(r.waitingNow > 1) && r.gaps < leastObjectiveSeen || r.elapsed == 0 {
		gap, mayGap = 0, 0
	}
	if usual := b.Usual(signal.TimeToFirstToken); b.Ready() && r.leastWait > 0 && r.waitingNow > 1 && !r.doubtful && r.elapsed > 0 {
		first = max(first, signal.OrZero(effect(r.leastWait-usual, usual, harmFirstToken)))
		mayFirst = max(mayFirst, first)
	}
	s.perhaps = mayFirst > 1 || mayGap > 1
	hold := settings.Hold
	if s.reference == Defaults {
		// Limits for any engine leave no doubt that the harm has ended.
		hold = 1
	}
	if !measured[collect.TimeToFirstToken] {
		e.harms[lateFirst].observe(first, mayFirst, noise, windows, settings.Hold, hold)
		s.suspect = s.suspect || first > 1
	} else {
		e.harms[lateFirst] = evidence{} // The objective says what is harm.
	}
	if !measured[collect.InterTokenLatency] {
		e.harms[slowTokens].observe(gap, mayGap, noise, windows, settings.Hold, hold)
		s.suspect = s.suspect || gap > 1
	}
	if os.Getenv("DBG") != "" {
		fmt.Printf("  t=%.1f rdy=%v", float64(r.At%(1e9*86400*7))/6e10-1440*4, b.Ready())
		if r.FirstTokens >= fewFirstTokens {
			gg, dd := newGrowths(r, b, swing)
			for f := range numFactors {
				if signal.Known(gg[f]) {
					fmt.Printf(" %s=%.2f/%.1f/%.1f", [...]string{"arr", "prm", "cmp", "out", "acc", "blk", "stp", "pre", "fe", "def", "ttf"}[f], gg[f], dd[f], e.changes[f].score)
				}
			}
		}
		_, bs := b.StepAt(r.Work())
		fmt.Printf(" | ttft=%.3f/%.3f itl=%.4f/%.4f q=%.2f pf=%.3f/%.3f w=%.0f run=%.0f kv=%.2f over=%v busy=%.2f | first=%.2f gap=%.2f ev=", r.Signals[signal.TimeToFirstToken], b.Usual(signal.TimeToFirstToken), r.Signals[signal.InterTokenLatency], b.Usual(signal.InterTokenLatency), r.Signals[signal.QueueTime], r.Signals[signal.PrefillTime], b.Usual(signal.PrefillTime), r.waitingNow, r.Signals[signal.Running], r.Signals[signal.KVUtilization], e.backlog.over, bs, first, gap)
		for i := range e.harms {
			fmt.Printf(" %.1f", e.harms[i].score)
		}
		fmt.Printf(" obj=%s %.3f/%.3f und=%.2f n=%.0f\n", r.worst.name, r.worst.share, r.worst.allowed, r.worst.undecided, r.worst.seen)
	}
	if c[slowerSteps] > 0 && e.instead != nil {
		s.reference = Learned // What is usual in its pool.
	}
	s.firstToken, s.tokenGap = e.harms[lateFirst].on, e.harms[slowTokens].on
	e.observeObjectives(settings, r, windows, first >= 1 || gap >= 1, &s)
	wrong := max(signal.OrZero(r.Signals[signal.ErrorRatio]), signal.OrZero(r.Signals[signal.CorruptedRatio]))
	now := wrong >= harmfulErrors && wrong*r.finished >= leastErrors
	s.errors = now
	s.dropped = r.dropped > 0
	s.suspect = s.suspect || s.errors || s.dropped
	s.failing = s.errors && wrong >= failingErrors && !r.refused || r.dropped >= leastErrors && r.Signals[signal.DroppedRatio] >= failingErrors
	return s
}

// observeObjectives collects the evidence that an objective is missed.
func (e *engine) observeObjectives(settings *Settings, r *reading, windows float64, changed bool, s *symptoms) {
	if len(settings.Objectives) == 0 {
		return
	}
	worst := r.worst
	if worst.name == "" {
		return
	}
	// A binomial test of twice what is allowed against what is allowed. Requests that miss
	// come in groups, so that each counts for less.
	p0 := worst.allowed
	p1 := min(2*p0, (1+p0)/2)
	share, together, doubt := worst.share, grouped, splitDoubt*worst.undecided
	if changed {
		together, doubt, p0, p1 = 1, 0, p0/2, p0
	}
	ratio := 0.0
	switch {
	case share-doubt > p0:
		share -= doubt
	case share+doubt < p0:
		share += doubt
	default:
		share = math.NaN() // The buckets do not show whether it is missed.
	}
	if ablated(partObjectivesSequential) {
		ratio = math.Copysign(enoughEvidence, worst.share-worst.allowed)
	} else if signal.Known(share) {
		hits := share * worst.seen
		ratio = (hits*math.Log(p1/p0) + (worst.seen-hits)*math.Log((1-p1)/(1-p0))) / together
	}
	e.harms[missedObjective].add(ratio, windows, float64(settings.Hold)+1, float64(settings.Hold)+1)
	s.suspect = s.suspect || worst.share > worst.allowed
	if e.harms[missedObjective].on {
		s.objective = worst
		s.reference = Objectives
		in := worst.input
		s.firstToken = s.firstToken || in != collect.InterTokenLatency && in != collect.TimePerOutputToken && in != collect.DecodeTime
		s.tokenGap = s.tokenGap || in != collect.TimeToFirstToken && in != collect.QueueTime && in != collect.PrefillTime
	}
}

// splitDoubt is the error of the estimate within the bucket that the threshold splits.
const splitDoubt = 0.25

// grouped is how many requests that miss an objective come together.
const grouped = 3.0

// missed returns the worst of the objectives, relative to what its target allows, and the
// objective that the most requests miss, whatever its target. A request meets an objective
// for the time between tokens where its mean does.
func (s *Settings) missed(v *window.View) (worst, most missed) {
	var seen histogram.Histogram
	for i := range s.Objectives {
		o := &s.Objectives[i]
		if !o.Matches(v.Group().Value("model_name")) {
			continue
		}
		seen.Reset()
		if derive.Observations(v, &seen, o.Input) != derive.OK || seen.Count < leastObjectiveSeen {
			continue
		}
		one := missed{o.Name, o.Input, 1 - seen.Below(o.Threshold)/seen.Count, 1 - o.Target, seen.Count, 0}
		_, one.undecided = seen.Within(o.Threshold)
		one.undecided /= seen.Count
		request := one
		if o.Input == collect.InterTokenLatency {
			seen.Reset()
			if derive.Observations(v, &seen, collect.TimePerOutputToken) != derive.OK || seen.Count < leastObjectiveSeen {
				continue
			}
			good, undecided := seen.Within(o.Threshold)
			request.share = 1 - (good+undecided)/seen.Count
		}
		if most.name == "" || request.share > most.share {
			most = request
		}
		if o.Input == collect.InterTokenLatency {
			one.seen = signal.Or(requests(v), one.seen) // The gaps of a request are alike.
		}
		if worst.name == "" || one.share*worst.allowed >= worst.share*one.allowed {
			worst = one
		}
	}
	return worst, most
}

// requests is how many requests ended in the window.
func requests(v *window.View) float64 {
	n, _ := moments(v, collect.TimePerOutputToken)
	return n
}

// measured is true for the latencies with an objective for a model.
func (s *Settings) measured(model string) (inputs [collect.NumInputs]bool) {
	for i := range s.Objectives {
		if s.Objectives[i].Matches(model) {
			inputs[s.Objectives[i].Input] = true
		}
	}
	return inputs
}
