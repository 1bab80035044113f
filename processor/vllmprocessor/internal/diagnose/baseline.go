package diagnose

import (
	"math"
	"time"
)

const (
	// leastWindows is how many windows without harm a baseline needs before
	// anything is compared with it.
	leastWindows = 5
	// levelMemory is how many windows a level remembers: it follows the time of
	// day, and what changes within some minutes stands out.
	levelMemory = 20
	// leastFirstTokens is how many requests a window needs to teach anything.
	leastFirstTokens = 5
)

// level is what a signal usually is: the mean and variance of its logarithm,
// newer windows counting more.
type level struct {
	N        float64 `json:"n"`
	Mean     float64 `json:"mean"`
	Variance float64 `json:"variance"`
}

// floor is added to what can be 0 before its logarithm is taken, so that small
// numbers differ little.
var floor = [NumSignals]float64{
	QueueWait: 0.01, QueueTime: 0.01, FrontEnd: 0.002, Preemptions: 0.01, Waiting: 0.5, Deferred: 0.5,
	KVUtilization: 0.01, ErrorRatio: 0.01, CorruptedRatio: 0.01, DroppedRatio: 0.01, FailedTransfers: 0.01, MissedRatio: 0.02,
	ArrivalRate: 0.01, ComputedTokens: 1, Running: 0.1,
}

func (l *level) learn(logarithm float64) {
	if !known(logarithm) {
		return
	}
	l.N = min(l.N+1, levelMemory)
	difference := logarithm - l.Mean
	l.Mean += difference / l.N
	if l.N > 1 {
		l.Variance += (difference*difference*(1-1/l.N) - l.Variance) / l.N
	}
}

// baseline is what an engine was like while nothing was wrong with it.
type baseline struct {
	Levels [NumSignals]level `json:"levels"`
	// Step is the time between outputs by the sequences in a step, their tokens in
	// the KV cache, and the prompt tokens in a step; Prefill is the time of a prefill
	// by the tokens of a prompt, and by those of others that come meanwhile.
	Step    fit `json:"step"`
	Prefill fit `json:"prefill"`
	// Windows is how many windows it has learned, Learned when the last ended, in
	// nanoseconds.
	Windows int   `json:"windows"`
	Learned int64 `json:"learned"`
}

func newBaseline() *baseline {
	return &baseline{Step: newFit(0.05, 0.1, 0.15), Prefill: newFit(0.5, 0.2)}
}

// ready tells whether the baseline knows enough to compare with.
func (b *baseline) ready() bool { return b.Windows >= leastWindows }

// usual returns what a signal usually is; NaN where it is not known.
func (b *baseline) usual(s Signal) float64 {
	if b.Levels[s].N < leastWindows {
		return math.NaN()
	}
	return math.Exp(b.Levels[s].Mean) - floor[s]
}

// spread is the standard deviation of a signal's logarithm from window to window.
func (b *baseline) spread(s Signal) float64 { return math.Sqrt(b.Levels[s].Variance) }

// growth is the logarithm of a signal over what it usually is; NaN where either is
// not known.
func (b *baseline) growth(r *reading, s Signal) float64 {
	if b.Levels[s].N < leastWindows {
		return math.NaN()
	}
	return math.Log(r.Signals[s]+floor[s]) - b.Levels[s].Mean
}

// stepLoad and prefillLoad are what the fits are over.
func stepLoad(r *reading) (sequences, tokens, prompt float64) {
	step := r.Signals[StepTime]
	sequences = r.generation * r.Signals[InterTokenLatency]
	tokens = sequences * (r.Signals[PromptTokens] + orZero(r.Signals[OutputTokens])/2)
	return sequences, tokens, r.computed * step
}

func prefillLoad(r *reading) (own, others float64) {
	return r.Signals[ComputedTokens], r.computed * r.Signals[PrefillTime]
}

// promptShare is the share of a step that prompts take.
func (b *baseline) promptShare(r *reading) float64 {
	sequences, tokens, prompt := stepLoad(r)
	expected := b.Step.expect(sequences, tokens, prompt)
	return or(b.Step.part(2, prompt)/expected, 0.5)
}

// compare fills in the signals that the baseline is needed for.
func (b *baseline) compare(r *reading) {
	if !b.ready() {
		return
	}
	step := b.Step.expect(stepLoad(r))
	r.Signals[StepFactor] = r.Signals[StepTime] / step
	prefill := b.Prefill.expect(prefillLoad(r))
	r.Signals[PrefillFactor] = r.Signals[PrefillTime] / prefill
}

// learn takes a window in which nothing was wrong. Windows that overlap one that
// was learned teach nothing new.
func (b *baseline) learn(r *reading, length time.Duration) {
	if r.at-b.Learned < int64(length) || !(r.firstTokens >= leastFirstTokens) {
		return
	}
	b.Learned = r.at
	b.Windows++
	for s := range NumSignals {
		b.Levels[s].learn(math.Log(r.Signals[s] + floor[s]))
	}
	sequences, tokens, prompt := stepLoad(r)
	b.Step.learn(r.Signals[StepTime], sequences, tokens, prompt)
	own, others := prefillLoad(r)
	b.Prefill.learn(r.Signals[PrefillTime], own, others)
}

// sound tells whether a baseline that was stored can be used.
func (b *baseline) sound() bool {
	for i := range b.Levels {
		l := &b.Levels[i]
		if !known(l.Mean) || !(l.Variance >= 0) || !(l.N >= 0) {
			return false
		}
	}
	return b.Windows >= 0 && b.Step.sound() && b.Prefill.sound()
}
