package vllmprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// relearned are the lines about upgrades.
func (i *instance) relearned() (lines []map[string]any) {
	for _, entry := range i.logs.All() {
		if strings.Contains(entry.Message, "of their signals are learned again") {
			fields := entry.ContextMap()
			fields["message"] = entry.Message
			lines = append(lines, fields)
		}
	}
	return lines
}

// restart makes the server a new process of a version.
func (l *load) restart(version string) *load {
	l.version, l.requests, l.firstTokens, l.gaps = version, 0, 0, 0
	return l
}

// An upgrade to 0.17 makes the time to the first token longer, because it begins earlier.
// It is not harm, and one line says why.
func TestAnUpgradeThatChangesTheMeaningOfAMetricIsNoHarm(t *testing.T) {
	for name, test := range map[string]struct {
		from, to string
		lines    int
	}{
		"across the change":           {"0.16.0", "0.17.0", 1},
		"a restart of one version":    {"0.16.0", "0.16.0", 0},
		"the version was not known":   {"", "0.17.0", 0},
		"a version without a meaning": {"0.16.0", "0.16.1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
			p.begin(componenttest.NewNopHost())
			server := steady("one:8000", noon)
			server.version, server.engines = test.from, 2
			p.watch(server, 15*time.Minute)
			server.restart(test.to).slower()
			harmed := p.watch(server, 12*time.Minute)["condition=degraded"] == 1
			assert.Equal(t, test.lines == 0, harmed, "0.1 s was usual, and it is 0.5 s now")
			lines := p.relearned()
			require.Len(t, lines, test.lines, "one line for both engines")
			if test.lines == 1 {
				line := lines[0]
				assert.Equal(t, []any{test.from, test.to, int64(2), "one:8000"}, []any{line["previous_version"], line["version"], line["engines"], line["service.instance.id"]})
				assert.Contains(t, line["signals"], "time_to_first_token_mean")
				assert.NotContains(t, line["signals"], "step_time_factor")
				assert.Contains(t, line["message"], "0.16.0 to 0.17.0")
				assert.Contains(t, line["message"], catalog.DefectsPage)
			}
			p.end()
		})
	}
}

// The version is in the storage, so an upgrade while the collector is down is not harm.
func TestAnUpgradeWhileTheCollectorIsDownIsNoHarm(t *testing.T) {
	for version, want := range map[string]bool{"0.16.0": true, "0.17.0": false} {
		folder := t.TempDir()
		server := steady("one:8000", noon)
		server.version = "0.16.0"
		before := newInstance(t, remembering(), &archive.Shared{})
		before.begin(files(t, folder))
		before.watch(server, 10*time.Minute)
		before.end()

		server.at = server.at.Add(10 * time.Minute)
		after := newInstance(t, remembering(), &archive.Shared{})
		after.begin(files(t, folder))
		assert.Equal(t, want, after.continues(server.restart(version)), version)
		assert.Len(t, after.relearned(), map[bool]int{true: 0, false: 1}[want], version)
		after.end()
	}
}

// A server of an old version whose clients all left, or whose engine stands still: it is no
// error, because it may be nothing, and the line names both.
func TestAStandstillOfAnOldVersionIsWorded(t *testing.T) {
	for version, want := range map[string]string{"0.10.1": "unknown", "0.10.2": "stalled", "": "unknown"} {
		p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
		p.begin(componenttest.NewNopHost())
		server := steady("one:8000", noon)
		server.version = version
		p.watch(server, 10*time.Minute)
		server.stalled = true
		var reported map[string]float64
		for range 12 {
			server.waiting = -15 // and scrape adds what came
			reported = p.diagnoses(server)
		}
		assert.Equal(t, 1.0, reported["condition="+want], "%q: %v", version, reported)
		changes := p.changes()
		require.NotEmpty(t, changes)
		last := changes[len(changes)-1]
		if want == "unknown" {
			assert.Equal(t, zapcore.WarnLevel, last.Level)
			assert.Contains(t, last.Message, "The engine has stalled, or its gauges froze when all its requests were aborted")
			assert.Contains(t, last.Message, "Send one request")
		}
		p.end()
	}
}
