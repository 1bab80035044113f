package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Reference is what latencies are compared with.
type Reference uint8

// The references, the one that goes first last.
const (
	// Defaults are documented numbers that no interactive service wants to exceed.
	Defaults Reference = iota
	// Learned is the engine's own baseline.
	Learned
	// Objectives are the user's.
	Objectives
)

// String is the reference as log lines spell it.
func (r Reference) String() string { return [...]string{"defaults", "baseline", "objective"}[r] }

// Objective is a promise about a latency, see the processor's configuration.
type Objective struct {
	Name  string
	Input collect.Input
	// Threshold is in seconds, Target the share that shall be within it.
	Threshold, Target float64
	// Matches tells whether it holds for a model.
	Matches func(model string) bool
}

const (
	// harmRatio and the least differences are from when on a latency beyond its
	// baseline harms: 30 %, and 100 ms of the first token or 5 ms of each further one,
	// less what a mean over a window can be off.
	harmRatio          = 1.28
	harmFirstToken     = 0.09
	harmTokenGap       = 0.0045
	StillHarm          = 0.75
	deviations         = 4
	defaultFirstToken  = 2.0
	defaultTokenGap    = 0.1
	leastObjectiveSeen = 20
	// fewFirstTokens is how many requests can be judged by the defaults, where they
	// are too few to compare them with the baseline.
	fewFirstTokens = 2

	// harmfulErrors and failingErrors are shares of requests without a right
	// answer; leastErrors is how many it takes.
	harmfulErrors = 0.05
	failingErrors = 0.2
	leastErrors   = 3
)

// symptoms are what requests feel that they should not.
type symptoms struct {
	reference Reference
	// firstToken and tokenGap tell which latency is too long, errors whether too
	// many requests have no right answer.
	firstToken, tokenGap, errors, failing bool
	// dropped is true where the server drops requests.
	dropped bool
	// objective is the one that is missed most, if any.
	objective missed
	// beyond is true where a latency is beyond the baseline, also where an objective
	// says that it may be.
	beyond bool
}

func (s *symptoms) any() bool {
	return s.firstToken || s.tokenGap || s.errors || s.dropped || s.failing || s.objective.name != ""
}

// limit is how long a latency may be by the baseline: its usual length, and more
// than what varies from window to window. What is already told to be harmful
// counts until it is well below.
func limit(b *learn.Baseline, s signal.Signal, least float64, already bool) float64 {
	return max(b.Usual(s)+harm(b, s, least, already), b.Usual(s)*math.Exp(deviations*b.Spread(s)))
}

// harm is by how much a latency has to be longer than usual to be harmful.
func harm(b *learn.Baseline, s signal.Signal, least float64, already bool) float64 {
	harm := max(b.Usual(s)*(harmRatio-1), least)
	if already {
		harm *= StillHarm
	}
	return harm
}

// certain tells whether what is no whim of the requests is harmful by itself: time
// in the front end, in a queue of deferred requests or of a KV cache that holds
// less, after transfers that failed, and in steps that are slower than their load
// explains. These vary far less from window to window than the latencies, of which
// most of the variation comes from the lengths of prompts.
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

// feel finds the symptoms of an engine. measured tells which latencies have an
// objective, which goes before the baseline.
func feel(r *reading, b *learn.Baseline, measured [collect.NumInputs]bool, already bool) (s symptoms) {
	limitFirst, limitGap := defaultFirstToken, defaultTokenGap
	if b.Ready() {
		s.reference = Learned
		limitFirst = limit(b, signal.TimeToFirstToken, harmFirstToken, already)
		limitGap = limit(b, signal.InterTokenLatency, harmTokenGap, already)
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
		// So few vary a lot. What nobody wants to wait is too long all the same.
		s.firstToken = r.Signals[signal.TimeToFirstToken] > max(limitFirst, defaultFirstToken) && !measured[collect.TimeToFirstToken]
		s.tokenGap = r.Signals[signal.InterTokenLatency] > max(limitGap, defaultTokenGap) && !measured[collect.InterTokenLatency]
	}
	// Who waits now has not had a first token yet.
	if r.waitingNow > 1 && !measured[collect.TimeToFirstToken] && r.elapsed > 0 {
		// What usually queues is in the usual time to the first token already.
		wait := r.Signals[signal.QueueWait] - max(signal.OrZero(b.Usual(signal.QueueWait)), 0)
		s.firstToken = s.firstToken || wait+signal.OrZero(b.Usual(signal.TimeToFirstToken)) > limitFirst || r.FirstTokens == 0
	}
	s.objective = r.objective
	lost := r.Signals[signal.MissedRatio] - b.Usual(signal.MissedRatio)
	if s.objective.name == "" && b.Ready() && lost > harmfulErrors && b.Growth(&r.Window, signal.MissedRatio) > deviations*b.Spread(signal.MissedRatio) {
		// Each objective by itself is met; what fewer requests meet is the answer.
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
	s.failing = s.errors && wrong >= failingErrors || r.dropped >= leastErrors && r.Signals[signal.DroppedRatio] >= failingErrors
	return s
}

// missed returns the objective of which the most is missed for certain, relative
// to what its target allows, where it is missed; and the one that most requests do
// not meet, whatever its target. A request meets an objective about the distances
// between tokens where their mean does.
func (s *Settings) missed(v *window.View) (worst, most missed) {
	var seen histogram.Histogram
	for i := range s.Objectives {
		o := &s.Objectives[i]
		if !o.Matches(v.Group().Value("model_name")) {
			continue
		}
		seen.Reset()
		if v.AddTo(&seen, o.Input) != window.Present || seen.Count < leastObjectiveSeen {
			continue
		}
		good, undecided := seen.Within(o.Threshold)
		one := missed{o.Name, o.Input, 1 - (good+undecided)/seen.Count, 1 - o.Target}
		request := one
		if o.Input == collect.InterTokenLatency {
			seen.Reset()
			if v.AddTo(&seen, collect.TimePerOutputToken) != window.Present || seen.Count < leastObjectiveSeen {
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

// measured tells which latencies have an objective for a model.
func (s *Settings) measured(model string) (inputs [collect.NumInputs]bool) {
	for i := range s.Objectives {
		if s.Objectives[i].Matches(model) {
			inputs[s.Objectives[i].Input] = true
		}
	}
	return inputs
}
