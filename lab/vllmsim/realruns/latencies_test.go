package realruns

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gauges is a recording with a row a second: running, waiting, generated, preempted and
// finished.
func gauges(rows ...[5]float64) *Recording {
	r := at()
	r.Counts = Counts{Finished: true, Preemptions: true}
	for i, row := range rows {
		r.Rows = append(r.Rows, Row{At: float64(i), Running: row[0], Waiting: row[1], Generated: row[2], Preempted: row[3], Finished: row[4]})
	}
	return r
}

func TestTheTimeToFirstTokenOfAQueue(t *testing.T) {
	// Two come in the first second, one of which runs. It ends in the fourth, and the other
	// one begins.
	r := gauges(
		[5]float64{0, 0, 0, 0, 0}, [5]float64{1, 1, 10, 0, 0}, [5]float64{1, 1, 20, 0, 0},
		[5]float64{1, 1, 30, 0, 0}, [5]float64{1, 0, 40, 0, 1}, [5]float64{0, 0, 45, 0, 2},
	)
	firsts := r.starts()
	require.Len(t, firsts, 2)
	// Half a request ran for a second and got ten tokens: steps of 0.05 s.
	assert.Equal(t, observation{0.5, 0.05, 1}, firsts[0])
	// It came at 0.5 and began at 3.5; now steps take 0.1 s.
	assert.InDelta(t, 3.5, firsts[1].at, 1e-9)
	assert.InDelta(t, 3.1, firsts[1].value, 1e-9)
}

func TestARequestThatWasPreemptedHasItsFirstTokenAlready(t *testing.T) {
	r := gauges(
		[5]float64{0, 0, 0, 0, 0}, [5]float64{2, 0, 10, 0, 0}, [5]float64{1, 1, 20, 1, 0}, [5]float64{2, 0, 30, 1, 0},
	)
	assert.Len(t, r.starts(), 2)
}

func TestRequestsThatLeaveTheQueueAreForgotten(t *testing.T) {
	// Of three that wait two give up, and the last one runs later.
	r := gauges(
		[5]float64{1, 0, 10, 0, 0}, [5]float64{1, 2, 20, 0, 0}, [5]float64{1, 3, 30, 0, 0}, [5]float64{1, 1, 40, 0, 0}, [5]float64{1, 0, 50, 0, 1},
	)
	firsts := r.starts()
	require.Len(t, firsts, 1)
	assert.InDelta(t, 3.5-1.5+0.1, firsts[0].value, 1e-9, "the one that came last")
}

func TestANewProcessHasNothingOfTheOldOne(t *testing.T) {
	// The old one leaves five that wait, and 0.5 s of work; on the new one five wait as well,
	// one of which runs after half a second.
	r := gauges(
		[5]float64{0, 0, 50, 0, 2}, [5]float64{1, 5, 50, 0, 2}, [5]float64{0, 5, 0, 0, 0}, [5]float64{1, 4, 10, 0, 0}, [5]float64{1, 4, 30, 0, 0},
	)
	firsts := r.starts()
	require.Len(t, firsts, 2)
	assert.InDelta(t, 2.5, firsts[1].at, 1e-9)
	assert.InDelta(t, 0.5+0.05, firsts[1].value, 1e-9)
	gaps := r.latencies(Gauges).gaps
	require.Len(t, gaps, 2)
	assert.Equal(t, observation{3, 0.05, 9}, gaps[0])
	assert.Equal(t, observation{4, 0.05, 20}, gaps[1])
	// Its first answer can have tokens.
	r.Rows[2].Generated, r.Rows[3].Generated, r.Rows[4].Generated = 4, 14, 34
	gaps = r.latencies(Gauges).gaps
	require.Len(t, gaps, 2, "those of the recording are collected once")
	tokens := 0.0
	for _, o := range r.observe(Gauges).gaps {
		tokens += o.n
	}
	assert.InDelta(t, 33, tokens, 0)
}

// Without clients, all tokens but the first ones have a gap; it lasts as long as nothing
// came.
func TestTheTimesBetweenTokensOfTheGauges(t *testing.T) {
	r := gauges([5]float64{0, 0, 0, 0, 0}, [5]float64{2, 0, 0, 0, 0}, [5]float64{2, 0, 4, 0, 0}, [5]float64{2, 0, 24, 0, 0})
	l := r.latencies(Gauges)
	require.Len(t, l.firsts, 2)
	require.Len(t, l.gaps, 2)
	// Two requests began between the first rows, ran for 1.5 seconds and got two tokens
	// each, the first of which came without a gap.
	assert.Equal(t, observation{2, 0.75, 2}, l.gaps[0])
	assert.Equal(t, observation{3, 0.1, 20}, l.gaps[1])
}

// Clients have one of two requests: the other one had not ended.
func TestTheRequestsThatTheClientsLackAreThoseOfTheGauges(t *testing.T) {
	r := gauges([5]float64{0, 0, 0, 0, 0}, [5]float64{2, 0, 22, 0, 0}, [5]float64{2, 0, 42, 0, 0}, [5]float64{1, 0, 57, 0, 1})
	// Its 26 tokens come from 0.5 to 3.
	r.Requests = []Request{{Sent: 0.2, First: 0.5, Last: 3, Output: 26, Prompt: 1}}
	l := r.latencies(Clients)
	require.Len(t, l.firsts, 1)
	assert.InDelta(t, 1, float64(len(l.timesToFirstToken(0, 3)))-1, 0)
	tokens := 0.0
	for _, o := range l.timesBetweenTokens(0, 3) {
		tokens += o.n
	}
	// Of 57 tokens two are the first ones.
	assert.InDelta(t, 55, tokens, 0)
	values := map[float64]bool{}
	for _, o := range l.timesToFirstToken(0, 3) {
		values[o.value] = true
	}
	assert.Contains(t, values, 0.3, "what the client measured")
	// With the gauges alone, the clients count for nothing.
	assert.Len(t, r.latencies(Gauges).timesToFirstToken(0, 3), 2)
	assert.Empty(t, r.latencies(Gauges).ended(0, 3, func(q *Request) float64 { return q.Last }))
	assert.Len(t, l.ended(2, 3, func(q *Request) float64 { return q.Last }), 1)
	assert.Empty(t, l.ended(0, 2.5, func(q *Request) float64 { return q.Last }))
}
