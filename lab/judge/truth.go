package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// leastShare is the least share of the harm that is written.
const leastShare = 0.01

// truth is what is true about one server: the runs that differ in the injected causes, and
// what their requests add up to.
type truth struct {
	story      *Story
	objectives []objective
	runs       []*world
	// without has the run without each cause. The actual run is the first, the nominal one
	// the second; runs with the same changes are one.
	without map[string]int
	nominal int
	join    *join
	queues  queues
	// sent are the requests of the actual run as their clients saw them.
	sent []Sent
}

// newTruth prepares the runs of one server. The actual one is run 0.
func newTruth(s *Story, server int, objectives []objective, window float64) (*truth, error) {
	t := &truth{story: s, objectives: objectives, without: map[string]int{}, queues: queues{window: window}}
	cfg := s.Servers[server]
	known := map[string]int{}
	var plans [][]engine.Change
	run := func(keep func(*Injection) bool) int {
		var kept []Injection
		for i := range s.Injections {
			if keep(&s.Injections[i]) {
				kept = append(kept, s.Injections[i])
			}
		}
		changes := scenario.Changes(kept, server, cfg.Engines)
		name := fmt.Sprint(changes)
		if _, there := known[name]; !there {
			known[name] = len(plans)
			plans = append(plans, changes)
		}
		return known[name]
	}
	run(func(*Injection) bool { return true })
	// Clients that leave and engines that are added are no harm, so all runs have them.
	t.nominal = run(func(in *Injection) bool { return in.Parameter.Moment() })
	for _, c := range s.Causes() {
		t.without[c] = run(func(in *Injection) bool { return CauseOf(in.Parameter) != c })
	}
	// The actual run first, the nominal one second.
	idle, err := engine.NewAlone(cfg)
	if err != nil {
		return nil, err
	}
	t.join = newJoin(len(plans), func(one *seen) seen { return unqueued(idle, one, objectives) })
	for i, changes := range plans {
		of := cfg
		of.Changes = changes
		w, err := newWorld(of, s.Faults, objectives, func(one *seen) {
			if i == actual && len(t.sent) < mostSent {
				t.sent = append(t.sent, one.sent())
			}
			t.join.add(i, one)
		})
		if err != nil {
			return nil, err
		}
		t.runs = append(t.runs, w)
	}
	return t, nil
}

// actual is the run that is scraped.
func (t *truth) actual() *world { return t.runs[actual] }

// advance simulates the actual run up to a time.
func (t *truth) advance(to float64) error { return t.advanceRun(actual, to) }

// advanceOthers simulates the other runs up to a time.
func (t *truth) advanceOthers(to float64) error {
	for i := range t.runs[1:] {
		if err := t.advanceRun(i+1, to); err != nil {
			return err
		}
	}
	for _, w := range t.runs {
		w.settle()
	}
	return nil
}

// advanceRun samples the queues of the nominal run on the way.
func (t *truth) advanceRun(i int, to float64) error {
	w := t.runs[i]
	for at := t.queues.at + 1; i == t.nominal && at <= to; at++ {
		if err := w.advance(at); err != nil {
			return err
		}
		t.queues.sample(at, w.waiting())
	}
	return w.advance(to)
}

// finish goes on after the end of the story. What arrives then does not count.
func (t *truth) finish(ctx context.Context, end float64) error {
	t.join.until = end
	return finish(ctx, t.runs, end, func(to float64) error { return errors.Join(t.advance(to), t.advanceOthers(to)) })
}

// forget drops what cannot count any more: what a process that has ended did not have in all
// runs, and for an open loop what some run will never have, because there a request arrives
// at the same time in all runs that have it.
func (t *truth) forget(now float64) {
	if len(t.runs) == 1 {
		return
	}
	t.join.forgetProcesses(t.runs[actual].requests.epoch)
	if t.runs[actual].cfg.Workload.Clients > 0 {
		return
	}
	var has []func(key) bool
	for _, w := range t.runs {
		has = append(has, w.underway())
	}
	t.join.forget(has, now)
}

// close ends all runs.
func (t *truth) close() {
	for _, w := range t.runs {
		w.close()
	}
	t.queues.close()
}

// tokens is the mean number of tokens after the first in the nominal run.
func (t *truth) tokens() float64 {
	n, tokens := 0.0, 0.0
	for i := range t.join.minutes {
		n += t.join.minutes[i].in[t.nominal].requests
		tokens += t.join.minutes[i].in[t.nominal].tokens
	}
	return quotient(tokens, n)
}

// verdict is what is true about a group of requests in a minute.
type verdict struct {
	harm
	of *sums
	// base is what of is compared with: the nominal run, or the requests alone.
	base *sum
}

// judge compares the requests of a group with those of the nominal run, and with each alone
// where arrivals exceed capacity, or where an objective is missed because of a queue that is never empty: such a
// queue is harm also while it drains.
func (t *truth) judge(g *sums, overloaded, queued bool) verdict {
	a, w := &g.in[actual], &g.in[t.nominal]
	v := verdict{assess(a, w, t.objectives), g, w}
	if overloaded || queued && t.misses(w, &g.alone) {
		if more := assess(a, &g.alone, t.objectives); more.effect() > 1 && more.effect() > v.effect() {
			v.harm, v.base = more, &g.alone
		}
	}
	return v
}

// misses reports whether the nominal run misses an objective that each request alone meets.
func (t *truth) misses(nominal, alone *sum) bool {
	for i, o := range t.objectives {
		if nominal.missed(i) > o.allowed() && alone.missed(i) <= o.allowed() {
			return true
		}
	}
	return false
}

// verdicts are those of all requests of a minute, and then of the requests of each engine.
func (t *truth) verdicts(m *minute, from, to float64) []verdict {
	out := make([]verdict, 1+max(1, len(m.engines), t.runs[actual].cfg.Engines))
	// Where an engine has room the server has capacity: all engines must exceed theirs.
	all, allQueued := true, true
	none := newSums(len(m.in))
	for i := range out[1:] {
		g := &none
		if i < len(m.engines) {
			g = &m.engines[i]
		}
		overloaded, queued := t.queues.exceeded(i, from, to), t.queues.busy(i, from, to)
		all = all && (overloaded || g.in[actual].requests == 0)
		allQueued = allQueued && (queued || g.in[actual].requests == 0)
		out[1+i] = t.judge(g, overloaded, queued)
	}
	out[0] = t.judge(&m.sums, all, allQueued)
	return out
}

// fill writes what is true about a minute. The harm of a server is that of all its requests
// or that of the requests of its worst engine, the larger: what is reported of a server is
// what was found of its worst engine.
func (t *truth) fill(line *Line, tokens float64, usual *Usual) {
	m := t.join.at(line.Minute)
	line.Slow = t.slow(&m.in[actual], usual)
	line.Requests = int(m.in[actual].requests)
	line.TrueCauses = map[string]float64{}
	verdicts := t.verdicts(m, float64(line.Minute)*minuteSeconds, float64(line.Minute+1)*minuteSeconds)
	v, judged := verdicts[0], true
	for _, one := range verdicts {
		judged = judged && one.judged
		for i, o := range t.objectives {
			line.Missed = line.Missed || one.judged && one.of.in[actual].missed(i) > o.allowed()
		}
		if one.effect() > v.effect() {
			v = one
		}
	}
	line.open = t.open(line, judged)
	line.Effect = round(v.effect())
	if line.Harmful = v.effect() > 1; !line.Harmful {
		return
	}
	a, w := &v.of.in[actual], &v.of.in[t.nominal]
	for c, run := range t.without {
		if run != actual {
			line.TrueCauses[c] = v.undone(a, &v.of.in[run], v.base, tokens)
		}
	}
	if v.base != w {
		// What the nominal run has already over requests that never wait.
		line.TrueCauses[demand] = min(1, line.TrueCauses[demand]+1-v.undone(a, w, v.base, tokens))
	}
	for c, share := range line.TrueCauses {
		line.TrueCauses[c] = round(share)
	}
	maps.DeleteFunc(line.TrueCauses, func(_ string, share float64) bool { return share < leastShare })
	line.Also = t.also(line, a, w, tokens, usual)
	for i := range v.of.in {
		if one := &v.of.in[i]; i != actual {
			line.Unended = max(line.Unended, round(quotient(one.unended, one.requests)))
		}
	}
}

// slow reports whether the requests of a minute waited beyond the bar of harm against the usual, or missed an
// objective. Of fewer than feltLeast nothing is said.
func (t *truth) slow(m *sum, usual *Usual) bool {
	if m.requests < feltLeast {
		return false
	}
	for i, o := range t.objectives {
		if m.missed(i) > o.allowed() {
			return true
		}
	}
	beyond := func(now, usual, least float64) bool { return now-usual > max(slowdown*usual, least) }
	return beyond(m.meanFirst(), usual.First, slowerFirst) || beyond(m.perToken(), usual.Token, slowerToken)
}

// open reports whether it is not known that a minute without harm is healthy. judged is
// whether all engines had enough requests.
func (t *truth) open(line *Line, judged bool) bool {
	from, to := float64(line.Minute)*minuteSeconds, float64(line.Minute+1)*minuteSeconds
	for _, f := range t.story.Faults {
		if f.Kind != Missed && f.At < to && f.Until+t.queues.window > from {
			return true
		}
	}
	if judged {
		return false
	}
	for i := range t.queues.of {
		if t.queues.exceeded(i, from, to) {
			return true
		}
	}
	return slices.ContainsFunc(t.story.Injections, func(in Injection) bool {
		return in.At < to && CauseOf(in.Parameter) != "" && (len(in.Servers) == 0 || slices.Contains(in.Servers, line.Server))
	})
}

// also returns other names for true causes.
//
//   - More different prompts are prefill_heavy (reuse fell) and, because the cache
//     does not hold them all, cache_thrash. The metrics cannot distinguish the two.
//   - A higher arrival rate is demand_exceeds_capacity if requests queue. If they
//     hardly queue, capacity was not exceeded: the batch has grown and tokens are
//     slower, which is decode_load (more sequences).
//   - Longer prompts and longer answers are demand_exceeds_capacity as well if requests queue: more work
//     arrives than is served. Traffic that is too much by itself is prefill_heavy or decode_load as well where its
//     prompts or its answers are longer than usual by the bar of harm.
func (t *truth) also(line *Line, a, w *sum, tokens float64, usual *Usual) []string {
	var out []string
	queues := a.meanQueue()-w.meanQueue() >= 0.5*delay(a, w, tokens)
	if line.TrueCauses[demand] > 0 && w.meanComputed() > (1+slowdown)*usual.computed {
		out = append(out, "prefill_heavy")
	}
	if line.TrueCauses[demand] > 0 && w.meanTokens() > (1+slowdown)*usual.tokens {
		out = append(out, "decode_load")
	}
	for i := range t.story.Injections {
		in := &t.story.Injections[i]
		if _, is := line.TrueCauses[CauseOf(in.Parameter)]; !is {
			continue
		}
		switch {
		case in.Parameter == engine.ParamPrefixPool:
			out = append(out, "cache_thrash")
		case in.Parameter == engine.ParamArrivalRate && !queues:
			out = append(out, "decode_load")
		case (in.Parameter == engine.ParamPromptLength || in.Parameter == engine.ParamOutputLength) && queues:
			out = append(out, demand)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
