package accuracy

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

func TestThePageHasAllResults(t *testing.T) {
	s, bins := twoCauses()
	s.Config = engine.Config{Seed: 42, Model: engine.Llama8B()}
	r := Report{
		Command: "make accuracy", Machine: "test", Date: "2026-01-01",
		Held:  []Result{score(s, bins, fake(s, func(float64) Reported { return degraded("slow_steps") }))},
		Tuned: []Result{score(s, bins, fake(s, oracle(bins)))},
		Alarms: Alarms{Hours: 10_000, Alarms: []Alarm{
			{Story: "healthy-1", Seed: 7, At: 100, Severity: 3, Label: "stalled"},
		}},
		HealthyKinds: map[string]float64{"bursts": 10_000}, Faults: map[string]Share{"restart": {3, 4}},
	}
	text := r.Page()
	for _, want := range []string{
		"- Date: 2026-01-01\n",
		// Both causes have the same weight, so the mean is 50 %. Two and three minutes are
		// worth 4 / (1/2 + 1/3) = 4.8 observations. By hand: (0.5 + z²/9.6 - z sqrt(0.25/4.8 +
		// z²/92.16)) / (1 + z²/4.8) is 0.1666.
		"| right cause, mean over the causes | lower bound at least 90 % | 50.0 % (16.7 % to 83.3 %) | **no**, by 73.3 points |",
		"| delay, median | at most 3 windows | 0.2 | yes |",
		"| false alarms at page severity | none | 1 in 10000 h (at most 5.6 in 10,000 h) | **no**, by 1 |",
		"| false alarms at warning severity | at most 4 in 10,000 h | 0 in 10000 h (at most 3.7 in 10,000 h) | yes |",
		"| erroring | 1 | 3 | 0.0 % |",
		"| | slow_steps |\n|---|---|\n| erroring | 3 |\n| slow_steps | **2** |\n",
		"| 8b-h100, two causes | 1 | 5 |",
		"- healthy-1 (seed 7) at 100 s, severity 3: stalled\n",
		"| restart | 3 of 4 scrapes |",
		"| two | 42 | 5 | 2 | erroring 6, slow_steps 5 | slow_steps 11 |",
		"in 100.0 % of the minutes (mean over the causes).",
		"## What is not measured",
	} {
		assert.Contains(t, text, want)
	}
}

func TestTheDumpHasALinePerScrape(t *testing.T) {
	s, bins := twoCauses()
	reported := fake(s, func(float64) Reported {
		t := degraded("slow_steps", "erroring")
		t.Signals, t.Ratios = map[string]float64{"running": 3}, map[string]float64{"running": 1.5}
		return t
	})
	var out bytes.Buffer
	require.NoError(t, dump(&out, s, bins, reported))
	lines, err := csv.NewReader(&out).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+120)
	assert.Equal(t, []string{"running", "running/reference"}, lines[0][12:])
	// At 630 s most of the window is minute 10, in which errors begin.
	assert.Equal(t, []string{"two", "620", "latency", "slow_steps"}, lines[62][:4])
	assert.Equal(t, []string{"two", "640", "answers", "erroring"}, lines[64][:4])
	assert.Equal(t, []string{"degraded", "2", "slow_steps", "", "erroring", "", "3", "1.5"}, lines[64][6:])
}
