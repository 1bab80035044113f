package judge

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// key is a request in all runs of a story. A process that starts again counts its requests
// anew, so epoch counts the processes.
type key struct{ epoch, id int }

// seen is what a client saw of one request in one run, all its attempts together. Times are
// in seconds.
type seen struct {
	key key
	// engine had it, or its last attempt.
	engine  int
	arrived float64
	// first is the time to the first token; without one it is the age.
	first, queued float64
	// decoding is the time after the first token, and tokens the number of further tokens.
	// Their quotient is the wait of a client per token, also with speculation.
	decoding, tokens float64
	// complete is a complete answer with uncorrupted content, or one that may still become
	// it: unended, a late answer is not lost.
	complete, unended, refused bool
	// over and of count, for each objective, observations beyond the threshold and all.
	over, of []float64
	// prompt, cached and output are tokens.
	prompt, cached, output int
	end                    engine.End
}

// requests turns the outcomes of one run into requests. Attempts of the same request are
// merged into the first one.
type requests struct {
	objectives []objective
	workload   *engine.Workload
	born       float64 // Of the process, in seconds of the story.
	epoch      int
	open       map[int]*attempts
	done       func(*seen)
}

// attempts are those of one request so far, none of which has succeeded.
type attempts struct {
	arrived float64
	n       int
	last    engine.Outcome
}

// add takes the outcome of an attempt.
func (r *requests) add(o *engine.Outcome) {
	if r.workload.Retries == 0 {
		r.emit(o, o.ID, o.Arrived)
		return
	}
	a := r.open[o.First]
	if a == nil {
		a = &attempts{arrived: o.Arrived}
	}
	a.n++
	a.arrived = min(a.arrived, o.Arrived)
	a.last = *o
	failed := o.End == engine.EndError || o.End == engine.EndLeft || o.End == engine.EndAborted
	if failed && a.n <= r.workload.Retries {
		r.open[o.First] = a
		return
	}
	delete(r.open, o.First)
	r.emit(o, o.First, a.arrived)
}

// settle ends the requests whose clients do not try again. live are the first attempts of
// requests that are under way, now is the time of the process.
func (r *requests) settle(live map[int]bool, now float64) {
	for first, a := range r.open {
		wait := r.workload.RetryAfter*math.Pow(2, float64(a.n-1)) + 1
		if !live[first] && now > a.last.Ended+wait {
			delete(r.open, first)
			r.emit(&a.last, first, a.arrived)
		}
	}
}

// close ends all of them.
func (r *requests) close() {
	r.settle(nil, math.Inf(1))
}

// emit passes on a request by its last attempt.
func (r *requests) emit(o *engine.Outcome, id int, arrived float64) {
	s := &seen{
		key: key{r.epoch, id}, engine: o.Engine, arrived: arrived + r.born, queued: o.Queue, refused: o.End == engine.EndRefused,
		prompt: o.Prompt, cached: o.Cached, output: o.Output, end: o.End, tokens: float64(max(0, o.Output-1)),
	}
	s.first = o.Arrived - arrived + o.FirstToken
	if o.FirstToken == 0 {
		s.first = o.Ended - arrived
	}
	steps := 0.0
	for _, n := range o.Gaps {
		steps += float64(n)
	}
	s.decoding = o.MeanGap * steps
	waits := 0.0
	if o.End == engine.EndNone && o.FirstToken > 0 {
		// It has waited for its next token since the last one.
		if waits = max(0, o.Ended-o.Arrived-o.FirstToken-s.decoding); waits > 0 {
			s.decoding += waits
			s.tokens++
		}
	}
	s.unended = o.End == engine.EndNone
	s.complete = (o.End == engine.EndStop || o.End == engine.EndLength || s.unended) && !o.Corrupted
	if len(r.objectives) > 0 {
		s.measure(r.objectives, o, o.Ended-arrived, waits)
	}
	r.done(s)
}

// measure compares a request with the objectives. whole is its age at its end, waits the
// time since its last token if it has not ended.
func (s *seen) measure(objectives []objective, o *engine.Outcome, whole, waits float64) {
	s.over, s.of = make([]float64, len(objectives)), make([]float64, len(objectives))
	mean := s.decoding / max(1, s.tokens)
	for i, ob := range objectives {
		measured := map[indicator]float64{firstToken: s.first, interToken: mean, tokenMean: mean, wholeTime: whole}[ob.of]
		within := measured <= ob.threshold
		if ob.of != interToken {
			s.of[i] = 1
			if !within {
				s.over[i] = 1
			}
			continue
		}
		count := func(bucket int, n float64) {
			s.of[i] += n
			if bucket == len(engine.GapBounds) || engine.GapBounds[bucket] > ob.threshold {
				s.over[i] += n
			}
		}
		for bucket, n := range o.Gaps {
			count(bucket, float64(n))
		}
		if waits > 0 {
			count(gapBucket(waits), 1)
		}
	}
}

func gapBucket(seconds float64) int {
	for i, bound := range engine.GapBounds {
		if seconds <= bound {
			return i
		}
	}
	return len(engine.GapBounds)
}
