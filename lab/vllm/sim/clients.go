package sim

import (
	"math"
	"net/http"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const (
	// patience is how long a client waits whose phase has no time-out.
	patience = 10 * time.Minute
	// refusing is how long it takes a client to learn that nobody answers.
	refusing = time.Millisecond
)

// Prompts have numbers: equal ones are equal prompts. Those of the story are after those of the
// requests by which the capacity was measured, and shared beginnings have numbers of their own
// above both.
const (
	storyPrompts = 1 << 24
	beginnings   = 1 << 32
)

// attempt is a request that is sent, once.
type attempt struct {
	world   *world
	phase   *story.Phase
	request story.Request
	prompt  int // Its number.
	left    int // How often the client tries again.
	at      time.Duration
	seen    judge.Sent
	done    func(how judge.Ending) // When the client is through with it.
}

// begin begins the requests of a phase, at this moment.
func (w *world) begin(phase *story.Phase, source *story.Source) {
	began := w.now
	for range phase.Clients {
		w.loop(phase, source, began)
	}
	w.arrive(phase, source, began)
}

// arrive sends the requests of an open loop one after the other.
func (w *world) arrive(phase *story.Phase, source *story.Source, began time.Duration) {
	if r, more := source.Next(); more {
		w.at(began+r.After, func() {
			w.send(phase, &r, func(judge.Ending) {})
			w.arrive(phase, source, began)
		})
	}
}

// loop sends the next request of a client of a closed loop.
func (w *world) loop(phase *story.Phase, source *story.Source, began time.Duration) {
	if w.now >= began+phase.For {
		return
	}
	r := source.Draw(w.now - began)
	w.send(phase, &r, func(how judge.Ending) {
		again := func() { w.loop(phase, source, began) }
		if how == judge.Failed || how == judge.Refused {
			w.at(w.now+time.Second, again) // It does not hammer a server that is away.
			return
		}
		again()
	})
}

func (w *world) send(phase *story.Phase, r *story.Request, done func(judge.Ending)) {
	a := &attempt{world: w, phase: phase, request: *r, prompt: w.prompts, left: phase.Retries, done: done}
	w.prompts++
	a.send()
}

func (a *attempt) send() {
	w, r, p := a.world, &a.request, a.phase
	a.at = w.now
	a.seen = judge.Sent{At: rounded((w.now - w.began).Seconds()), Phase: r.Phase, How: judge.Failed, Prompt: r.Prompt}
	q := engine.Request{
		Prompt: r.Prompt, Output: r.Output, MaxTokens: r.Output, Adapter: r.Adapter, Stream: true, Choices: p.Choices, Refused: r.Bad,
		// The whole prompt is found again where a client sends it again.
		Prefix: a.prompt, Shared: r.Prompt,
	}
	if r.Prefix >= 0 {
		a.seen.Prompt += p.Prefix.Tokens
		q.Prompt = a.seen.Prompt
		q.Prefix, q.Shared = beginnings+p.Prefix.Tokens<<12+r.Prefix, p.Prefix.Tokens
	}
	id, ok := w.target.Send(q)
	if !ok {
		w.at(w.now+refusing, func() { a.end(judge.Failed, w.now) })
		return
	}
	w.underway[id] = a
	limit, how := patience, judge.TimedOut
	if p.Timeout > 0 {
		limit = p.Timeout
	}
	if r.Leaves > 0 && r.Leaves < limit {
		limit, how = r.Leaves, judge.Left
	}
	w.at(a.at+limit, func() {
		// Where it is sent again, it has another number.
		if w.underway[id] == a {
			delete(w.underway, id)
			w.target.Cancel(id)
			a.end(how, w.now)
		}
	})
}

// ended is how the server ended it.
func (a *attempt) ended(o *engine.Outcome) {
	at := time.Duration(o.Ended * float64(time.Second))
	switch o.End {
	case engine.EndStop, engine.EndLength:
		a.seen.Output, a.seen.Status = o.Output, http.StatusOK
		a.end(judge.Answered, at)
	case engine.EndRefused:
		a.seen.Status = http.StatusBadRequest
		a.end(judge.Refused, at)
	default:
		a.end(judge.Failed, at)
	}
}

// end notes how it ended, and tries again where the client does.
func (a *attempt) end(how judge.Ending, at time.Duration) {
	a.seen.How, a.seen.End = how, rounded((at - a.at).Seconds())
	if len(a.seen.Tokens) > 0 {
		a.seen.Status = http.StatusOK
	}
	a.world.sent = append(a.world.sent, a.seen)
	if a.left > 0 && (how == judge.TimedOut || how == judge.Failed) {
		a.left--
		a.send()
		return
	}
	a.done(how)
}

// cutOff ends all requests that are under way, without another try.
func (w *world) cutOff() {
	for len(w.underway) > 0 {
		first := math.MaxInt
		for id := range w.underway {
			first = min(first, id)
		}
		a := w.underway[first]
		delete(w.underway, first)
		w.target.Cancel(first)
		a.left, a.done = 0, func(judge.Ending) {}
		a.end(judge.Left, w.now)
	}
	w.due = nil
}

// rounded is a time with the precision of a real client.
func rounded(seconds float64) float64 { return math.Round(seconds*1e4) / 1e4 }
