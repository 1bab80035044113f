package main

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// sampled are stories of the tuning set for each test run: severe faults on the models that
// the diagnosis was tuned on, and a healthy server. They are few, because each takes
// seconds.
func sampled(t *testing.T) []stories.Plan {
	t.Helper()
	all := stories.All(stories.Tuning, stories.Sizes["published"], false)
	find := func(kind stories.Kind, variant string, least float64) stories.Plan {
		best := -1
		for i := range all {
			p := &all[i]
			if p.Kind != kind || p.Variant != variant || len(p.Injections) > 0 && p.Injections[0].Wanted < least || p.Rate > 12 || p.Load > 0.8 {
				continue
			}
			if best < 0 || p.Seconds*p.Rate < all[best].Seconds*all[best].Rate {
				best = i
			}
		}
		require.GreaterOrEqual(t, best, 0, "%s %s", kind, variant)
		return all[best]
	}
	out := []stories.Plan{find(stories.Single, "stall", 0)}
	if !testing.Short() {
		out = append(out, find(stories.Single, "error_rate", 5), find(stories.Single, "bandwidth", 5), find(stories.Single, "prompt_length", 5),
			find(stories.Healthy, "traffic alone", 0))
	}
	return out
}

// The floors are loose: they refute a measure or a diagnosis that is broken, not one that
// is a little worse. When they were set, these stories had the values in the comments.
const (
	leastReported = 0.6 // 0.95
	leastRight    = 0.4 // 0.95
	mostAlarms    = 15  // 0
)

func TestASampleIsPlayed(t *testing.T) {
	race.SkipSequential(t)
	journal, err := OpenJournal(filepath.Join(t.TempDir(), "sample.jsonl"), "test")
	require.NoError(t, err)
	t.Cleanup(func() { _ = journal.Close() })
	run := Run{Player: judge.Play, Journal: journal, Workers: 2, Now: time.Now, CPU: func() float64 { return 0 }}
	plans := sampled(t)
	records, err := run.Play(t.Context(), plans)
	require.NoError(t, err)
	require.Len(t, records, len(plans))
	scores := Scores(records)
	alarms := 0
	for i := range scores {
		s := &scores[i]
		alarms += len(s.False)
		harmful := slices.ContainsFunc(s.Verdicts, func(v Verdict) bool { return v.Phase == Counted })
		assert.True(t, harmful || s.Kind != stories.Single, "%s has no harm that counts", s.Name)
		// Without a fault only the traffic itself can be too much.
		for _, v := range s.Verdicts {
			assert.True(t, s.Kind == stories.Single || v.Phase != Counted || v.Class == "demand_exceeds_capacity", "%s, minute %d: %s", s.Name, v.Minute, v.Class)
		}
		t.Logf("%s on %s, %s: %d harmful minutes, %d false alarms in %.1f h, sought %v", s.Name, s.Model, s.Traffic, len(s.Verdicts), len(s.False), s.Healthy, s.Sought)
	}
	strongest := func(s *Score, v *Verdict) bool { return s.Kind == stories.Single && v.Effect >= strongEffect }
	minutes := tally(scores, slices.Concat(stories.Inferred, stories.ReadOff), strongest)
	reported, right := minutes.pooled(ofReported).Value, minutes.pooled(ofRight).Value
	t.Logf("reported %s, right %s, %d false alarms", percent(reported), percent(right), alarms)
	assert.GreaterOrEqual(t, reported, leastReported)
	assert.GreaterOrEqual(t, right, leastRight)
	assert.LessOrEqual(t, alarms, mostAlarms)
}
