package traffic

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

var sharedFolder = flag.String("shared", "../../../../shared", "the folder with the published traces")

// trace reads a published trace. They are not part of this repository.
func trace(tb testing.TB, name string) *engine.Traffic {
	tb.Helper()
	path := filepath.Join(*sharedFolder, "traces", name+".csv.gz")
	if _, err := os.Stat(path); err != nil {
		tb.Skipf("no published traces: %s is absent; -shared names another folder", path)
	}
	t, err := Read(path)
	require.NoError(tb, err)
	return t
}

func TestThePublishedTracesAreRead(t *testing.T) {
	for name, want := range map[string]struct {
		rows, conversations, blocks int
		hours                       float64
	}{
		"azure-2023-conv":        {rows: 19366, hours: 0.97},
		"mooncake-conversation":  {rows: 12031, hours: 0.98, blocks: 512},
		"servegen-large-24h":     {rows: 222095, hours: 24},
		"servegen-reasoning-24h": {rows: 232442, hours: 24},
		"servegen-small-12h":     {rows: 174185, hours: 12},
		"coding-assistant":       {rows: 5908, conversations: 144, blocks: 64},
	} {
		t.Run(name, func(t *testing.T) {
			got := trace(t, name)
			rows := len(got.Arrivals)
			for _, c := range got.Conversations {
				rows += len(c.Turns)
			}
			assert.Equal(t, want.rows, rows)
			assert.Len(t, got.Conversations, want.conversations)
			assert.Equal(t, want.blocks, got.BlockTokens)
			assert.InDelta(t, want.hours, got.Span/3600, 0.006)
		})
	}
}

// TestTheMemoryOfATraceIsAsStated holds what lab/docs/simulator.md says: 48 bytes for each
// request, and what a growing slice has in reserve.
func TestTheMemoryOfATraceIsAsStated(t *testing.T) {
	race.SkipSequential(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := trace(t, "servegen-reasoning-24h")
	runtime.GC()
	runtime.ReadMemStats(&after)
	perRow := float64(after.HeapAlloc-before.HeapAlloc) / float64(len(got.Arrivals))
	t.Logf("%.1f bytes for each request", perRow)
	assert.InDelta(t, 54, perRow, 8)
	runtime.KeepAlive(got)
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		trace(b, "servegen-reasoning-24h")
	}
}
