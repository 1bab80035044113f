package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// A service of long prompts is beyond the documented defaults from its first
// request on. That is harm until it has lasted for relearn_after, and then its
// usual.
func TestWhatWasAlwaysSlowBecomesUsual(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	server := steady("one:8000", noon)
	server.firstToken = 3
	require.Equal(t, 1.0, p.watch(server, 50*time.Minute)["condition=degraded"])
	require.Equal(t, 1.0, p.watch(server, 20*time.Minute)["condition=healthy"])
	require.Equal(t, 1.0, p.watch(server, 3*time.Hour)["condition=healthy"])
	changes := p.changes()
	assert.Contains(t, changes[len(changes)-1].Message, "taken as usual from now on")
	server.firstToken = 5
	assert.Equal(t, 1.0, p.watch(server, 5*time.Minute)["condition=degraded"])
	p.end()
}
