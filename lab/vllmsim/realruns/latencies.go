package realruns

import (
	"math"
	"slices"
	"sort"
)

// Source is where the latencies come from.
type Source string

// The sources.
const (
	// Clients takes what the clients measured, and the gauges for the requests that the
	// recording does not have because they had not ended.
	Clients Source = "clients"
	// Gauges takes the gauges only.
	Gauges Source = "gauges"
)

// latencies are the observations of a recording's histograms.
type latencies struct {
	requests []Request
	// firsts are the first tokens of requests that the clients do not have, in the order of
	// their times.
	firsts []observation
	// gaps are the times between tokens that belong to no request of the clients.
	gaps []observation
}

// observation is n times the same value, at a time.
type observation struct{ at, value, n float64 }

// latencies returns those of a recording; they are collected once.
func (r *Recording) latencies(source Source) *latencies {
	if r.collected[source] == nil {
		if r.collected == nil {
			r.collected = map[Source]*latencies{}
		}
		r.collected[source] = r.observe(source)
	}
	return r.collected[source]
}

func (r *Recording) observe(source Source) *latencies {
	out := &latencies{firsts: r.starts()}
	if source == Clients {
		out.requests = r.Requests
		out.firsts = unmatched(out.firsts, r.Requests)
	}
	out.gaps = r.remainder(out)
	return out
}

// starts are the first tokens that the gauges show: each request that begins to run had
// waited since the gauges showed it, and gets its first token a step later. Requests are
// served in the order in which they arrived, those that were preempted before all others.
func (r *Recording) starts() []observation {
	var out []observation
	var queue []float64
	resuming := 0.0
	step := 0.0
	var work float64
	// Nothing is known about those that run in the first row.
	for range int(r.Rows[0].Waiting) {
		queue = append(queue, r.Rows[0].At)
	}
	for i := 1; i < len(r.Rows); i++ {
		now, before := &r.Rows[i], r.Rows[i-1]
		if now.Finished < before.Finished || now.Generated < before.Generated {
			queue, resuming, work = nil, 0, 0
			before = Row{At: now.At}
		}
		middle := (now.At + before.At) / 2
		work += (now.Running + before.Running) / 2 * (now.At - before.At)
		if tokens := now.Generated - before.Generated; tokens > 0 {
			step, work = work/tokens, 0
		}
		ended := r.finished(i)
		running, waiting := now.Running-before.Running, now.Waiting-before.Waiting
		resuming += now.Preempted - before.Preempted
		for range int(max(running+waiting+ended, 0)) {
			queue = append(queue, middle)
		}
		for range int(max(running+ended+now.Preempted-before.Preempted, 0)) {
			if resuming > 0 {
				resuming--
				continue
			}
			arrived := middle
			if len(queue) > 0 {
				arrived, queue = queue[0], queue[1:]
			}
			out = append(out, observation{middle, middle - arrived + step, 1})
		}
		// The gauge is right about how many wait: the others have left.
		if most := int(max(now.Waiting-resuming, 0)); len(queue) > most {
			queue = queue[len(queue)-most:]
		}
		resuming = min(resuming, now.Waiting)
	}
	return out
}

// finished is how many requests ended between row i-1 and row i: by the counter, or by the
// requests of a recording that lacks it.
func (r *Recording) finished(i int) float64 {
	from, to := &r.Rows[i-1], &r.Rows[i]
	if r.Counts.Finished {
		return max(to.Finished-from.Finished, 0)
	}
	n := 0.0
	for j := range r.Requests {
		if at := r.Requests[j].Last; at > from.At && at <= to.At {
			n++
		}
	}
	return n
}

// unmatched are the starts that belong to no request of the clients: to each request
// belongs the latest start that is not later than its first token, but for the time
// between two rows.
func unmatched(starts []observation, requests []Request) []observation {
	taken := make([]bool, len(starts))
	for i := range requests {
		j := sort.Search(len(starts), func(j int) bool { return starts[j].at > requests[i].First+fresh }) - 1
		for j >= 0 && taken[j] {
			j--
		}
		if j >= 0 {
			taken[j] = true
		}
	}
	var out []observation
	for j := range starts {
		if !taken[j] {
			out = append(out, starts[j])
		}
	}
	return out
}

// remainder are the times between tokens that the counter of generated tokens has and the
// requests have not. Each is the mean of its time: running requests times the time since
// tokens came last, divided by the tokens.
func (r *Recording) remainder(known *latencies) []observation {
	var out []observation
	var work, left float64
	of := r.tokensOf(known.requests)
	for i := 1; i < len(r.Rows); i++ {
		a, b := &r.Rows[i-1], &r.Rows[i]
		work += (a.Running + b.Running) / 2 * (b.At - a.At)
		tokens := b.Generated - a.Generated
		if tokens < 0 {
			work, left, tokens = 0, 0, b.Generated
		}
		left += tokens - of[i] - count(known.firsts, a.At, b.At)
		if tokens > 0 {
			if n := math.Floor(left); n >= 1 && work > 0 {
				out = append(out, observation{b.At, work / tokens, n})
				left -= n
			}
			work = 0
		}
	}
	return out
}

// tokensOf is how many tokens the requests got between each row and the one before.
func (r *Recording) tokensOf(requests []Request) []float64 {
	out := make([]float64, len(r.Rows))
	for j := range requests {
		q := &requests[j]
		i := sort.Search(len(r.Rows), func(i int) bool { return r.Rows[i].At >= q.First })
		for before := math.Inf(-1); i < len(r.Rows) && before < q.Last; i++ {
			if i > 0 {
				before = r.Rows[i-1].At
			}
			out[i] += q.gaps(before, r.Rows[i].At)
			if q.First > before {
				out[i]++
			}
			before = r.Rows[i].At
		}
	}
	return out
}

// between returns the observations in (from, to].
func between(all []observation, from, to float64) []observation {
	first := sort.Search(len(all), func(i int) bool { return all[i].at > from })
	end := sort.Search(len(all), func(i int) bool { return all[i].at > to })
	return all[first:max(end, first)]
}

func count(all []observation, from, to float64) float64 {
	n := 0.0
	for _, o := range between(all, from, to) {
		n += o.n
	}
	return n
}

// timesToFirstToken are those of the first tokens in (from, to].
func (l *latencies) timesToFirstToken(from, to float64) []observation {
	out := slices.Clone(between(l.firsts, from, to))
	for i := range l.requests {
		if q := &l.requests[i]; q.First > from && q.First <= to {
			out = append(out, observation{q.First, q.timeToFirstToken(), 1})
		}
	}
	return out
}

// timesBetweenTokens are those that ended in (from, to].
func (l *latencies) timesBetweenTokens(from, to float64) []observation {
	out := slices.Clone(between(l.gaps, from, to))
	for i := range l.requests {
		q := &l.requests[i]
		if q.First > to || q.Last <= from {
			continue
		}
		if n := q.gaps(from, to); n > 0 {
			out = append(out, observation{to, q.gap(), n})
		}
	}
	return out
}

// ended are values of the requests that ended in (from, to], without those that lack it.
func (l *latencies) ended(from, to float64, value func(*Request) float64) []observation {
	var out []observation
	for i := range l.requests {
		q := &l.requests[i]
		if v := value(q); q.Last > from && q.Last <= to && !math.IsNaN(v) {
			out = append(out, observation{q.Last, v, 1})
		}
	}
	return out
}
