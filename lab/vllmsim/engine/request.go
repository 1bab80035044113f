package engine

// End is how a request ended, from the client's side.
type End int

// The ends.
const (
	// EndNone is a request that is still under way.
	EndNone End = iota
	// EndStop and EndLength are complete answers.
	EndStop
	EndLength
	// EndLeft is a client that went away.
	EndLeft
	// EndError is a failure within the engine.
	EndError
	// EndRefused is a request that the front end refused.
	EndRefused
	// EndAborted is a request that the server gave up by falling asleep.
	EndAborted
)

// String returns a word for logs.
func (e End) String() string {
	return [...]string{"none", "stop", "length", "left", "error", "refused", "aborted"}[e]
}

// GapBounds are the upper bounds of Outcome.Gaps in seconds.
var GapBounds = [...]float64{
	0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 10,
}

// gapCounts counts gaps per bucket of GapBounds; the last is open.
type gapCounts [len(GapBounds) + 1]uint32

func gapBucket(seconds float64) int {
	for i, bound := range GapBounds {
		if seconds <= bound {
			return i
		}
	}
	return len(GapBounds)
}

// Outcome is the truth about one request: what its client saw and what the
// engine did. Times are in seconds.
type Outcome struct {
	// ID is equal in all runs that have the request, see arrivals. First is the ID of the
	// first attempt, which is another one where the request is a retry.
	ID, First, Engine int
	// Arrived is when the client sent it, Ended when the client had all of its
	// answer, or left, or was refused. While it is under way Ended is the time of
	// asking.
	Arrived, Ended float64
	// FirstToken is the client's time to the first token; 0 before it.
	FirstToken float64
	// Queue is the time in the engine's queue up to the first admission, or so
	// far.
	Queue float64
	// MeanGap and MaxGap are distances between tokens (with speculation between
	// the steps that gave some), as the engine produced them; Gaps counts them by
	// GapBounds.
	MeanGap, MaxGap float64
	Gaps            [len(GapBounds) + 1]uint32
	// Prompt, Cached and Output are tokens: asked for, found in the cache on the
	// first admission, generated.
	Prompt, Cached, Output int
	Preemptions            int
	// Corrupted is true where the answer's logits were not numbers.
	Corrupted bool
	End       End
}

type request struct {
	// What each step reads and writes of each request in the batch is at the beginning, so
	// that it is in few lines of the processor's cache.
	//
	// tokens is prompt and output so far, computed how many of them are in the
	// KV cache.
	tokens, computed int
	generated        int
	stopAt           int // Number of tokens with which it ends, however.
	chunk            int // Tokens in the step under way.
	table            []int32
	lastStep         int
	steps            int // That gave tokens, after the first.
	lastToken        float64
	maxGap           float64
	session          *session
	unreported       int // Preemptions that the front end does not know of yet.
	decoding         bool
	gone             bool // Left or aborted; the engine drops it at the next occasion.
	done             bool
	steadily         bool // Its gaps are those of all steps since base was taken.
	waits            bool // In the engine's queue.
	started          bool // Admitted before.
	fetching         bool // Waits for a transfer.

	id, engine int
	// arrived is when the client sent it, takenUp when the front end began to work on it,
	// tokenized when it had the tokens, stamped vLLM's arrival_time, queued when the engine had it.
	arrived, takenUp, tokenized, stamped, queued float64
	// admitted, firstToken and lastToken are on the engine's clock.
	admitted, firstToken float64
	// firstSeen is when the front end passed on the first token.
	firstSeen float64
	leaves    float64 // When the client gives up.

	prompt, output, maxTokens int
	prefix, shared, adapter   int
	route, remote             float64
	end                       End
	impatient, corrupted      bool
	// excepted is refused because of an exception, unscheduled ends before it is admitted.
	excepted, unscheduled bool
	// choices are asked for, beams searched; client is the request of the client that this
	// one is a part of, group that request's parts.
	choices, beams int
	client         *request
	group          *group
	// firstNoted and endNoted are what the journal has of it.
	firstNoted, endNoted bool
	// media is the number of an image in the prompt, from 1; 0 is none.
	media int
	// firstQueued is when the engine first had it.
	firstQueued          float64
	transferFails        bool
	completions, streams bool

	named       int // Blocks at the head of table that were offered as shared.
	former      []int32
	cached      int // On the first admission; -1 before it.
	external    int // Of these from another server.
	preemptions int
	readyAt     float64

	gaps gapCounts
	base gapCounts

	// first is Outcome.First; serial is unique within the server.
	first, serial int
	// what is what traffic has of it, sender its client in a closed loop; asked are the
	// values under which it was drawn, where it can be sent again.
	what   *recorded
	sender *client
	asked  *values
	cut    bool // Longer than the model allows.
	// timedOut is true if the client left because of its timeout.
	timedOut bool
	// keys are those of the first full blocks, where traffic has them. found are the
	// blocks of the last lookup, after which the request did not fit, and lookedUp is the
	// state of the cache at that time.
	keys     []uint64
	found    []int32
	lookedUp uint64
}

// pause ends the time in which the request's gaps were those of all steps.
func (r *request) pause(all *gapCounts) {
	if !r.steadily {
		return
	}
	r.steadily = false
	for i := range r.gaps {
		r.gaps[i] += all[i] - r.base[i]
	}
}

func (r *request) outcome(now float64, all *gapCounts) Outcome {
	o := Outcome{
		ID: r.id, First: r.first, Engine: r.engine, Arrived: r.arrived, Ended: now,
		Prompt: r.prompt, Cached: max(0, r.cached), Output: r.generated,
		MaxGap: r.maxGap, Preemptions: r.preemptions, Corrupted: r.corrupted,
	}
	if r.firstSeen > 0 {
		o.FirstToken = r.firstSeen - r.arrived
	}
	switch {
	case r.started:
		o.Queue = r.admitted - r.firstQueued
	case r.firstQueued > 0 && r.firstQueued < now:
		o.Queue = now - r.firstQueued
	}
	if r.steps > 0 {
		o.MeanGap = (r.lastToken - r.firstToken) / float64(r.steps)
		if r.session != nil {
			o.MeanGap -= r.session.between / float64(r.steps)
		}
	}
	o.Gaps = r.gaps
	if r.steadily {
		for i := range o.Gaps {
			o.Gaps[i] += all[i] - r.base[i]
		}
	}
	if r.done {
		o.End = r.end
	}
	return o
}

// status is what HTTP answers to the client. A stream has begun when its request fails.
func (r *request) status() int {
	switch {
	case r.end == EndRefused:
		return 400
	case r.end == EndError && !r.streams:
		return 500
	default:
		return 200
	}
}

// statusGroup is how the front end counts the answer.
func (r *request) statusGroup(semantics *Semantics) string {
	switch status := r.status(); {
	case r.excepted && semantics.ClientErrorsAs5xx, status >= 500:
		return "5xx"
	case status >= 400:
		return "4xx"
	default:
		return "2xx"
	}
}
