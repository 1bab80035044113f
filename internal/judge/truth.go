package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
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
	queue   queue
}

// newTruth prepares the runs of one server. The actual one is run 0.
func newTruth(s *Story, server int, objectives []objective, window float64) (*truth, error) {
	t := &truth{story: s, objectives: objectives, without: map[string]int{}, queue: queue{window: window}}
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
	t.nominal = run(func(*Injection) bool { return false })
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
		w, err := newWorld(of, s.Faults, objectives, func(one *seen) { t.join.add(i, one) })
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

// advanceRun samples the queue of the nominal run on the way.
func (t *truth) advanceRun(i int, to float64) error {
	w := t.runs[i]
	for at := t.queue.at + 1; i == t.nominal && at <= to; at++ {
		if err := w.advance(at); err != nil {
			return err
		}
		t.queue.sample(at, w.waiting())
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
	var has []map[key]bool
	for _, w := range t.runs {
		has = append(has, w.live())
	}
	t.join.forget(has, now)
}

// close ends all runs.
func (t *truth) close() {
	for _, w := range t.runs {
		w.close()
	}
	t.queue.close()
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

// fill writes what is true about a minute.
func (t *truth) fill(line *Line, tokens float64) {
	m := t.join.at(line.Minute)
	a, w := &m.in[actual], &m.in[t.nominal]
	line.Requests = int(a.requests)
	line.TrueCauses = map[string]float64{}
	h := assess(a, w, t.objectives)
	line.open = t.open(line, h.judged)
	for i, o := range t.objectives {
		line.Missed = line.Missed || h.judged && a.missed(i) > 1-o.target
	}
	base := w
	overloaded := t.queue.exceeded(float64(line.Minute)*minuteSeconds, float64(line.Minute+1)*minuteSeconds)
	if overloaded {
		if more := assess(a, &m.alone, t.objectives); more.effect() > 1 && more.effect() > h.effect() {
			h, base = more, &m.alone
		}
	}
	line.Effect = round(h.effect())
	if line.Harmful = h.effect() > 1; !line.Harmful {
		return
	}
	for c, run := range t.without {
		if run != actual {
			line.TrueCauses[c] = h.undone(a, &m.in[run], base, tokens)
		}
	}
	if base != w {
		// What the nominal run has already over requests that never wait.
		line.TrueCauses[demand] = min(1, line.TrueCauses[demand]+1-h.undone(a, w, base, tokens))
	}
	for c, share := range line.TrueCauses {
		line.TrueCauses[c] = round(share)
	}
	maps.DeleteFunc(line.TrueCauses, func(_ string, share float64) bool { return share < leastShare })
	line.Also = t.also(line, a, w, tokens)
}

// open reports whether it is not known that a minute without harm is healthy.
func (t *truth) open(line *Line, judged bool) bool {
	from, to := float64(line.Minute)*minuteSeconds, float64(line.Minute+1)*minuteSeconds
	for _, f := range t.story.Faults {
		if f.Kind != Missed && f.At < to && f.Until+t.queue.window > from {
			return true
		}
	}
	return !judged && slices.ContainsFunc(t.story.Injections, func(in Injection) bool {
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
func (t *truth) also(line *Line, a, w *sum, tokens float64) []string {
	var out []string
	for i := range t.story.Injections {
		in := &t.story.Injections[i]
		if _, is := line.TrueCauses[CauseOf(in.Parameter)]; !is {
			continue
		}
		switch {
		case in.Parameter == engine.ParamPrefixPool:
			out = append(out, "cache_thrash")
		case in.Parameter == engine.ParamArrivalRate && a.meanQueue()-w.meanQueue() < 0.5*delay(a, w, tokens):
			out = append(out, "decode_load")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
