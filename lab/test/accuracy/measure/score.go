package main

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

const (
	// window is the processor's default window, and the length of a minute of the truth.
	window = 60.0
	// grace is the number of windows after an onset in which no report is required yet.
	grace = 3
	// trueShare is the least share of the harm that a true cause accounts for, asGood the
	// greatest distance from the best cause that counts as equal.
	trueShare = 0.20
	asGood    = 0.10
	// leastSlow is the least number of slow minutes in a row that are a natural slow-down: one is chance.
	leastSlow = 2
)

// Phase says why a harmful minute counts, or why not.
type Phase int

// The phases of a harmful minute.
const (
	// Counted minutes are scored.
	Counted Phase = iota
	// Settling minutes are within three windows of an onset.
	Settling
	// Draining minutes are after the end of every injection: the queue that is left has no
	// cause any more.
	Draining
	// Undetermined minutes have no cause that alone accounts for a fifth of the harm, or
	// requests that had not ended when the run did.
	Undetermined
)

// Verdict is about one harmful minute of one server.
type Verdict struct {
	Minute, Server int
	Phase          Phase
	Effect         float64
	// Class is the true cause, Said the reported cause or condition.
	Class, Said string
	// Reported is whether harm was reported; Right, whether with a true primary cause; Family, whether
	// with one of the family of a true one; Named, whether with a cause that must be inferred.
	Reported, Right, Family, Named bool
	// Ours is whether a fault of the story that has begun is a true cause: the rest is
	// traffic that is too much, which is not a merit of the story's fault.
	Ours bool
}

// Score is the score of a story.
type Score struct {
	*Record
	Verdicts []Verdict
	// Delay is the number of windows from the beginning of the harm by the fault to the first
	// right report, Noticed to the first report of harm; +Inf if there was none, NaN without
	// harm that has a cause.
	Delay, Noticed float64
	// Already is whether harm was reported before it began, so that Noticed is 0: of the
	// traffic, of what a ramp did before, or by chance.
	Already bool
	// False are warnings with nothing behind them, Natural those in a natural slow-down: users waited,
	// because of the traffic itself. Pages are those of both without a cause to page, Notices the notices
	// of slower service. All of them are in the Healthy hours: those without a fault or the harm of one.
	False, Natural, Pages, Notices []judge.Alarm
	Healthy                        float64
	// Slowed is the part of Healthy in a natural slow-down, FalseTime the part outside of one at the end of
	// whose minutes harm was reported.
	Slowed, FalseTime float64
}

// score compares what was reported with the truth, at the end of each minute.
func score(r *Record) Score {
	s := Score{Record: r, Delay: math.NaN(), Noticed: math.NaN()}
	for server := range max(1, r.Servers) {
		harmful := r.harmful(server)
		begins := -math.MaxInt
		for i := range harmful {
			l := &harmful[i]
			// After a gap of three minutes or less it is the same harm.
			if i == 0 || harmful[i-1].Minute < l.Minute-1-grace {
				begins = l.Minute
			}
			s.Verdicts = append(s.Verdicts, verdict(r, l, begins))
		}
		if math.IsNaN(s.Noticed) {
			s.Noticed, s.Delay, s.Already = delays(r, server, harmful)
		}
		s.alarms(server, harmful, math.MaxInt)
	}
	return s
}

// harmful are the harmful minutes of a server.
func (r *Record) harmful(server int) []judge.Line {
	return slices.DeleteFunc(slices.Clone(r.Lines), func(l judge.Line) bool { return l.Server != server || !l.Harmful })
}

// mostUnended is the share of requests that had not ended from which on the shares of causes are
// not known: that of lost answers which is harmful.
const mostUnended = 0.05

// verdict judges a harmful minute; begins is the first minute of the stretch of harm that
// it belongs to.
func verdict(r *Record, l *judge.Line, begins int) Verdict {
	v := Verdict{Minute: l.Minute, Server: l.Server, Effect: l.Effect, Said: label(l), Reported: alarming(l)}
	causes := trueCauses(l)
	switch {
	case drains(r, l):
		v.Phase = Draining
	case len(causes) == 0, l.Unended > mostUnended:
		v.Phase = Undetermined
	case settling(r, l, begins):
		v.Phase = Settling
	}
	if len(causes) == 0 {
		return v
	}
	v.Class, v.Ours = causes[0], injected(r, l, causes)
	if names := named(l, causes); v.Reported {
		said := primary(l)
		v.Right = slices.Contains(names, said) || slices.Contains(names, l.Condition)
		v.Family = v.Right || families[said] != "" && slices.ContainsFunc(names, func(c string) bool { return families[c] == families[said] })
		v.Named = families[said] != "" && !vague(said)
	} else if l.Condition == "asleep" && slices.Contains(causes, "asleep") {
		// A server sleeps on command: that is reported, but it is not an alarm.
		v.Reported, v.Right, v.Family = true, true, true
	}
	// If two causes are equally true, the reported one is the class.
	if v.Right && slices.Contains(causes, v.Said) {
		v.Class = v.Said
	}
	return v
}

// trueCauses are the true primary causes of a minute: the one with the greatest share of
// the harm, and those that are as good. There are none if no cause accounts for enough.
func trueCauses(l *judge.Line) []string {
	best := 0.0
	for _, share := range l.TrueCauses {
		best = max(best, share)
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(l.TrueCauses)) {
		if share := l.TrueCauses[name]; share >= trueShare && share >= best-asGood {
			out = append(out, name)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(l.TrueCauses[b], l.TrueCauses[a]) })
	return out
}

// families are the causes that must be inferred, by whether the engine is slower or the work grew. A report that
// names no cause can name its family: workGrew or engineSlower.
var families = map[string]string{
	"slow_steps": theEngine, "frontend_bound": theEngine, "kv_pressure": theEngine, "speculation_wasteful": theEngine, engineSlower: theEngine,
	demand: theWork, "prefill_heavy": theWork, "decode_load": theWork, "cache_thrash": theWork, workGrew: theWork,
}

const (
	theEngine, theWork     = "engine", "work"
	engineSlower, workGrew = "engine_slower", "work_grew"
)

// vague reports whether a report names no cause but its family.
func vague(said string) bool { return said == engineSlower || said == workGrew }

// alsoOf are the true causes that another name is right for.
var alsoOf = map[string][]string{
	"cache_thrash": {"prefill_heavy"}, "decode_load": {demand}, "prefill_heavy": {demand}, demand: {"prefill_heavy", "decode_load"},
}

// named returns the causes with the other names under which they are right: more
// different prompts than the cache holds are prefill_heavy and cache_thrash, and a higher
// arrival rate that hardly queues is demand_exceeds_capacity and decode_load. Requests that
// are longer and therefore more than the server can do are demand and what makes them longer.
func named(l *judge.Line, causes []string) []string {
	out := slices.Clone(causes)
	for _, name := range l.Also {
		if slices.ContainsFunc(alsoOf[name], func(of string) bool { return slices.Contains(causes, of) }) {
			out = append(out, name)
		}
	}
	for _, longer := range []string{"prefill_heavy", "decode_load"} {
		one := slices.Contains(causes, longer) || slices.Contains(causes, demand)
		if one && l.TrueCauses[longer] >= trueShare && l.TrueCauses[demand] >= trueShare {
			out = append(out, longer, demand)
		}
	}
	return out
}

// faulty are the injections of a server that are faults.
func faulty(r *Record, server int) []stories.Injected {
	var out []stories.Injected
	for i := range r.Injections {
		if in := &r.Injections[i]; in.Cause != "" && in.Concerns(server) {
			out = append(out, *in)
		}
	}
	return out
}

// injected reports whether one of the causes is that of a fault of the server that has
// begun; in a story without a fault every cause is. In a pool the other servers have none.
func injected(r *Record, l *judge.Line, causes []string) bool {
	faults := faulty(r, l.Server)
	return !r.hasFault() || slices.ContainsFunc(faults, func(in stories.Injected) bool {
		return slices.Contains(causes, in.Cause) && in.At < float64(l.Minute+1)*window
	})
}

// drains reports whether every injection of the server has ended, so that the harm is what
// they left behind. Demand may be traffic that is too much by itself, which goes on; that of
// a fault of more arrivals ends with the fault.
func drains(r *Record, l *judge.Line) bool {
	faults := faulty(r, l.Server)
	at := float64(l.Minute) * window
	if len(faults) == 0 || slices.ContainsFunc(faults, func(in stories.Injected) bool { return at < in.Ends(&r.Meta) }) {
		return false
	}
	return l.TrueCauses[demand] < trueShare || moreArrived(faults) && !demandBefore(r, l.Server, faults)
}

// moreArrived reports whether one of the faults is of more arrivals.
func moreArrived(faults []stories.Injected) bool {
	return slices.ContainsFunc(faults, func(in stories.Injected) bool { return in.Cause == demand })
}

// demandBefore reports whether the traffic was too much for a server before its first fault.
func demandBefore(r *Record, server int, faults []stories.Injected) bool {
	first := math.Inf(1)
	for i := range faults {
		first = min(first, faults[i].At)
	}
	return slices.ContainsFunc(r.Lines, func(l judge.Line) bool {
		return l.Server == server && l.Harmful && float64(l.Minute+1)*window <= first && l.TrueCauses[demand] >= trueShare
	})
}

// settling reports whether a minute is so soon after an onset that no report is required
// yet. Before any fault the onset is the beginning of the stretch of harm.
func settling(r *Record, l *judge.Line, begins int) bool {
	faults := faulty(r, l.Server)
	at := float64(l.Minute) * window
	if !slices.ContainsFunc(faults, func(in stories.Injected) bool { return at+window > in.At }) {
		return l.Minute < begins+grace
	}
	return slices.ContainsFunc(faults, func(in stories.Injected) bool {
		return at+window > in.At && at < in.At+grace*window
	})
}

// delays returns the windows from the beginning of the harm to the first report of it, and
// to the first right one, and whether harm was reported before it began.
func delays(r *Record, server int, harmful []judge.Line) (noticed, delay float64, already bool) {
	begin := -1.0
	noticed, delay = math.Inf(1), math.Inf(1)
	for i := range harmful {
		l := &harmful[i]
		causes := trueCauses(l)
		if len(causes) == 0 || drains(r, l) || !injected(r, l, causes) {
			continue
		}
		from, to := float64(l.Minute)*window, float64(l.Minute+1)*window
		if begin < 0 {
			begin = from
			for _, in := range faulty(r, server) {
				if in.At > from && in.At < to {
					begin = in.At
				}
			}
			if reportedBefore(r, server, begin) && alarming(l) {
				noticed, already = 0, true
			}
		}
		names := named(l, causes)
		for _, a := range r.Alarms {
			if a.Server != server || a.At <= begin || a.At <= from || a.At > to {
				continue
			}
			noticed = min(noticed, (a.At-begin)/window)
			if slices.Contains(names, a.Cause) || slices.Contains(names, a.Condition) {
				delay = min(delay, (a.At-begin)/window)
			}
		}
		v := verdict(r, l, 0)
		if v.Reported {
			noticed = min(noticed, (to-begin)/window)
		}
		if v.Right {
			delay = min(delay, (to-begin)/window)
		}
	}
	if begin < 0 {
		return math.NaN(), math.NaN(), false
	}
	return noticed, delay, already
}

// reportedBefore reports whether harm was already reported at the end of the minute before.
func reportedBefore(r *Record, server int, at float64) bool {
	return slices.ContainsFunc(r.Lines, func(l judge.Line) bool {
		return l.Server == server && float64(l.Minute+1) == math.Floor(at/window) && alarming(&l)
	})
}
