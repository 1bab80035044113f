package realruns

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func at(times ...float64) *Recording {
	r := &Recording{Name: "x"}
	for _, t := range times {
		r.Rows = append(r.Rows, Row{At: t, Usage: math.NaN()})
	}
	return r
}

func TestAScrapeIsAnsweredByTheLastRowOrTheNext(t *testing.T) {
	r := at(0, 1, 2, 9, 40)
	for _, test := range []struct {
		at   float64
		row  int
		when float64
		ok   bool
	}{
		{0, 0, 0, true},
		{1.5, 1, 1.5, true},
		{4, 2, 4, true},     // The row is two seconds old.
		{4.5, 3, 9, true},   // The answer comes 4.5 s later.
		{15, 0, 15, false},  // The next one comes after 25 s.
		{30, 0, 30, false},  // It comes at the moment of the timeout.
		{30.5, 4, 40, true}, // It comes just before.
		{43, 0, 43, false},
	} {
		row, when, ok := r.answer(test.at, 10)
		assert.Equal(t, []any{test.row, test.when, test.ok}, []any{row, when, ok}, "at %v", test.at)
	}
}

func TestACounterThatFallsIsANewProcess(t *testing.T) {
	for name, change := range map[string]func(*Row){
		"prompt": func(r *Row) { r.Prompt = 4 }, "generated": func(r *Row) { r.Generated = 4 }, "queries": func(r *Row) { r.Queries = 4 },
		"hits": func(r *Row) { r.Hits = 4 }, "preempted": func(r *Row) { r.Preempted = 4 }, "finished": func(r *Row) { r.Finished = 4 },
	} {
		same := Row{Prompt: 5, Generated: 5, Queries: 5, Hits: 5, Preempted: 5, Finished: 5}
		r := &Recording{Rows: []Row{same, same, same}}
		assert.Empty(t, r.restarts(), name)
		change(&r.Rows[1])
		assert.Equal(t, []int{1}, r.restarts(), name)
	}
}

func TestTheTokensOfARequestInATime(t *testing.T) {
	// Five tokens: at 2, 2.5, 3, 3.5 and 4.
	q := Request{First: 2, Last: 4, Output: 5}
	for _, test := range []struct{ from, to, want float64 }{
		{0, 2, 0}, {2, 2.4, 0}, {2, 2.5, 1}, {2.5, 3.6, 2}, {0, 100, 4}, {4, 100, 0},
	} {
		assert.InDelta(t, test.want, q.gaps(test.from, test.to), 0, "%v to %v", test.from, test.to)
	}
	// Whatever the parts, they add up to the whole.
	q = Request{First: 0.123, Last: 9.87, Output: 101}
	sum := 0.0
	for x := 0.0; x < 12; x += 0.37 {
		sum += q.gaps(x, x+0.37)
	}
	assert.InDelta(t, 100, sum, 0)
	// Tokens that came together, and a single one.
	assert.InDelta(t, 3, (&Request{First: 1, Last: 1, Output: 4}).gaps(0, 1), 0)
	assert.InDelta(t, 0, (&Request{First: 1, Last: 1, Output: 1}).gaps(0, 1), 0)
}

func TestLagAndCoverage(t *testing.T) {
	r := at(0, 1, 2, 3, 4)
	r.Counts.Finished = true
	for i := range r.Rows {
		r.Rows[i].Finished, r.Rows[i].Generated = float64(i), float64(10*i)
	}
	// The three end at 0.3, 1.3 and 2.3: the counter shows each 0.7 s later.
	for i := range 3 {
		end := float64(i) + 0.3
		r.Requests = append(r.Requests, Request{Sent: end - 0.3, First: end - 0.2, Last: end, Output: 5})
	}
	assert.InDelta(t, 0.7, r.Lag(), 1e-9)
	assert.InDelta(t, 15.0/40, r.Coverage(), 1e-9)
	r.Requests = nil
	assert.True(t, math.IsNaN(r.Lag()))
	assert.True(t, math.IsNaN(r.Coverage()))
}

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.25: 1, 0.5: 2, 0.51: 3, 1: 4} {
		assert.InDelta(t, want, Quantile(values, q), 0, "%v", q)
	}
	assert.Equal(t, []float64{4, 1, 3, 2}, values)
	require.True(t, math.IsNaN(Quantile(nil, 0.5)))
}
