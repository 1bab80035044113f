package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Objective is an objective for a latency, see the processor's configuration.
type Objective struct {
	Name  string
	Input input.Metric
	// Threshold is in seconds. Target is the share that should be within it.
	Threshold, Target float64
	// Matches reports whether the objective is for a model.
	Matches func(model string) bool
}

// leastObjectiveSeen is how many requests or gaps a window needs to judge an objective.
const leastObjectiveSeen = 20

// splitDoubt is the error of the estimate within the bucket that the threshold splits.
const splitDoubt = 0.25

// grouped is how many requests that miss an objective come together.
const grouped = 3.0

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
		// A change that does harm explains why requests miss it, so chance does not: each counts, and
		// half of what is allowed is tested against all of it.
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
	if signal.Known(share) {
		hits := share * worst.seen
		ratio = (hits*math.Log(p1/p0) + (worst.seen-hits)*math.Log((1-p1)/(1-p0))) / together
	}
	// By chance requests miss an objective for a minute, so it takes a window more than a change.
	e.Harms[missedObjective].add(ratio, windows, float64(settings.Hold)+1, float64(settings.Hold)+1)
	// One window that misses it is chance, and must not stop learning what is usual.
	s.suspect = s.suspect || worst.share > worst.allowed && e.Harms[missedObjective].Score >= enoughEvidence/2
	if e.Harms[missedObjective].On {
		s.objective = worst
		s.reference = Objectives
		in := worst.input
		s.firstToken = s.firstToken || in != input.InterTokenLatency && in != input.TimePerOutputToken && in != input.DecodeTime
		s.tokenGap = s.tokenGap || in != input.TimeToFirstToken && in != input.QueueTime && in != input.PrefillTime
	}
}

// missed returns the worst of the objectives, relative to what its target allows, and the
// objective that the most requests miss, whatever its target. A request meets an objective
// for the time between tokens where its mean does. keeps says of late first tokens and of slow tokens whether
// there are objectives for them and none is missed in the window, so that they are no harm.
func (s *Settings) missed(v *window.View) (worst, most missed, keeps [missedObjective]bool) {
	var seen window.Histogram
	var judged [missedObjective]bool
	for i := range s.Objectives {
		o := &s.Objectives[i]
		if !o.Matches(v.Group().Value("model_name")) {
			continue
		}
		seen.Reset()
		known := derive.Observations(v, &seen, o.Input) == derive.OK && seen.Count > 0
		if of, is := harmOf[o.Input]; is {
			kept := !known || 1-seen.Below(o.Threshold)/seen.Count <= 1-o.Target
			keeps[of] = kept && (keeps[of] || !judged[of])
			judged[of] = true
		}
		if !known || seen.Count < leastObjectiveSeen {
			continue
		}
		one := missed{o.Name, o.Input, 1 - seen.Below(o.Threshold)/seen.Count, 1 - o.Target, seen.Count, 0}
		_, one.undecided = seen.Within(o.Threshold)
		one.undecided /= seen.Count
		request := one
		if o.Input == input.InterTokenLatency {
			seen.Reset()
			if derive.Observations(v, &seen, input.TimePerOutputToken) != derive.OK || seen.Count < leastObjectiveSeen {
				continue
			}
			good, undecided := seen.Within(o.Threshold)
			request.share = 1 - (good+undecided)/seen.Count
		}
		if most.name == "" || request.share > most.share {
			most = request
		}
		if o.Input == input.InterTokenLatency {
			ended, _ := derive.Mean(v, input.TimePerOutputToken)
			one.seen = signal.Or(ended, one.seen) // The gaps of a request are alike.
		}
		if worst.name == "" || one.share*worst.allowed >= worst.share*one.allowed {
			worst = one
		}
	}
	return worst, most, keeps
}

// misses reports whether objectives do not say that a kind of harm is none: one is missed, which can be chance for less
// than a window, or there is none.
func (e *engine) misses(settings *Settings, r *reading, harm int) bool {
	if r.elapsed > 0 {
		since(&e.MissedSince[harm], !r.keeps[harm], r.At)
	}
	_, measured := settings.longest(e.served(), harm)
	return !measured || lasts(e.MissedSince[harm], r.At, settings.Window)
}

// harmOf is the kind of harm that an objective decides about.
var harmOf = map[input.Metric]int{
	input.TimeToFirstToken: lateFirst, input.InterTokenLatency: slowTokens, input.TimePerOutputToken: slowTokens,
}

// longest is the longest threshold in seconds of the objectives that decide about a kind of harm to the users of a model,
// and whether there is any.
func (s *Settings) longest(model string, harm int) (seconds float64, measured bool) {
	for i := range s.Objectives {
		o := &s.Objectives[i]
		if of, is := harmOf[o.Input]; is && of == harm && o.Matches(model) {
			seconds, measured = max(seconds, o.Threshold), true
		}
	}
	return seconds, measured
}
