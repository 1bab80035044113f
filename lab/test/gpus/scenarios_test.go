package gpus

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

const folder = "../../../examples/scenarios/"

// wanted has the detail of each file about GPUs; empty is none: what the exporter shows proves
// nothing. The onset is when steps become slow.
var wanted = map[string]struct {
	detail string
	onset  time.Duration
}{
	"gpu-power-cap":         {"power_cap", 10 * time.Minute},
	"gpu-hot":               {"thermal", 10 * time.Minute},
	"gpu-memory-errors":     {"memory_error", 10 * time.Minute},
	"gpu-link-errors":       {"interconnect", 10 * time.Minute},
	"gpu-clocks-low":        {"clocks_low", 10 * time.Minute},
	"gpu-clean":             {notThrottled, 10 * time.Minute},
	"gpu-throttled-before":  {notThrottled, 12 * time.Minute},
	"gpu-no-counters":       {"", 10 * time.Minute},
	"gpu-shared":            {"", 10 * time.Minute},
	"gpu-partition":         {"", 10 * time.Minute},
	"gpu-exporter-restarts": {"power_cap", 10 * time.Minute},
	"gpu-amd":               {"power_cap", 10 * time.Minute},
}

// In the quick run these are played.
var few = []string{"gpu-power-cap", "gpu-clean", "gpu-no-counters", "gpu-amd"}

func load(t *testing.T, name string) *history.Story {
	t.Helper()
	s, err := scenario.Load(folder + name + ".yaml")
	require.NoError(t, err)
	story := history.FromScenario(&s)
	story.Every = 10 * time.Second
	return story
}

// Through receivers and the processor, each file is reported with the detail of what was done to
// its GPUs, and with no other at any time.
func TestEveryFileHasItsDetail(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob(folder + "gpu-*.yaml")
	require.NoError(t, err)
	require.Len(t, files, len(wanted))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		want, there := wanted[name]
		require.True(t, there, name)
		if testing.Short() && !slices.Contains(few, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := play(t, load(t, name))
			reports := a.all["vllm-0:8000"]
			require.NotEmpty(t, reports)
			require.NotEmpty(t, a.seen, "metrics of the exporter")
			within := details(reports, want.onset, 20*time.Minute)
			total := 0
			for _, n := range within {
				total += n
			}
			require.Greater(t, total, 20, "slow_steps is reported: %v", within)
			for detail, n := range within {
				if detail != want.detail && detail != "" {
					assert.Fail(t, "a wrong detail", "%s in %d of %d reports", detail, n, total)
				}
			}
			// The exporter's samples are 30 s apart, so that the first report can be without.
			assert.GreaterOrEqual(t, within[want.detail], total*7/10, "%v", within)
			assert.Empty(t, details(reports, 0, want.onset), "before it")
		})
	}
}

// The metrics of a server's GPUs are those of the simulated ones.
func TestTheMetricsOfTheGPUsOfAnEngine(t *testing.T) {
	race.SkipSequential(t)
	story := load(t, "gpu-power-cap")
	story.Length = 18 * time.Minute
	a := play(t, story)
	reports := a.all["vllm-0:8000"]
	require.NotEmpty(t, reports)
	at := func(minute int) map[string]float64 {
		for _, r := range reports {
			if r.at >= time.Duration(minute)*time.Minute {
				return r.values
			}
		}
		t.Fatalf("no report at minute %d", minute)
		return nil
	}
	before, capped := at(9), at(17)
	assert.LessOrEqual(t, capped["vllm.gpu.power"], 175.1, "the limit is a quarter of 700 W")
	assert.Greater(t, before["vllm.gpu.power"], 250.0)
	assert.InDelta(t, 0.9*81559*1048576, before["vllm.gpu.memory_usage"], 1e9)
	assert.InDelta(t, 1, before["vllm.gpu.utilization"], 0.1)
	// Some 180 tokens for each of six requests per second.
	assert.InDelta(t, before["vllm.gpu.power"]/(6*175), before["vllm.energy_per_generated_token"], 0.25*before["vllm.energy_per_generated_token"])
}
