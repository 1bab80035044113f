package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Only requests count that all runs have, in the minute in which they arrived in the actual
// one.
func TestRequestsCountThatAllRunsHave(t *testing.T) {
	j := newJoin(3, nil)
	send := func(run, id int, arrived, first float64) {
		j.add(run, &seen{key: key{id: id}, arrived: arrived, first: first})
	}
	send(0, 1, 70, 2)
	send(2, 1, 20, 3)
	send(1, 1, 30, 1) // A closed loop: it arrived earlier in the faster runs.
	send(0, 2, 80, 9) // Not in the others.
	send(1, 3, 80, 9)
	require.Len(t, j.minutes, 2)
	assert.Zero(t, j.at(0).in[0].requests)
	for run, first := range []float64{2, 1, 3} {
		assert.InDelta(t, 1, j.at(1).in[run].requests, 0)
		assert.InDelta(t, first, j.at(1).in[run].firstToken, 0)
	}
	// Request 4 has ended in one run and is under way in another.
	send(0, 4, 100, 1)
	under := func(k key) bool { return k == key{id: 4} }
	j.forget([]func(key) bool{func(key) bool { return false }, under, under}, 120)
	assert.Len(t, j.open, 1)
	send(1, 4, 100, 1)
	send(2, 4, 100, 1)
	assert.InDelta(t, 2, j.at(1).in[0].requests, 0)
	// Of another process, the same number is another request.
	j.add(0, &seen{key: key{1, 4}, arrived: 100})
	assert.Len(t, j.open, 1)
	// One that was refused counts nowhere.
	send(0, 5, 100, 1)
	send(1, 5, 100, 1)
	j.add(2, &seen{key: key{id: 5}, arrived: 100, refused: true})
	assert.InDelta(t, 2, j.at(1).in[0].requests, 0)
}

// Attempts are one request: from the first arrival to the first token of the attempt that
// succeeded.
func TestAttemptsAreOneRequest(t *testing.T) {
	var all []*seen
	r := requests{
		workload: &engine.Workload{Retries: 2, RetryAfter: 1}, open: map[int]*attempts{},
		done: func(s *seen) { all = append(all, s) },
	}
	attempt := func(id, first int, arrived, ended float64, end engine.End, token float64) {
		r.add(&engine.Outcome{ID: id, First: first, Arrived: arrived, Ended: ended, End: end, FirstToken: token, Output: 1})
	}
	attempt(7, 7, 10, 40, engine.EndLeft, 0)
	attempt(1007, 7, 41, 71, engine.EndError, 0)
	assert.Empty(t, all)
	attempt(2007, 7, 73, 80, engine.EndStop, 2)
	require.Len(t, all, 1)
	assert.Equal(t, key{0, 7}, all[0].key)
	assert.InDelta(t, 10, all[0].arrived, 0)
	assert.InDelta(t, 65, all[0].first, 1e-9)
	assert.True(t, all[0].complete)
	// All attempts failed: the age of the request.
	attempt(8, 8, 10, 40, engine.EndLeft, 0)
	attempt(1008, 8, 41, 71, engine.EndLeft, 0)
	attempt(2008, 8, 73, 103, engine.EndLeft, 0)
	require.Len(t, all, 2)
	assert.InDelta(t, 93, all[1].first, 1e-9)
	assert.False(t, all[1].complete)
	// A client that does not try again, and one that will.
	attempt(9, 9, 100, 110, engine.EndError, 0)
	attempt(10, 10, 100, 110, engine.EndError, 0)
	r.settle(map[int]bool{10: true}, 113)
	require.Len(t, all, 3)
	assert.Equal(t, key{0, 9}, all[2].key)
	assert.Len(t, r.open, 1)
	r.close()
	assert.Len(t, all, 4)
	// A server that fell asleep has given up an attempt.
	attempt(11, 11, 100, 110, engine.EndAborted, 0)
	attempt(1011, 11, 111, 120, engine.EndStop, 2)
	require.Len(t, all, 5)
	assert.True(t, all[4].complete)
	assert.InDelta(t, 13, all[4].first, 1e-9)
}

// A process that has ended has nothing under way, so that nothing more comes of its requests;
// and no more is kept than there is room for.
func TestAJoinIsBounded(t *testing.T) {
	j := newJoin(2, nil)
	j.add(nominal, &seen{key: key{0, 1}})
	j.add(nominal, &seen{key: key{1, 1}})
	j.forgetProcesses(1)
	require.Len(t, j.open, 1)
	assert.Contains(t, j.open, key{1, 1})
	j.most = 2
	j.add(nominal, &seen{key: key{1, 2}})
	j.add(nominal, &seen{key: key{1, 3}})
	assert.Len(t, j.open, 2)
	assert.Equal(t, 1, j.dropped)
	j.add(actual, &seen{key: key{1, 2}})
	assert.InDelta(t, 1, j.at(0).in[nominal].requests, 0, "what there was room for counts")
}
