//go:build e2e

package scale

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// TestASmallFleet runs everything of "make scale" with few engines and short intervals: the
// limits are raised as the log says, a shard is killed, all are rolled, and their number
// changes twice.
func TestASmallFleet(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(t.Context(), Options{
		Collector: collector.Binary(t), Root: "../../..", Dir: filepath.Join(dir, "run"), Engines: 60,
		Interval: 2 * time.Second, Window: 10 * time.Second, Targets: 5, Series: 300,
		Rest: 2 * time.Second, Settle: 2 * time.Second, Away: 500 * time.Millisecond, Patience: 3 * collector.Patience,
		Slack: 20 * time.Second, Out: t.Output(),
	})
	require.NoError(t, err)
	assert.Empty(t, r.Failures)
	assert.Len(t, r.Actions, 5)
	c := r.Counters
	assert.Greater(t, c.Answers, 60*5)
	assert.GreaterOrEqual(t, c.Compared, 3*c.Answers)
	assert.Positive(t, c.True)
	assert.Positive(t, r.Objective.Agree)
	// The numbers that the logs named are enough, and not more than twice what is there.
	most := 0
	for _, n := range r.Limits.Kept {
		most = max(most, n)
	}
	assert.Greater(t, r.Limits.Targets, most)
	assert.LessOrEqual(t, r.Limits.Targets, 100*(1+2*most/100))
	assert.Greater(t, r.Limits.Series, 300)
	// Each action has engines of the kinds that it must have.
	for _, o := range r.Actions {
		assert.Equal(t, 60, o.Moved.Engines+o.Restarted.Engines+o.Untouched.Engines, o.Name)
		assert.Equal(t, o.Name == killOne || o.Name == atRest, o.Untouched.Engines > 0, o.Name)
		assert.Equal(t, o.Name == resizeRolling || o.Name == resizeAtOnce, o.Moved.Engines > 0, o.Name)
	}
	assert.FileExists(t, filepath.Join(dir, "run", "scale.json"))
	assert.FileExists(t, filepath.Join(dir, "run", "scale.svg"))
}
