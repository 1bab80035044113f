package signal

import (
	"math"
	"regexp"
	"time"
)

const (
	// leastWindows is how many windows a baseline needs before anything is compared with it.
	leastWindows = 5
	// levelMemory is how many windows a level remembers: it follows the time of day,
	// and a change within minutes stands out.
	levelMemory = 20
	// slowFirst is how many windows the slow reference learns one after another, of which older ones
	// count less: somewhat more than an hour.
	slowFirst = 60
	// LeastFirstTokens is how many requests a window needs to be learned.
	LeastFirstTokens = 5
	// mostCanaries is how many canaries a window may have for each request to be learned: what they
	// add is left out almost exactly, but not quite.
	mostCanaries = 0.1
)

// Window is what is learned from one window.
type Window struct {
	Signals Values

	// At is the end of the window in Unix nanoseconds.
	At int64
	// FirstTokens is the number of requests that got their first token, Canaries that of canary
	// requests, which are not among them.
	FirstTokens, Canaries float64
	// Generation and Computed are rates in tokens per second. Computed counts the
	// prompt tokens that were computed, also those that a preemption made necessary again.
	Generation, Computed float64
	// Capacity is how many tokens the KV cache holds; 0 where it is not known.
	Capacity float64
}

// Learnable reports whether a window has enough requests, and not too many of them are canaries.
func (w *Window) Learnable() bool {
	return w.FirstTokens >= LeastFirstTokens && !(w.Canaries > mostCanaries*w.FirstTokens)
}

// level is the mean and the variance of a signal's logarithm. Newer windows count more.
type level struct {
	N        float64 `json:"n"`
	Mean     float64 `json:"mean"`
	Variance float64 `json:"variance"`
	// Block and InBlock are the sum of the differences from the mean in the present block of
	// windows and their number; Blocks and Slow are the number of blocks and the variance
	// that single windows would need for the blocks to differ as they do.
	Block   float64 `json:"block,omitempty"`
	InBlock int     `json:"in_block,omitempty"`
	Blocks  float64 `json:"blocks,omitempty"`
	Slow    float64 `json:"slow,omitempty"`
}

const (
	// blockWindows is how many windows are a block. Real traffic changes for minutes at a
	// time, so that the mean of a block differs more than that of as many windows drawn at
	// random.
	blockWindows = 5
	// blockMemory is how many blocks are remembered: some hours.
	blockMemory = 40
)

// floor is added to signals that can be 0 before the logarithm is taken, so that small
// values differ little.
var floor = [Count]float64{
	QueueWait: 0.01, QueueTime: 0.01, FrontEnd: 0.002, Preemptions: 0.01, Waiting: 0.5,
	Deferred: 0.5, KVUtilization: 0.01, ErrorRatio: 0.01, CorruptedRatio: 0.01,
	CancelledRatio: 0.01,
	DroppedRatio:   0.01, FailedTransfers: 0.01, MissedRatio: 0.02, ArrivalRate: 0.01,
	ComputedTokens: 1, Running: 0.1,
}

func (l *level) learn(logarithm float64) {
	if !Known(logarithm) {
		return
	}
	l.N = min(l.N+1, levelMemory)
	difference := logarithm - l.Mean
	// The first windows of an engine have cold caches. They differ from later ones by more than blocks
	// do from each other.
	if l.N > blockWindows {
		l.Block += difference
		l.InBlock++
	}
	if l.InBlock == blockWindows {
		l.Blocks = min(l.Blocks+1, blockMemory)
		l.Slow += (l.Block*l.Block/blockWindows - l.Slow) / l.Blocks
		l.Block, l.InBlock = 0, 0
	}
	l.Mean += difference / l.N
	if l.N > 1 {
		l.Variance += (difference*difference*(1-1/l.N) - l.Variance) / l.N
	}
}

// Baseline is what is usual for an engine. What may be wrong with it was left out.
type Baseline struct {
	Levels [Count]level `json:"levels"`
	// Step is the time between outputs as a function of the sequences in a step, their
	// tokens in the KV cache and the prompt tokens in a step. Prefill is the time of a
	// prefill as a function of the tokens of its prompt and of the prompts computed at the same time.
	Step    fit `json:"step"`
	Prefill fit `json:"prefill"`
	// Slow is Step over ten days: it learns the first windows and then one of each hour, the last
	// at SlowLearned in Unix nanoseconds. What becomes slower over hours or days changes Step
	// with it, and stands out against Slow.
	Slow        fit   `json:"slow"`
	SlowLearned int64 `json:"slow_learned,omitempty"`
	// Windows is how many windows it has learned. Learned is the end of the last of them
	// in Unix nanoseconds.
	Windows int   `json:"windows"`
	Learned int64 `json:"learned"`
	// Version is the version of the server that it was learned from; empty where that is
	// not known. An older program did not save it.
	Version string `json:"version,omitempty"`
	// Earlier is the version before, while Since, the windows learned with Version, are so few
	// that what is slower now is slower since the change; empty otherwise.
	Earlier string `json:"earlier,omitempty"`
	Since   int    `json:"since,omitempty"`
	// Began is true where it began with what was usual in its pool.
	Began bool `json:"began,omitempty"`
	// Accepted is the logarithm of how much slower than its siblings the engine is as it
	// has been taken as usual.
	Accepted float64 `json:"accepted,omitempty"`
}

// NewBaseline returns a baseline that has learned nothing.
func NewBaseline() *Baseline {
	return &Baseline{Step: newStepFit(), Prefill: newPrefillFit(), Slow: newStepFit()}
}

func newStepFit() fit { return newFit(0.05, 0.1, 0.15) }

func newPrefillFit() fit { return newFit(0.5, 0.2) }

// Forget forgets what is usual for some signals. The time of a step and that of a prefill
// as functions of the load belong to the factors by which they take longer.
func (b *Baseline) Forget(some *Set) {
	for s := range Count {
		if some[s] {
			b.Levels[s] = level{}
		}
	}
	if some[StepFactor] {
		b.Step, b.Slow = newStepFit(), newStepFit()
	}
	if some[PrefillFactor] {
		b.Prefill = newPrefillFit()
	}
}

// Ready reports whether the baseline has learned enough to compare with.
func (b *Baseline) Ready() bool { return b.Windows >= leastWindows }

// Usual returns the usual value of a signal; NaN where it is not known.
func (b *Baseline) Usual(s Signal) float64 {
	if b.Levels[s].N < leastWindows {
		return math.NaN()
	}
	return math.Exp(b.Levels[s].Mean) - floor[s]
}

// Spread is the standard deviation of a signal's logarithm from window to window.
func (b *Baseline) Spread(s Signal) float64 { return math.Sqrt(b.Levels[s].Variance) }

// Wander is the standard deviation of a signal's logarithm by which a change that lasts is
// judged: from window to window or, where it is more, from block to block. A prior counts as
// so many windows, so that a quiet beginning does not make it small.
func (b *Baseline) Wander(s Signal, prior, windows float64) float64 {
	l := &b.Levels[s]
	seen := max(l.N, l.Blocks*blockWindows)
	return math.Sqrt((prior*prior*windows + max(l.Variance, l.Slow)*seen) / (windows + seen))
}

// Growth is the logarithm of a signal's value divided by its usual one; NaN where either
// is not known.
func (b *Baseline) Growth(w *Window, s Signal) float64 {
	if b.Levels[s].N < leastWindows {
		return math.NaN()
	}
	return math.Log(w.Signals[s]+floor[s]) - b.Levels[s].Mean
}

// Accept makes what a window shows of a signal the usual value. How far that was from the value
// before counts as the difference of one block: what has changed permanently once does so again.
func (b *Baseline) Accept(w *Window, s Signal) {
	growth, l := b.Growth(w, s), &b.Levels[s]
	if !Known(growth) {
		return
	}
	l.Mean += growth
	l.Blocks = min(l.Blocks+1, blockMemory)
	l.Slow += (growth*growth*blockWindows - l.Slow) / l.Blocks
	l.Block, l.InBlock = 0, 0
}

// StepLoad is what the time of a step depends on.
func (w *Window) StepLoad() (sequences, tokens, prompt float64) {
	sequences = w.Generation * w.Signals[InterTokenLatency]
	tokens = sequences * w.held(sequences)
	return sequences, tokens, w.Computed * w.Signals[StepTime]
}

// held is the mean number of tokens that a sequence holds in the KV cache. The lengths of the
// requests that come and go show it while the load is steady and lengths differ little. The
// blocks in use show it at any time, but for tokens that sequences share, which they have once:
// the larger of both is nearer to the truth.
func (w *Window) held(sequences float64) float64 {
	lengths := w.Signals[PromptTokens] + OrZero(w.Signals[OutputTokens])/2
	used := w.Signals[KVUtilization] * w.Capacity / sequences
	if !Known(lengths) {
		return used // Only new requests show lengths.
	}
	return max(lengths, OrZero(used))
}

// PrefillLoad is what the time of a prefill depends on.
func (w *Window) PrefillLoad() (own, others float64) {
	return w.Signals[ComputedTokens], w.Computed * w.Signals[PrefillTime]
}

// PromptShare is the share of a step's time that prompts take.
func (b *Baseline) PromptShare(w *Window) float64 {
	sequences, tokens, prompt := w.StepLoad()
	expected := b.Step.Expect(sequences, tokens, prompt)
	return Or(b.Step.Part(2, prompt)/expected, 0.5)
}

// Compare sets the signals that need the baseline: by what factor steps and prefills take
// longer than their load explains.
func (b *Baseline) Compare(w *Window) {
	if !b.Ready() && !b.Began {
		return
	}
	if b.Step.Ready() {
		w.Signals[StepFactor] = w.Signals[StepTime] / b.Step.Expect(w.StepLoad())
	}
	if b.Prefill.Ready() {
		w.Signals[PrefillFactor] = w.Signals[PrefillTime] / b.Prefill.Expect(w.PrefillLoad())
	}
}

// Learn adds a window of some length, except for what is to be left out. A window that overlaps
// the previous one teaches nothing new. The time of a step and that of a prefill
// as functions of the load belong to the factors by which they take longer.
func (b *Baseline) Learn(w *Window, length time.Duration, except *Set) {
	if w.At-b.Learned < int64(length) || !w.Learnable() {
		return
	}
	b.Learned = w.At
	b.Windows++
	for s := range Count {
		if !except[s] {
			b.Levels[s].learn(math.Log(w.Signals[s] + floor[s]))
		}
	}
	sequences, tokens, prompt := w.StepLoad()
	if !Known(w.Signals[ComputedTokens]) {
		prompt = math.NaN() // The load is not known, only a bound of it.
	}
	if !except[StepFactor] {
		b.settle()
		b.Step.learn(w.Signals[StepTime], sequences, tokens, prompt)
		if b.Slow.N < slowFirst || w.At-b.SlowLearned >= int64(time.Hour) {
			b.Slow.learn(w.Signals[StepTime], sequences, tokens, prompt)
			b.SlowLearned = w.At
		}
	}
	if own, others := w.PrefillLoad(); !except[PrefillFactor] {
		b.Prefill.learn(w.Signals[PrefillTime], own, others)
	}
}

// sound reports whether a baseline that was stored can be used.
func (b *Baseline) sound() bool {
	for i := range b.Levels {
		l := &b.Levels[i]
		if !Known(l.Mean) || !(l.Variance >= 0) || !(l.N >= 0) {
			return false
		}
	}
	return soundVersion(b.Version) && soundVersion(b.Earlier) && b.Windows >= 0 && b.Since >= 0 && Known(b.Accepted) && b.Step.sound() && b.Prefill.sound() && b.Slow.sound()
}

// settled is how many windows with steps as long as before show that a new version is not slower:
// a change of 10 % is found within ten of them.
const settled = 20

// Upgrade notes that the server has another version from now on.
func (b *Baseline) Upgrade(to string) {
	if b.Version != "" && b.Windows > 0 {
		b.Earlier, b.Since = b.Version, 0
	}
	b.Version = to
}

// settle counts a window that was learned with the present version.
func (b *Baseline) settle() {
	if b.Earlier == "" {
		return
	}
	b.Since++
	if b.Since >= settled {
		b.Earlier, b.Since = "", 0
	}
}

// release matches the versions that a baseline is learned from.
var release = regexp.MustCompile(`^\d{1,9}(\.\d{1,9}){2}$`)

// soundVersion reports whether a stored version is one that a server can have had. It stands in
// lines of the log, and whoever can write the storage could otherwise write those as well.
func soundVersion(version string) bool { return version == "" || release.MatchString(version) }
