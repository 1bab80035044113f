package realruns

import (
	"math"
	"slices"
	"sort"
)

// Recording is one recorded run of a server.
type Recording struct {
	Name string
	// Model, Version, Label and Note are empty where the recording does not name them.
	Model, Version string
	// Label and Note say what happened.
	Label, Note string
	// Capacity is how many tokens the KV cache holds; 0 where it is not known.
	Capacity float64
	Rows     []Row
	// Requests are what the clients measured, in the order of the first tokens.
	Requests []Request
	// Counts says which counters and gauges the rows have besides those that all have.
	Counts Counts

	collected map[Source]*latencies
}

// Counts says what the rows of a recording have.
type Counts struct{ Usage, Lookups, Preemptions, Finished, Phases bool }

// Row is what the server said at one scrape.
type Row struct {
	// At is in seconds since the beginning of the recording.
	At float64
	// Usage is the share of the KV cache in use; NaN where this row does not have it.
	Usage, Running, Waiting                               float64
	Prompt, Generated, Queries, Hits, Preempted, Finished float64
}

// Request is one request, by the clock of the recording.
type Request struct {
	// Sent is when the client sent it; First and Last are when its tokens came.
	Sent, First, Last float64
	Prompt, Output    float64
	// Queued and Scheduled are when the engine got it and when it first ran; NaN where
	// the recording does not have them.
	Queued, Scheduled float64
}

// timeToFirstToken is what the client measured.
func (r *Request) timeToFirstToken() float64 { return r.First - r.Sent }

// gap is the mean time between two tokens; 0 with a single token.
func (r *Request) gap() float64 {
	if r.Output < 2 {
		return 0
	}
	return (r.Last - r.First) / (r.Output - 1)
}

// End is the time of the last row.
func (r *Recording) End() float64 { return r.Rows[len(r.Rows)-1].At }

// restarts returns the rows from which on another process answers, because a counter is
// lower than before.
func (r *Recording) restarts() []int {
	var out []int
	for i := 1; i < len(r.Rows); i++ {
		a, b := &r.Rows[i-1], &r.Rows[i]
		if b.Prompt < a.Prompt || b.Generated < a.Generated || b.Queries < a.Queries || b.Hits < a.Hits ||
			b.Preempted < a.Preempted || b.Finished < a.Finished {
			out = append(out, i)
		}
	}
	return out
}

// fresh is how old a row may be to answer a scrape. The recorder scraped once a second.
const fresh = 2.0

// answer returns the row with which the server answers a scrape, and when. A server that
// answered nothing recently answers with its next row, if that comes within the timeout.
func (r *Recording) answer(at, timeout float64) (row int, when float64, ok bool) {
	next := sort.Search(len(r.Rows), func(i int) bool { return r.Rows[i].At > at })
	if next > 0 && at-r.Rows[next-1].At <= fresh {
		return next - 1, at, true
	}
	if next < len(r.Rows) && r.Rows[next].At < at+timeout {
		return next, r.Rows[next].At, true
	}
	return 0, at, false
}

// Lag is by how much the counter of finished requests follows the clients: the median,
// over the requests, of the time at which it reaches a number less the time at which as
// many had their last token. It is about half the time between two scrapes where the
// clocks of the two sides agree; NaN where it cannot be known.
func (r *Recording) Lag() float64 {
	ends := make([]float64, 0, len(r.Requests))
	for i := range r.Requests {
		ends = append(ends, r.Requests[i].Last)
	}
	slices.Sort(ends)
	var lags []float64
	row := 0
	for i, end := range ends {
		for row < len(r.Rows) && r.Rows[row].Finished < float64(i+1) {
			row++
		}
		if row < len(r.Rows) {
			lags = append(lags, r.Rows[row].At-end)
		}
	}
	return Quantile(lags, 0.5)
}

// Coverage is the share of the generated tokens that belong to requests of the clients
// that the recording has; NaN without any.
func (r *Recording) Coverage() float64 {
	if len(r.Requests) == 0 {
		return math.NaN()
	}
	end, tokens, generated := r.End(), 0.0, 0.0
	for i := range r.Requests {
		q := &r.Requests[i]
		if q.First <= end && q.First > 0 {
			tokens++
		}
		tokens += q.gaps(0, end)
	}
	for i := 1; i < len(r.Rows); i++ {
		generated += max(r.Rows[i].Generated-r.Rows[i-1].Generated, 0)
	}
	return tokens / generated
}

// gaps is how many times between two tokens end in (from, to].
func (r *Request) gaps(from, to float64) float64 {
	gap := r.gap()
	if gap <= 0 {
		if r.Output > 1 && r.First > from && r.First <= to {
			return r.Output - 1
		}
		return 0
	}
	until := func(at float64) float64 { return min(max(math.Floor((at-r.First)/gap+1e-9), 0), r.Output-1) }
	return until(to) - until(from)
}

// Quantile returns a quantile of values, the lower of two; NaN without values.
func Quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[min(max(int(math.Ceil(q*float64(len(sorted))))-1, 0), len(sorted)-1)]
}
