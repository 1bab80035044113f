package diagnose

import (
	"math"
	"time"

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
	StillHarm         = 0.75
	deviations        = 4
	defaultFirstToken = 2.0
	defaultTokenGap   = 0.1
	// leastSteps is how many gaps a window needs to be judged by its steps.
	leastSteps = 20
	// fewFirstTokens is how many requests a window needs to be compared with what is usual, unless some
	// wait: what a few of them need varies too much. Limits for any engine need fewOfDefaults.
	fewFirstTokens, fewOfDefaults = 10, 2

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
	// great is true where the harm is great, failsNow where half of the newest answers are errors.
	great, failsNow bool
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

	numHarms
)

// noise is the standard deviation of an effect. Effects are what changed factors and queues cost,
// and vary far less than latencies do.
const noise = 0.5

// nearly is how far a change can be from being certain, in the score of its test, for its cost to
// collect evidence: about the last window of a change of five deviations.
const nearly = 4.0

// likely is how many deviations a factor is beyond its usual from which on it has a share of a harm that is certain,
// although its own change is not.
const likely = 2.0

// suspects are growths of factors: those that are certain, and in addition those that may be harm soon, and those that
// are likely where there is harm.
type suspects struct{ certain, perhaps, likely growths }

// observeFactors tests each factor for a change.
func (e *engine) observeFactors(r *reading, few bool, windows float64, window int64) (c suspects) {
	b := e.baseline
	swing := e.swings.observe(r.At, signal.OrZero(r.runningNow), window)
	if few && !(r.gaps >= leastSteps) {
		return c
	}
	grown, deviations := newGrowths(r, b, swing)
	if few {
		// Steps need no new requests.
		grown, deviations = grown.only(slowerSteps), deviations.only(slowerSteps)
	}
	for f := range numFactors {
		if !signal.Known(deviations[f]) && !f.hasUsual(b) {
			e.Changes[f] = change{}
		}
		e.Changes[f].observe(deviations[f], windows, f.changedAt())
	}
	e.observePeers(r, swing, windows, &grown, &deviations)
	e.slowed, e.slowedPrefills = signal.OrZero(grown[slowerSteps]), signal.OrZero(grown[slowerPrefills])
	c.certain = e.changed(&grown, &deviations)
	c.perhaps, c.likely = c.certain, c.certain
	for f := range numFactors {
		if c.certain[f] > 0 || !(grown[f] > 0) {
			continue
		}
		if e.Changes[f].Score > f.changedAt()-nearly {
			c.perhaps[f] = grown[f]
		}
		// An engine that does not move has another reason.
		if deviations[f] > likely && !e.mixes(f) && !e.standing(r) {
			c.likely[f] = grown[f]
		}
	}
	return c
}

// observeQueue follows the queue, and returns which part of it each growth explains. More requests
// take longer and queue for a while, as they must: that is not harm before more arrive than are
// served, so until then it leaves more arrivals out of all growths.
func (e *engine) observeQueue(r *reading, c *suspects, windows float64, window time.Duration) (queues, likelyQueues growths) {
	if !r.doubtful {
		waiting := r.waitingNow - signal.OrZero(r.Signals[signal.Deferred])
		e.Backlog.observe(r.At, waiting, int64(window))
		queuePerhaps := c.perhaps
		for f := range longerOutputs + 1 {
			queuePerhaps[f] = c.certain[f]
		}
		e.Without.observe(r, waiting, capacity(r, e.baseline, &queuePerhaps), windows*window.Seconds())
		queues = e.Without.shares(capacity(r, e.baseline, &c.certain))
	}
	if !e.Backlog.Over && e.Felt.clearSince == 0 {
		c.certain[moreArrivals], c.perhaps[moreArrivals], c.likely[moreArrivals], queues[moreArrivals] = 0, 0, 0, 0
	}
	if !r.doubtful {
		likelyQueues = e.Without.shares(capacity(r, e.baseline, &c.likely))
	}
	return queues, likelyQueues
}

// losses are effects on both latencies: what is certain, and what may be.
type losses struct{ first, gap, mayFirst, mayGap float64 }

// observeHarm collects the evidence of harm, and returns what is certain.
func (e *engine) observeHarm(settings *Settings, v *window.View, r *reading, windows float64) (s symptoms) {
	few := !(r.FirstTokens >= fewFirstTokens)
	ended := e.observeFelt(settings, v, r, &s)
	e.GivenUp.observe(r, e.baseline, settings.Window)
	model := v.Group().Value("model_name")
	leftQueue := e.GivenUp.fromQueue(r.At) && e.baseline.Ready() && !settings.batch(model)
	c := e.observeFactors(r, few, windows, int64(settings.Window))
	queues, likelyQueues := e.observeQueue(r, &c, windows, settings.Window)
	// Users who wait for long because of a queue show that it does not drain.
	over := e.Backlog.Over || (e.Felt.On || leftQueue) && r.waitingNow-signal.OrZero(r.Signals[signal.Deferred]) > 1
	certain := newEffects(r, e.reference(), &c.certain, over, queues)
	mayBe := certain
	if c.perhaps != c.certain {
		mayBe = newEffects(r, e.reference(), &c.perhaps, over, queues)
	}
	// That there is harm must be certain. What may be its cause needs less evidence then.
	s.effects = newEffects(r, e.reference(), &c.likely, over, likelyQueues)
	var x losses
	x.first = effect(certain.first, certain.usualFirst, harmFirstToken)
	x.gap = effect(certain.gap, certain.usualGap, harmTokenGap)
	x.mayFirst = max(x.first, effect(mayBe.first, mayBe.usualFirst, harmFirstToken))
	x.mayGap = max(x.gap, effect(mayBe.gap, mayBe.usualGap, harmTokenGap))
	s.reference = x.beyondDefaults(e.baseline, r)
	if few && !(s.reference == Defaults && r.FirstTokens >= fewOfDefaults) && !(r.waitingNow > 1) {
		x.first, x.mayFirst = 0, 0
		if r.gaps < leastSteps {
			x.gap, x.mayGap = 0, 0
		}
	}
	x.withoutFirstToken(e.baseline, r)
	if r.elapsed == 0 {
		x = losses{}
	} else if lasts(e.Felt.soundSince, r.At, soundFor) && max(x.mayFirst, x.mayGap) < soundPart {
		e.Harms, ended = [numHarms]evidence{}, true
	}
	s.perhaps = x.mayFirst > 1 || x.mayGap > 1
	ends := settings.Hold
	if s.reference == Defaults {
		// Limits for any engine leave no doubt that the harm has ended.
		ends = 1
	}
	if settings.batch(model) {
		x.first, x.mayFirst = 0, 0 // Nobody waits.
	}
	e.Harms[lateFirst].observe(x.first, x.mayFirst, windows, settings.Hold, ends)
	e.Harms[slowTokens].observe(x.gap, x.mayGap, windows, settings.Hold, ends)
	s.suspect = s.suspect || x.first > 1 || x.gap > 1
	if c.certain[slowerSteps] > 0 && e.instead != nil {
		s.reference = Learned // What is usual in its pool.
	}
	// Those who leave a queue have waited too long, although the latencies belong to those who stay, unless they always do.
	late, slow := e.misses(settings, r, lateFirst), e.misses(settings, r, slowTokens)
	longest, _ := settings.longest(model, lateFirst)
	s.firstToken = e.Harms[lateFirst].On && (late || r.leastWait > longest) || e.Felt.On && e.Felt.First || leftQueue
	s.tokenGap = e.Harms[slowTokens].On && slow || e.Felt.On && e.Felt.Gap
	s.suspect = s.suspect && !ended || leftQueue
	e.observeObjectives(settings, r, windows, x.first >= 1 || x.gap >= 1, &s)
	s.observeErrors(r)
	return s
}

// withoutFirstToken adds what is certain where requests wait and none gets its first token.
func (x *losses) withoutFirstToken(b *signal.Baseline, r *reading) {
	usual := b.Usual(signal.TimeToFirstToken)
	if !b.Ready() || !signal.Known(usual) || !(r.leastWait > 0 && r.waitingNow > 1) || r.doubtful {
		return
	}
	x.first = max(x.first, effect(r.leastWait-usual, usual, harmFirstToken))
	x.mayFirst = max(x.mayFirst, x.first)
}

// observeErrors adds what is wrong without any latency.
func (s *symptoms) observeErrors(r *reading) {
	wrong := max(signal.OrZero(r.Signals[signal.ErrorRatio]), signal.OrZero(r.Signals[signal.CorruptedRatio]))
	s.errors = wrong >= harmfulErrors && wrong*r.finished >= leastErrors
	s.dropped = r.dropped > 0
	s.suspect = s.suspect || s.errors || s.dropped
	s.failing = s.failsNow || s.errors && wrong >= failingErrors && !r.refused || r.dropped >= leastErrors && r.Signals[signal.DroppedRatio] >= failingErrors
}

// A sequential test decides as soon as there is enough evidence: after two windows of a
// great harm, and after five of the least that counts. Readings overlap, so
// each counts by the part of a window since the one before: what happened in one window has
// the weight of one window, whatever the interval of the scrapes.

// enoughEvidence is the log likelihood ratio that decides: ln(22,000). Without harm it is reached
// falsely once in at least so many windows on average (Lorden, 1971), if their errors are independent
// and as assumed.
const enoughEvidence = 10

// evidence is a test of the effect 1, the bar of harm, against the effect 0, by the log likelihood
// ratio of Wald's sequential test (1945). The score does not fall below 0, so that it begins again
// until there is harm: it is a CUSUM of the ratio (Page, 1954).
type evidence struct {
	Score float64 `json:",omitzero"`
	// On is whether it has decided for harm. It ends when it has decided against it, or after some
	// windows that are clear.
	On bool `json:",omitzero"`
	// Clear is for how many windows no reading has been evidence for harm.
	Clear float64 `json:",omitzero"`
}

// observe adds a reading. effect is the harm as a multiple of the bar, mayBe the same with what may
// have changed in addition, windows the time since the reading before
// in windows. The score collects mayBe, so that it need not wait until a change is certain; it
// decides for harm only if effect is at least 1. However great an effect, it takes about hold windows.
// It has ended after ends windows without a reading for harm.
func (e *evidence) observe(effect, mayBe, windows float64, hold, ends int) {
	// The logarithm of the ratio of the two normal densities.
	was := e.On
	e.add((mayBe-0.5)/(noise*noise), windows, float64(hold), float64(ends))
	if !was && e.On && effect < 1 {
		e.On = false
	}
}

// add adds a log likelihood ratio of one window: at most so much that a decision takes hold windows less
// half of one. In the first window of a change half of what is measured is from before, on average.
func (e *evidence) add(ratio, windows, hold, ends float64) {
	if math.IsNaN(ratio) {
		return
	}
	most := enoughEvidence / max(hold-0.5, 0.5)
	e.Score += windows * min(max(ratio, -most), most)
	e.Score = min(max(e.Score, 0), enoughEvidence)
	if e.Clear += windows; ratio > 0 {
		e.Clear = 0
	}
	if e.Clear >= ends {
		// The readings since then have nothing in common with those of the harm.
		e.Score = 0
	}
	switch {
	case e.Score >= enoughEvidence*(1-1e-9):
		e.On = true
	case e.Score <= 0:
		e.On = false
	}
}

// change is a one-sided CUSUM test (Page, 1954) of whether a number has grown permanently.
type change struct {
	Score float64 `json:",omitzero"`
	On    bool    `json:",omitzero"`
}

const (
	// slack is the growth in standard deviations that is not a change; changedAt is what has to
	// accumulate beyond it. With independent normal readings a change is found falsely once in
	// at least exp(2 slack changedAt) / (2 slack^2) windows (Siegmund, 1985, without the
	// correction for the overshoot): 11,000.
	slack     = 1.0
	changedAt = 5.0
	// workChangedAt is the same of the work and of latencies, which vary from hour to hour more than
	// any spread shows.
	workChangedAt = 8.0
	// mostDeviations bounds what one window says, since real readings have heavy tails.
	mostDeviations = 6.0
	// remembers is how far the score goes beyond: for so many windows without growth a
	// change that has ended is still the reason for what it left behind.
	remembers = 2.0
)

func (c *change) observe(deviations, windows, at float64) {
	if math.IsNaN(deviations) {
		return
	}
	c.Score += windows * (min(max(deviations, -mostDeviations), mostDeviations) - slack)
	c.Score = min(max(c.Score, 0), at+remembers)
	switch {
	case c.Score >= at:
		c.On = true
	case c.Score <= 0:
		c.On = false
	}
}
