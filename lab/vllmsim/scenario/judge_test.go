package scenario

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// recovers holds that a story of 25 minutes, in which only physics or load change,
// ends as if nothing had been done.
func recovers(s *story) {
	t, c := s.t, s.scenario.Config
	if s.scenario.Length != 25*time.Minute || len(c.Changes) == 0 || len(c.Faults) > 0 {
		return
	}
	if c.Hardware == "8b-h100" { // Its numbers are those of that model.
		keepsUp(t, s.run, after)
	}
	usual := s.undisturbed()
	for _, h := range []string{firstToken, gap, prefill, decode, whole, promptSize, outputSize} {
		assert.InEpsilon(t, usual.mean(after, h), s.mean(after, h), 0.1, h)
	}
	assert.InEpsilon(t, usual.outside(after), s.outside(after), 0.1)
	assert.InDelta(t, usual.hitShare(after), s.hitShare(after), 0.03)
}

// keepsUp is what all is well looks like.
func keepsUp(t *testing.T, r *run, p part) {
	t.Helper()
	assert.Zero(t, r.increase(p, preemptions))
	assert.Less(t, r.mean(p, queue), 0.05)
	assert.Less(t, r.mean(p, gap), 0.0125)
	assert.Less(t, r.mean(p, firstToken), 0.2)
	waits, _ := r.gauge(p, waiting)
	assert.Less(t, waits, 1.0)
	_, fullest := r.gauge(p, kvUsage)
	assert.Less(t, fullest, 0.5)
	assert.Zero(t, r.increase(p, finished, `finished_reason="error"`))
}

// dispersion is the variance of the arrivals between scrapes over their mean.
func dispersion(r *run) float64 {
	var counts []float64
	mean := 0.0
	for i := 1; i < len(r.pages); i++ {
		n := r.pages[i].sum(firstToken+"_count") - r.pages[i-1].sum(firstToken+"_count")
		counts = append(counts, n)
		mean += n
	}
	mean /= float64(len(counts))
	squares := 0.0
	for _, n := range counts {
		squares += (n - mean) * (n - mean)
	}
	return squares / float64(len(counts)) / mean
}

// restarts holds what a restart between two times is.
func restarts(t *testing.T, s *story, from, to int) {
	t.Helper()
	const started = "process_start_time_seconds"
	last := from - 20
	for at := 0; at < len(s.pages)*s.every; at += s.every {
		assert.Equal(t, at >= from && at < to, s.at(at) == nil, "at %d s", at)
	}
	first := (to/20 + 1) * 20
	assert.InDelta(t, float64(s.begin.Unix()+int64(from)), s.at(first).sum(started), 1)
	assert.Less(t, s.at(last).sum(started), float64(s.begin.Unix()))
	assert.Less(t, s.at(first).sum(finished), 0.2*s.at(last).sum(finished))
	ids, aborted := map[int]bool{}, 0
	for _, o := range s.outcomes {
		assert.False(t, ids[o.ID], "request %d ended twice", o.ID)
		ids[o.ID] = true
		if o.End == engine.EndAborted {
			assert.InDelta(t, from, o.Ended, 0.001)
			aborted++
		}
		if o.Arrived > float64(from) {
			assert.GreaterOrEqual(t, o.Arrived, float64(to))
		}
	}
	assert.Positive(t, aborted)
}
