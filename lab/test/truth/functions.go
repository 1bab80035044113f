package truth

import (
	"fmt"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

func prompt(e *engine.Event) float64    { return float64(e.Prompt) }
func cached(e *engine.Event) float64    { return float64(e.Cached) }
func local(e *engine.Event) float64     { return float64(e.Cached - e.External) }
func computed(e *engine.Event) float64  { return float64(e.Prompt - e.Cached) }
func askedOut(e *engine.Event) float64  { return float64(e.External) }
func foundOut(e *engine.Event) float64  { return float64(e.Output) }
func generated(e *engine.Event) float64 { return float64(e.Step.Generated) }
func resumed(e *engine.Event) float64   { return float64(e.Step.Resumed) }
func drafts(e *engine.Event) float64    { return float64(e.Step.Drafts) }
func drafted(e *engine.Event) float64   { return float64(e.Step.Drafted) }

func media(e *engine.Event) float64      { return float64(e.Media) }
func mediaFound(e *engine.Event) float64 { return float64(e.MediaFound) }

// accepted counts the accepted tokens of a position; -1 is all.
func accepted(position int) func(*engine.Event) float64 {
	return func(e *engine.Event) (n float64) {
		for i, tokens := range e.Step.Accepted {
			if position < 0 || i == position {
				n += float64(tokens)
			}
		}
		return n
	}
}

// ended reports whether a version counts the end of a request and observes its times and
// lengths. It counts no refused request, no client that leaves but behind the Rust front
// end, and no error before 0.13, as the metrics say.
func (w *Window) ended(e *engine.Event) bool {
	switch e.End {
	case engine.EndStop, engine.EndLength:
		return true
	case engine.EndError:
		return !w.Case.before("0.13.0")
	case engine.EndLeft:
		return w.Case.dialect() == surface.Rust
	}
	return false
}

// endings counts the requests that a version counts as ended; reason is empty for all.
func (w *Window) endings(reason string) float64 {
	return w.sum(engine.EventEnd, func(e *engine.Event) float64 {
		name := e.End.String()
		if e.End == engine.EndLeft {
			name = "abort"
		}
		if w.ended(e) && (reason == "" || reason == name) {
			return 1
		}
		return 0
	})
}

// duration is a time of a request; ok is false for a request without it.
type duration func(w *Window, e *engine.Event) (seconds float64, ok bool)

// ends are values of the requests that ended.
func (w *Window) ends(of duration) []float64 {
	return w.values(engine.EventEnd, func(e *engine.Event) (float64, bool) {
		value, ok := of(w, e)
		return value, ok && w.ended(e)
	})
}

func endsOf(of duration) func(*Window) []float64 {
	return func(w *Window) []float64 { return w.ends(of) }
}

func prompts(_ *Window, e *engine.Event) (float64, bool) { return float64(e.Prompt), true }
func outputs(_ *Window, e *engine.Event) (float64, bool) { return float64(e.Output), true }

// arrived is the arrival that times are measured from. Up to 0.16 that was after the front
// end had turned the text into tokens: the metric changed its meaning.
func (w *Window) arrived(e *engine.Event) float64 {
	if w.Case.python() && w.Case.before("0.17.0") {
		return e.Tokenized
	}
	return e.Taken
}

func whole(w *Window, e *engine.Event) (float64, bool) { return e.At - w.arrived(e), true }

// withoutTimes reports whether the Rust front end takes all times of a request in the engine as 0: its client left
// before its first token.
func withoutTimes(w *Window, e *engine.Event) bool {
	return w.Case.dialect() == surface.Rust && e.First == 0 && (e.Admitted == 0 || e.End == engine.EndLeft)
}

// queued is the time to the first admission, or to the end without one.
func queued(w *Window, e *engine.Event) (float64, bool) {
	switch {
	case withoutTimes(w, e):
		return 0, true
	case e.Admitted > 0:
		return e.Admitted - e.Queued, true
	}
	return e.Last - e.Queued, true
}

// inference and prefill of a request without a token last until its end.
func inference(w *Window, e *engine.Event) (float64, bool) { return sinceAdmission(w, e, e.Last) }

func prefill(w *Window, e *engine.Event) (float64, bool) { return sinceAdmission(w, e, e.First) }

func sinceAdmission(w *Window, e *engine.Event, until float64) (float64, bool) {
	switch {
	case e.Admitted == 0 || withoutTimes(w, e):
		return 0, true
	case e.First == 0:
		return e.At - e.Admitted, true
	}
	return until - e.Admitted, true
}

// decode is of requests with more than one token only, as the metric says.
func decode(_ *Window, e *engine.Event) (float64, bool) { return e.Last - e.First, e.Output > 1 }

func perToken(_ *Window, e *engine.Event) (float64, bool) {
	return (e.Last - e.First) / float64(e.Output-1), e.Output > 1
}

// firstTokens are the times to the first token. By vLLM's open change #58078 they are observed when
// the request ends.
func firstTokens(w *Window) []float64 {
	if w.Case.Config.Priority {
		first := map[int]float64{}
		for i := range w.requests {
			if e := &w.requests[i]; e.Kind == engine.EventFirst {
				first[e.Request] = e.At
			}
		}
		return w.ends(func(w *Window, e *engine.Event) (float64, bool) {
			at, has := first[e.Request]
			return at - w.arrived(e), has
		})
	}
	return w.values(engine.EventFirst, func(e *engine.Event) (float64, bool) { return e.At - w.arrived(e), true })
}

func (w *Window) gaps() (all []float64) {
	for _, e := range w.happened {
		if e.Kind == engine.EventStep {
			all = append(all, e.Step.Gaps...)
		}
	}
	return all
}

// repeatable is by how much lookups that are counted again may change the hit ratio where
// no cached prompt tokens replace them, as the metric says.
const repeatable = 0.05

func hitRatio(w *Window, _ map[string]string) Answer {
	if w.Case.before("0.9.0") {
		blocks := func(e *engine.Event) float64 { return float64(e.Prompt / blockSize) }
		return ratio(w.sum(engine.EventLookup, cached)/blockSize, w.sum(engine.EventLookup, blocks)).around(repeatable)
	}
	if w.Case.before("0.16.0") {
		return ratio(w.sum(engine.EventLookup, cached), w.sum(engine.EventLookup, prompt)).around(repeatable)
	}
	byLookup := ratio(w.sum(engine.EventLookup, cached), w.sum(engine.EventLookup, prompt))
	byToken := ratio(w.sum(engine.EventFirst, local), w.sum(engine.EventFirst, prompt))
	return byLookup.or(byToken)
}

func cachedRatio(w *Window, _ map[string]string) Answer {
	return ratio(w.sum(engine.EventFirst, cached), w.sum(engine.EventFirst, prompt))
}

func finishedRatio(w *Window, extra map[string]string) Answer {
	return ratio(w.endings(extra["finished_reason"]), w.endings(""))
}

// unseen are requests that have been sent, have no first token, and are not in the queue
// of the last step.
func (w *Window) unseen(at float64) float64 {
	waiting := w.state(at, func(s engine.Step) float64 { return float64(s.Waiting + s.Deferred) })
	return w.between(at, engine.EventSent, engine.EventFirst) - waiting
}

// leftEarly counts the clients that left without a first token. The engine may have given
// one that the front end had not worked on yet: no metric has seen that.
func (w *Window) leftEarly() float64 {
	first := w.begun()
	return w.sum(engine.EventEnd, func(e *engine.Event) float64 {
		if e.End != engine.EndRefused && !first[e.Request] {
			return 1
		}
		return 0
	})
}

func arrivals(w *Window, _ map[string]string) Answer {
	sent := w.sum(engine.EventSent, func(e *engine.Event) float64 {
		if e.End == engine.EndRefused {
			return 0
		}
		return 1
	})
	missed := w.unseen(w.To) - w.unseen(w.From)
	left := w.leftEarly()
	least, most := sent-max(missed, 0)-left, sent+max(-missed, 0)
	return within(max(0, least)/w.Elapsed(), max(0, most)/w.Elapsed())
}

func queueWait(w *Window, _ map[string]string) Answer {
	served := w.sum(engine.EventFirst, one) / w.Elapsed()
	capacity := w.state(w.To, func(s engine.Step) float64 { return float64(s.Waiting) })
	all := w.state(w.To, func(s engine.Step) float64 { return float64(s.Waiting + s.Deferred) })
	if w.Case.before("0.20.0") || w.Case.dialect() == surface.RayNew && w.Case.shows(catalog.DefectRayLastLabel) {
		return ratio(all, served) // It does not export the reasons.
	}
	return ratio(capacity, served)
}

// cancelled are the requests whose clients left. Where one engine and one API server count them, they are those; an
// engine finishes a request for several choices, or one of a beam search, several times, so that there can be
// fewer. Else they are estimated.
func cancelled(w *Window, _ map[string]string) Answer {
	first := w.begun()
	counted, of := 0.0, &w.Case.Config
	left := w.sum(engine.EventEnd, func(e *engine.Event) float64 {
		if e.End == engine.EndLeft && w.Case.dialect() != surface.Rust {
			counted++
		}
		// Before 0.13 also requests that failed; none behind the Rust front end, which counts
		// them with the reason abort.
		if w.Case.dialect() != surface.Rust && (e.End == engine.EndLeft || (e.End == engine.EndError && !w.ended(e))) && first[e.Request] {
			return 1
		}
		return 0
	})
	off := func(at float64) float64 {
		running := w.state(at, func(s engine.Step) float64 { return float64(s.Running) })
		return w.between(at, engine.EventFirst, engine.EventEnd) - running
	}
	missed := math.Abs(off(w.To) - off(w.From))
	estimate := within(max(0, left-missed)/w.Elapsed(), (left+missed)/w.Elapsed())
	switch dialect := w.Case.dialect(); {
	case dialect == surface.V0, w.Case.before("0.8.3"), w.Case.engines() > 1:
		return estimate
	case of.Workload != nil && (of.Workload.ChoicesShare > 0 || of.Workload.BeamShare > 0):
		return within(0, max(counted/w.Elapsed(), estimate.intervals[0][1]))
	}
	// A path or a server process that is new in the window is not counted.
	return Answer{intervals: append(exactly(counted/w.Elapsed()).intervals, estimate.intervals...)}
}

// iterationTokens counts the steps with output. Where a request that failed before its first
// token has one, its prompt counts in a step, which may have no other output.
func iterationTokens(w *Window, _ map[string]string) Answer {
	type step struct {
		engine int
		at     float64
	}
	prompts := map[step]bool{}
	for _, e := range w.happened {
		if e.Kind == engine.EventFirst {
			prompts[step{e.Engine, e.At}] = true
		}
	}
	steps := w.sum(engine.EventStep, func(e *engine.Event) float64 {
		if e.Step.Generated > 0 || prompts[step{e.Engine, e.At}] {
			return 1
		}
		return 0
	})
	answer := ratio(w.sum(engine.EventStep, generated)+w.sum(engine.EventFirst, computed), steps)
	if w.Case.Config.APIServers > 1 && !w.Case.before("0.12.0") && len(answer.intervals) > 0 {
		return within(0, answer.intervals[0][1]) // The mean of the parts of a step.
	}
	return answer
}

const blockSize = 16

// capacity is what the KV caches of the window's engines can hold, in tokens.
func (w *Window) capacity() float64 {
	each := float64(w.Case.Config.KVCacheTokens / blockSize * blockSize)
	if w.Engine < 0 {
		return each * float64(w.Case.engines())
	}
	return each
}

func errorRatio(w *Window, extra map[string]string) Answer {
	n := w.sum(engine.EventEnd, func(e *engine.Event) float64 {
		if extra["status_class"] == fmt.Sprintf("%dxx", e.Status/100) {
			return 1
		}
		return 0
	})
	return ratio(n, w.sum(engine.EventEnd, one))
}

func abandoned(w *Window, extra map[string]string) Answer {
	first := w.begun()
	tokens := w.sum(engine.EventEnd, func(e *engine.Event) float64 {
		if w.ended(e) || !first[e.Request] {
			return 0
		}
		return float64(e.Prompt)
	})
	all := w.sum(engine.EventFirst, prompt)
	if all == 0 {
		return Answer{}
	}
	if extra["bound"] == "lower" {
		return within(0, min(tokens/all, 1))
	}
	return within(min(tokens/all, 1), 1)
}
