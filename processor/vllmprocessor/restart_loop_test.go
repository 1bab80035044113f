package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// A server that restarts once is starting and then well. One that restarts again
// and again is not starting for ever, and never well.
func TestAServerThatRestartsAgainAndAgainIsNotStarting(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	server := steady("one:8000", noon)
	restart := func() { server.requests, server.firstTokens, server.gaps = 0, 0, 0 }
	require.Equal(t, 1.0, p.watch(server, 10*time.Minute)["condition=healthy"])
	restart()
	require.Equal(t, 1.0, p.watch(server, 3*time.Minute)["condition=starting"])
	require.Equal(t, 1.0, p.watch(server, 5*time.Minute)["condition=healthy"])
	for n := range 60 { // two hours, longer than relearn_after
		restart()
		reported := p.watch(server, 2*time.Minute)
		switch {
		case n < 2:
			assert.Equal(t, 1.0, reported["condition=starting"], n)
		default:
			assert.Equal(t, 1.0, reported["condition=degraded"], n)
			assert.Equal(t, 1.0, reported["cause=restarting"], n)
		}
	}
	require.Equal(t, 1.0, p.watch(server, 5*time.Minute)["condition=healthy"], "it stays up")
	p.end()
}
