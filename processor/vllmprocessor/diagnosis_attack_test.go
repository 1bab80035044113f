package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// becomes passes scrapes through until the diagnosis reports something, and returns how long that
// took; more than within where it never did.
func (i *instance) becomes(l *load, series string, within time.Duration) (after time.Duration) {
	i.t.Helper()
	for after < within {
		after += l.interval()
		if i.diagnoses(l)[series] == 1 {
			return after
		}
	}
	return within + 1
}

// A restart of the collector, and one of the server, in the middle of a fault: the fault is
// reported again within minutes, does not become usual, and ends.
func TestAFaultOutlastsARestart(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := steady("one:8000", noon)
	p := newInstance(t, remembering(), &archive.Shared{})
	p.begin(files(t, folder))
	p.watch(server, 20*time.Minute)
	server.gap = 0.05
	require.Equal(t, 1.0, p.watch(server, 10*time.Minute)["cause=slow_steps"])
	p.end()

	server.at = server.at.Add(time.Minute)
	p = newInstance(t, remembering(), &archive.Shared{})
	p.begin(files(t, folder))
	assert.LessOrEqual(t, p.becomes(server, "cause=slow_steps", 10*time.Minute), 4*time.Minute)
	require.Equal(t, 1.0, p.watch(server, 30*time.Minute)["cause=slow_steps"])

	server.requests, server.firstTokens, server.gaps = 0, 0, 0
	assert.LessOrEqual(t, p.becomes(server, "condition=starting", 10*time.Minute), 2*time.Minute)
	assert.LessOrEqual(t, p.becomes(server, "condition=degraded", 10*time.Minute), 4*time.Minute)
	server.gap = 0.02
	assert.LessOrEqual(t, p.becomes(server, "condition=healthy", 10*time.Minute), 4*time.Minute)
	p.end()
}

// The causes of a harm are reported until its end is reported. A record without a cause, minutes after
// a fault was mended, would make an operator search for another fault.
func TestACauseIsReportedUntilTheHarmHasEnded(t *testing.T) {
	t.Parallel()
	for _, hold := range []int{1, 2, 10} {
		for _, every := range []time.Duration{time.Second, 15 * time.Second, time.Minute} {
			config := createDefaultConfig().(*Config)
			config.Diagnosis.Hold = hold
			p := newInstance(t, config, &archive.Shared{})
			p.begin(componenttest.NewNopHost())
			server := steady("one:8000", noon)
			server.every = every
			p.watch(server, 12*time.Minute)
			server.gap = 0.05
			require.Equal(t, 1.0, p.watch(server, 15*time.Minute)["cause=slow_steps"])
			server.gap = 0.02
			for range 15 * time.Minute / every {
				reported := p.diagnoses(server)
				require.InDelta(t, reported["condition=degraded"], reported["cause=slow_steps"], 0, "hold %d, every %s", hold, every)
			}
			changes := p.changes()
			require.Len(t, changes, 2, "one record of the fault, and one of its end")
			assert.Contains(t, changes[1].Message, "serves its requests as it should")
			p.end()
		}
	}
}

// The clock of the machine jumps: nothing is reported, learning goes on, and a fault is found afterwards.
func TestAClockThatJumpsIsNoFault(t *testing.T) {
	t.Parallel()
	for _, jump := range []time.Duration{-24 * time.Hour, -time.Hour, 20 * time.Minute, time.Hour, 24 * time.Hour} {
		store := &memory{}
		p := newInstance(t, remembering(), &archive.Shared{})
		p.begin(hostWith{stateID, store})
		server := steady("one:8000", noon)
		p.watch(server, 20*time.Minute)
		server.at = server.at.Add(jump)
		assert.Zero(t, p.watch(server, 30*time.Minute)["severity"], jump)
		assert.Empty(t, p.changes(), jump)
		server.gap = 0.05
		assert.LessOrEqual(t, p.becomes(server, "cause=slow_steps", 10*time.Minute), 4*time.Minute, jump)
		p.end()
		saved, err := archive.Decode(store.data["baselines.1"])
		require.NoError(t, err)
		require.Len(t, saved, 1)
		for _, state := range saved {
			baseline, sound := signal.DecodeBaseline(state)
			require.True(t, sound)
			assert.Greater(t, baseline.Windows, 40, "it learns on after a jump by %s", jump)
		}
	}
}

// A week of a constant load, and of one that follows the hours of the day: nothing is reported, what
// is kept does not grow, and a fault on the last day is found as on the first.
func TestAWeekOfHealthyLoadLeavesNothing(t *testing.T) {
	race.SkipSequential(t)
	t.Parallel()
	for name, rate := range map[string]func(hour int) float64{
		"constant": func(int) float64 { return 1 },
		"by day":   func(hour int) float64 { return []float64{1, 1.2, 1.5, 1.9, 2, 1.8, 1.4, 1.1}[hour/3%8] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := &memory{}
			p := newInstance(t, remembering(), &archive.Shared{})
			p.begin(hostWith{stateID, store})
			server := steady("one:8000", noon)
			server.every = 30 * time.Second
			size := func() int {
				p.diagnosis().Archive.Save(t.Context())
				return len(store.data["baselines.1"])
			}
			first := 0
			for hour := range 7 * 24 {
				server.rate = rate(hour)
				p.watch(server, time.Hour)
				if hour == 24 {
					first = size()
				}
			}
			for _, change := range p.changes() {
				assert.NotContains(t, change.Message, "Users wait")
			}
			assert.InDelta(t, first, size(), 200, "bytes; numbers have more or fewer digits")
			server.gap = 0.05
			assert.LessOrEqual(t, p.becomes(server, "cause=slow_steps", 10*time.Minute), 4*time.Minute)
			p.end()
		})
	}
}
