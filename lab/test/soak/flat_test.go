package soak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run makes samples of an hour, one each ten seconds, of which one quantity has a course.
func run(set func(s *sample, at float64)) []sample {
	var out []sample
	for at := 0.0; at <= 3600; at += 10 {
		s := sample{At: at, Goroutines: 700, Heap: 100 * mebi, Anonymous: 200 * mebi, Files: 220}
		set(&s, at)
		out = append(out, s)
	}
	return out
}

func notFlat(samples []sample) (names []string) {
	for _, t := range trends(samples, 12*time.Minute, time.Hour) {
		if !t.Flat {
			names = append(names, t.Name)
		}
	}
	return names
}

func TestWhatGrowsIsNotFlat(t *testing.T) {
	assert.Empty(t, notFlat(run(func(*sample, float64) {})))
	// A leak of one with each change of a target, which happens every two seconds.
	assert.Equal(t, []string{"goroutines"}, notFlat(run(func(s *sample, at float64) { s.Goroutines += at / 2 })))
	assert.Equal(t, []string{"open file descriptors"}, notFlat(run(func(s *sample, at float64) { s.Files += at / 2 })))
	// The state of a server with each change.
	leak := func(at float64) float64 { return 100 << 10 * at / 2 }
	assert.Equal(t, []string{"heap after collection"}, notFlat(run(func(s *sample, at float64) { s.Heap += leak(at) })))
	assert.Equal(t, []string{"resident memory without files"}, notFlat(run(func(s *sample, at float64) { s.Anonymous += leak(at) })))
}

func TestWhatMovesIsFlat(t *testing.T) {
	// An outage every minute, in which much more is used.
	assert.Empty(t, notFlat(run(func(s *sample, at float64) {
		if int(at)%60 < 20 {
			s.Goroutines, s.Heap, s.Anonymous, s.Files = 2*s.Goroutines, 2*s.Heap, 2*s.Anonymous, 2*s.Files
		}
	})), "outages")
	assert.Empty(t, notFlat(run(func(s *sample, at float64) {
		if at < 600 {
			s.Heap, s.Goroutines = at*1e5, at
		}
	})), "the warm-up")
	assert.Empty(t, notFlat(run(func(s *sample, at float64) { s.Heap -= at * 1e4 })), "less and less")
}

func TestTheSlopeIsPerHour(t *testing.T) {
	all := trends(run(func(s *sample, at float64) { s.Goroutines = 1000 + at/36 }), 12*time.Minute, time.Hour)
	assert.InDelta(t, 100, all[0].Slope, 2)
	assert.InDelta(t, 0.05*all[0].First+20, all[0].Allowed, 1e-9)
	// From 12 to 28 and from 44 to 60 minutes: the medians are at 20 and 52.
	assert.InDelta(t, 1000+100.0*20/60, all[0].First, 0.5)
	assert.InDelta(t, 1000+100.0*52/60, all[0].Last, 0.5)
}

// Without numbers nothing is proved.
func TestUnknownNumbersAreNotFlat(t *testing.T) {
	assert.Equal(t, []string{"goroutines", "heap after collection"}, notFlat(run(func(s *sample, _ float64) { s.Goroutines, s.Heap = -1, -1 })))
	assert.Len(t, notFlat(nil), len(quantities))
	for _, one := range trends(nil, 0, time.Hour) {
		assert.False(t, one.Known)
	}
	assert.True(t, trends(run(func(*sample, float64) {}), 0, time.Hour)[0].Known)
}

func TestThePlanKeepsItsOrderAndEndsInTime(t *testing.T) {
	for _, total := range []time.Duration{20 * time.Second, time.Minute, 5 * time.Minute, time.Hour} {
		s := newSchedule(total)
		require.Less(t, s.warm, s.active, total)
		require.Less(t, s.active, total, total)
		counts := map[action]int{}
		failing := false
		var last, restarted time.Duration
		for _, one := range s.steps {
			require.GreaterOrEqual(t, one.at, last, total)
			require.Less(t, one.at, s.active, total)
			last = one.at
			counts[one.what]++
			switch one.what {
			case fail:
				require.False(t, failing, "two outages at a time")
				failing = true
			case restore:
				failing = false
			case restart:
				require.True(t, failing, "the restart is during an outage")
				restarted = one.at
			case reload:
				require.Greater(t, one.at, restarted)
			}
		}
		assert.False(t, failing, "an outage does not end")
		assert.Equal(t, 1, counts[restart], total)
		assert.Less(t, restarted, s.warm, total)
		assert.Equal(t, counts[fail], counts[restore], total)
		if total >= 5*time.Minute {
			assert.GreaterOrEqual(t, counts[fail], len(outages), "each kind of outage")
			assert.GreaterOrEqual(t, counts[reload], 3, total)
		}
		if total >= time.Minute {
			for _, what := range []action{churn, disturb, changeEngines, changeModel} {
				assert.GreaterOrEqual(t, counts[what], 4, "%s: %d", total, what)
			}
		}
	}
	assert.Greater(t, len(newSchedule(time.Hour).steps), 5000)
}
