package judge

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// Past the time within which harm is to be reported, no scenario is said to be well while its users feel it.
// The limits of harm are those of real servers, and nobody asks the diagnosis for them.
func TestNoScenarioIsSaidToBeWellWhileItsUsersWait(t *testing.T) {
	race.SkipSequential(t)
	files, err := filepath.Glob(filepath.Join(scenarioFolder, "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		s, err := scenario.Load(file)
		require.NoError(t, err)
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			story, err := FromScenario(&s)
			require.NoError(t, err)
			played, err := Play(t.Context(), story)
			require.NoError(t, err)
			for server, felt := range played.Felt {
				for _, h := range Hear(felt, played.Said[server], nil, story.Interval.Seconds(), story.Length.Seconds()) {
					assert.LessOrEqual(t, h.Denied, 1.0, "server %d: %s harm (%s) from %.0f to %.0f s, worst %.3g s", server, h.Level, h.What, h.From, h.To, h.Worst)
					if h.Denied > 0 || h.Reported() {
						t.Logf("%s %s %.0f-%.0f after %.0f %s", h.Level, h.What, h.From, h.To, h.After, h.Report.Condition)
					}
				}
			}
		})
	}
}
