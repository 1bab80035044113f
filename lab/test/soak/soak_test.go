//go:build e2e

package soak

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// TestAShortSoak runs everything of a soak for a moment, with two outages and a restart.
// Growth is judged only by "make soak".
func TestAShortSoak(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(t.Context(), Options{
		Collector: collector.Binary(t), Root: "../../..", Dir: dir, For: 24 * time.Second, Interval: 2 * time.Second,
		Targets: 20, Seed: 1, Patience: collector.Patience, Out: t.Output(),
	})
	require.NoError(t, err)
	assert.Empty(t, r.Failures, "%v", r.Balance.Examples)
	assert.Greater(t, r.Balance.Received, 100)
	assert.Equal(t, r.Balance.Served, r.Balance.Received+excused(r))
	assert.NotZero(t, r.Events["the collector was restarted"])
	assert.NotZero(t, r.Events["targets removed"])
	assert.FileExists(t, filepath.Join(dir, "soak.json"))
	assert.FileExists(t, filepath.Join(dir, "soak.svg"))
}

func excused(r *Result) (n int) {
	for _, count := range r.Balance.Excused {
		n += count
	}
	return n
}
