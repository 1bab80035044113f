package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
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
	// A latency is harmful from harmRatio times the usual one and the least difference
	// on: 30 %, and 100 ms of the first token or 5 ms of each further one, less the error
	// that a mean over a window can have.
	harmRatio      = 1.28
	harmFirstToken = 0.09
	harmTokenGap   = 0.0045
	// StillHarm is the part of a threshold below which something that was harmful no longer
	// is: without it a value near the threshold would change the report again and again.
	StillHarm          = 0.75
	deviations         = 4
	defaultFirstToken  = 2.0
	defaultTokenGap    = 0.1
	leastObjectiveSeen = 20
	// fewFirstTokens is how many requests can be judged by the defaults where they are
	// too few to be compared with the baseline.
	fewFirstTokens = 2

	// harmfulErrors and failingErrors are shares of requests without a right answer.
	// leastErrors is the least number of them.
	harmfulErrors = 0.05
	failingErrors = 0.2
	leastErrors   = 3
)

// symptoms are the harm that a reading shows.
type symptoms struct {
	reference Reference
	// firstToken and tokenGap are true where that latency is too long, errors where too
	// many requests have no right answer, failing where so many that the server fails.
	firstToken, tokenGap, errors, failing bool
	// dropped is true where the server drops requests.
	dropped bool
	// objective is the missed objective, if any.
	objective missed
	// beyond is true where a latency is beyond the baseline, also where an objective
	// allows that.
	beyond bool
}

func (s *symptoms) any() bool {
	return s.firstToken || s.tokenGap || s.errors || s.dropped || s.failing || s.objective.name != ""
}

// limit is the longest harmless latency by the baseline: the usual one plus the harm, and
// at least the usual variation. already is true where harm is reported: then the limit is
// lower, so that the harm ends clearly.
func limit(b *learn.Baseline, s signal.Signal, least float64, already bool) float64 {
	return max(b.Usual(s)+harm(b, s, least, already), b.Usual(s)*math.Exp(deviations*b.Spread(s)))
}

// harm is by how much a latency has to exceed the usual one to be harmful.
func harm(b *learn.Baseline, s signal.Signal, least float64, already bool) float64 {
	harm := max(b.Usual(s)*(harmRatio-1), least)
	if already {
		harm *= StillHarm
	}
	return harm
}

// certain reports whether a delay that does not depend on the request mix already exceeds
// the harm threshold: in the front end, in the queue of deferred requests or of a smaller
// KV cache, after failed transfers, and in steps that are slower than their load explains.
// These delays vary far less from window to window than the latencies, which depend on the
// lengths of prompts.
func certain(r *reading, b *learn.Baseline, already bool) (firstToken, tokenGap bool) {
	g := newGrowths(r, b)
	excess := func(s signal.Signal) float64 {
		if usual := b.Usual(s); r.Signals[s] > usual*math.Exp(deviations*b.Spread(s)) {
			return r.Signals[s] - usual
		}
		return 0
	}
	first := excess(signal.FrontEnd)
	if deferred := excess(signal.Deferred); deferred >= 1 {
		first += signal.OrZero(deferred / r.Signals[signal.FirstTokenRate])
	}
	prefill := signal.OrZero(r.Signals[signal.PrefillTime])
	slow := prefill * (1 - math.Exp(-g.prefillSlow))
	if r.transfersFail() {
		slow = max(slow, prefill-b.Usual(signal.PrefillTime))
	}
	first += slow
	if g.blocks > fewerBlocks {
		first += max(signal.OrZero(r.Signals[signal.QueueTime]-b.Usual(signal.QueueTime)), 0)
	}
	gap := signal.OrZero(r.Signals[signal.InterTokenLatency]) * (1 - math.Exp(-g.slow-g.wasted))
	return first > harm(b, signal.TimeToFirstToken, harmFirstToken, already), gap > harm(b, signal.InterTokenLatency, harmTokenGap, already)
}

// newSymptoms returns the symptoms of an engine. measured is true for latencies with an
// objective, which wins over the baseline. already is true where harm is reported.
func newSymptoms(r *reading, b *learn.Baseline, measured [collect.NumInputs]bool, already bool) (s symptoms) {
	limitFirst, limitGap := defaultFirstToken, defaultTokenGap
	if b.Ready() {
		s.reference = Learned
		// After an upgrade, what is usual may be known for one of them only.
		limitFirst = signal.Or(limit(b, signal.TimeToFirstToken, harmFirstToken, already), limitFirst)
		limitGap = signal.Or(limit(b, signal.InterTokenLatency, harmTokenGap, already), limitGap)
	}
	switch {
	case r.FirstTokens >= learn.LeastFirstTokens || (already && r.FirstTokens > 0):
		first, gap := r.Signals[signal.TimeToFirstToken] > limitFirst, r.Signals[signal.InterTokenLatency] > limitGap
		if b.Ready() {
			certainFirst, certainGap := certain(r, b, already)
			first, gap = first || certainFirst, gap || certainGap
		}
		s.beyond = first || gap
		s.firstToken = first && !measured[collect.TimeToFirstToken]
		s.tokenGap = gap && !measured[collect.InterTokenLatency]
	case r.FirstTokens >= fewFirstTokens:
		// The mean of so few varies a lot, so only the defaults decide.
		s.firstToken = r.Signals[signal.TimeToFirstToken] > max(limitFirst, defaultFirstToken) && !measured[collect.TimeToFirstToken]
		s.tokenGap = r.Signals[signal.InterTokenLatency] > max(limitGap, defaultTokenGap) && !measured[collect.InterTokenLatency]
	}
	// Requests that wait now have not had a first token yet.
	if r.waitingNow > 1 && !r.doubtful && !measured[collect.TimeToFirstToken] && r.elapsed > 0 {
		// The usual queue is in the usual time to the first token already.
		wait := r.Signals[signal.QueueWait] - max(signal.OrZero(b.Usual(signal.QueueWait)), 0)
		s.firstToken = s.firstToken || wait+signal.OrZero(b.Usual(signal.TimeToFirstToken)) > limitFirst || r.FirstTokens == 0
	}
	s.objective = r.objective
	lost := r.Signals[signal.MissedRatio] - b.Usual(signal.MissedRatio)
	if s.objective.name == "" && b.Ready() && lost > harmfulErrors && b.Growth(&r.Window, signal.MissedRatio) > deviations*b.Spread(signal.MissedRatio) {
		// Each objective is met, but fewer requests than usual meet one of them.
		s.objective = r.mostMissed
	}
	if s.objective.name != "" {
		s.reference = Objectives
		s.firstToken = s.firstToken || s.objective.input != collect.InterTokenLatency && s.objective.input != collect.TimePerOutputToken &&
			s.objective.input != collect.DecodeTime
		s.tokenGap = s.tokenGap || s.objective.input != collect.TimeToFirstToken && s.objective.input != collect.QueueTime &&
			s.objective.input != collect.PrefillTime
	}
	wrong := max(signal.OrZero(r.Signals[signal.ErrorRatio]), signal.OrZero(r.Signals[signal.CorruptedRatio]))
	s.errors = wrong >= harmfulErrors && wrong*r.finished >= leastErrors
	s.dropped = r.dropped > 0
	s.failing = s.errors && wrong >= failingErrors && !r.refused || r.dropped >= leastErrors && r.Signals[signal.DroppedRatio] >= failingErrors
	return s
}

// missed returns the worst of the objectives that are certainly missed, relative to what
// its target allows, and the objective that the most requests miss, whatever its target. A
// request meets an objective for the time between tokens where its mean does.
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
		good, undecided := seen.Within(o.Threshold)
		one := missed{o.Name, o.Input, 1 - (good+undecided)/seen.Count, 1 - o.Target}
		request := one
		if o.Input == collect.InterTokenLatency {
			seen.Reset()
			if derive.Observations(v, &seen, collect.TimePerOutputToken) != derive.OK || seen.Count < leastObjectiveSeen {
				continue
			}
			good, undecided = seen.Within(o.Threshold)
			request.share = 1 - (good+undecided)/seen.Count
		}
		if most.name == "" || request.share > most.share {
			most = request
		}
		if one.share > one.allowed && one.share*worst.allowed >= worst.share*one.allowed {
			worst = one
		}
	}
	return worst, most
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
