package vllmprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// conditions are what was reported of a server after each of so many scrapes that failed.
func conditionsOf(i *instance, l *load, outcome string, scrapes int) (all []string) {
	i.t.Helper()
	for range scrapes {
		reported, now := i.fails(l, outcome, nil), ""
		for name, is := range reported {
			if condition, ours := strings.CutPrefix(name, "condition="); ours && is == 1 {
				now += condition
			}
		}
		all = append(all, now)
	}
	return all
}

// times is a condition so many times.
func times(condition string, n int) (all []string) {
	for range n {
		all = append(all, condition)
	}
	return all
}

// A server that was never read: what waiting can mend is a start, up to a timeout; what
// it cannot is named at once, and a page after three scrapes.
func TestAServerThatWasNeverReadIsReportedByHowItFails(t *testing.T) {
	for outcome, sentence := range map[string]string{
		"unauthorized": "401", "forbidden": "403", "not_found": "404", "dns": "name cannot be resolved", "tls": "TLS handshake fails", "plain_http": "write http:// in the endpoint",
		"not_prometheus": "not with metrics",
	} {
		t.Run(outcome, func(t *testing.T) {
			p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
			p.begin(componenttest.NewNopHost())
			defer p.end()
			server := steady("one:8000", noon)
			assert.Equal(t, []string{"unknown", "unknown", "unreachable", "unreachable"}, conditionsOf(p, server, outcome, 4))
			lines := p.changes()
			require.Len(t, lines, 2)
			assert.Contains(t, lines[0].Message, "The server cannot be read")
			assert.Contains(t, lines[0].Message, sentence)
			assert.Equal(t, outcome, lines[0].ContextMap()["scrape_failure"])
			assert.Contains(t, lines[1].Message, sentence)
			assert.Equal(t, zapcore.WarnLevel, lines[1].Level)
			assert.EqualValues(t, 3, lines[1].ContextMap()["severity"])
			assert.Equal(t, outcome, lines[1].ContextMap()["scrape_failure"])
		})
	}
	for _, outcome := range []string{"refused", "timeout", "server_error", "reset", "empty", "other", ""} {
		t.Run("starting/"+outcome, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			config.Diagnosis.StartTimeout = 2 * time.Minute
			p := newInstance(t, config, &archive.Shared{})
			p.begin(componenttest.NewNopHost())
			defer p.end()
			// 8 scrapes are 2 minutes, and the hold adds 4.
			want := append(times("starting", 8+4), times("unreachable", 4)...)
			assert.Equal(t, want, conditionsOf(p, steady("one:8000", noon), outcome, 16))
		})
	}
}

// A server that was a page before it was read for the first time is reported as well
// again in the log, too, and no line claims that it was healthy before.
func TestAServerThatIsReadAtLastEndsItsPage(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	server.own, server.began = map[string]float64{"vllm.up": 1}, true
	conditionsOf(p, server, "unauthorized", 5)
	p.watch(server, time.Minute)
	var changes []string
	for _, line := range p.changes() {
		changes = append(changes, line.ContextMap()["previous_condition"].(string)+" to "+line.ContextMap()["condition"].(string))
	}
	assert.Equal(t, []string{"unknown to unknown", "unknown to unreachable", "unreachable to healthy"}, changes)
}

// Failures that waiting can mend, three in a row, begin the count again. Single ones
// between others do not, and each reason is logged once.
func TestAServerThatFailsInSeveralWays(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	assert.Equal(t, times("unknown", 2), conditionsOf(p, server, "not_found", 2))
	conditionsOf(p, server, "refused", 3)
	assert.NotContains(t, conditionsOf(p, server, "not_found", 2), "unreachable")

	flapping := steady("two:8000", server.at)
	before := len(p.changes())
	last := ""
	for range 20 {
		last = conditionsOf(p, flapping, "not_found", 1)[0]
		conditionsOf(p, flapping, "refused", 1)
	}
	assert.Equal(t, "unreachable", last)
	assert.Len(t, p.changes()[before:], 2, "unknown, then unreachable")
}

// A server that was read and fails is unreachable with the second failed scrape, however it
// fails.
func TestAServerThatWasReadIsUnreachableAfterTwoScrapes(t *testing.T) {
	for _, outcome := range []string{"refused", "unauthorized", ""} {
		p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
		p.begin(componenttest.NewNopHost())
		server := steady("one:8000", noon)
		server.own = map[string]float64{"vllm.up": 1}
		p.watch(server, 8*time.Minute)
		assert.Equal(t, append(times("healthy", 1), times("unreachable", 3)...), conditionsOf(p, server, outcome, 4))
		p.end()
	}
}

// The collector restarts while a server is down, or a moment after it died. What is
// reported, and of which series, is what a collector without a restart reports.
func TestARestartOfTheCollectorClearsNoPage(t *testing.T) {
	for name, before := range map[string]int{"long down": 10, "failed once": 1, "dies during the restart": 0} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			server := steady("one:8000", noon)
			server.own = map[string]float64{"vllm.up": 1}
			first := newInstance(t, remembering(), &archive.Shared{})
			first.begin(files(t, folder))
			first.watch(server, 8*time.Minute)
			conditionsOf(first, server, "refused", before)
			first.end()

			after := newInstance(t, remembering(), &archive.Shared{})
			after.begin(files(t, folder))
			defer after.end()
			got := conditionsOf(after, server, "refused", 8)
			// Without a restart it is unreachable from the second failed scrape on.
			want := append(times("healthy", max(1-before, 0)), times("unreachable", 8-max(1-before, 0))...)
			assert.Equal(t, want, got)
			lines := after.changes()
			require.Len(t, lines, 1, "the new log has the page, too")
			assert.EqualValues(t, 3, lines[0].ContextMap()["severity"])
			metrics := server.failed("refused", nil)
			after.at = server.at
			metrics, err := after.process(t.Context(), metrics)
			require.NoError(t, err)
			found := 0
			for key := range points(t, takeAdded(metrics)) {
				if strings.Contains(key, "vllm.diagnosis.severity{") {
					found++
					assert.Contains(t, key, "engine=0,model_name=m")
				}
			}
			assert.Equal(t, 1, found)
			// The server comes back: the same engine, with what was learned of it.
			server.at = server.at.Add(15 * time.Second)
			assert.Equal(t, 1.0, after.watch(server, 5*time.Minute)["condition=healthy"])
			assert.True(t, after.continues(server))
			for _, line := range after.changes() {
				assert.NotContains(t, line.Message, "cannot be judged")
			}
		})
	}
}

// A server whose own health check fails is not starting because the collector is.
func TestARestartOfTheCollectorMakesNoServerStart(t *testing.T) {
	for name, storage := range map[string]bool{"with storage": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			folder, other := t.TempDir(), t.TempDir()
			if storage {
				other = folder
			}
			server := steady("one:8000", noon)
			server.own = map[string]float64{"vllm.up": 1, "vllm.healthy": 1}
			first := newInstance(t, remembering(), &archive.Shared{})
			first.begin(files(t, folder))
			first.watch(server, 20*time.Minute)
			server.own["vllm.healthy"] = 0
			require.Equal(t, 1.0, first.watch(server, 3*time.Minute)["condition=failing"])
			first.end()
			after := newInstance(t, remembering(), &archive.Shared{})
			after.begin(files(t, other))
			defer after.end()
			reported := after.watch(server, 3*time.Minute)
			if storage {
				assert.Equal(t, 1.0, reported["condition=failing"], reported)
			} else {
				assert.Equal(t, 1.0, reported["condition=starting"], reported)
			}
		})
	}
}

// A restart of the collector is not logged where the server is well.
func TestARestartOfTheCollectorIsNoNews(t *testing.T) {
	folder := t.TempDir()
	server := steady("one:8000", noon)
	server.own = map[string]float64{"vllm.up": 1}
	for range 2 {
		p := newInstance(t, remembering(), &archive.Shared{})
		p.begin(files(t, folder))
		p.watch(server, 8*time.Minute)
		assert.Empty(t, p.changes())
		p.end()
	}
}

// Without storage nothing is known of the time before.
func TestWithoutStorageARestartKnowsNothing(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	assert.Equal(t, times("starting", 8), conditionsOf(p, steady("one:8000", noon), "refused", 8))
}

// A pod that is being deleted is not a page, whatever becomes of its scrapes and of its
// requests; one that is only not ready is.
func TestARolloutIsNoPage(t *testing.T) {
	for name, terminating := range map[string]float64{"draining": 1, "not ready": 0} {
		t.Run(name, func(t *testing.T) {
			p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
			p.begin(componenttest.NewNopHost())
			defer p.end()
			server := steady("one:8000", noon)
			server.own = map[string]float64{"vllm.up": 1, "vllm.pod.ready": 1, "vllm.pod.terminating": 0}
			p.watch(server, 8*time.Minute)
			server.own["vllm.pod.ready"], server.own["vllm.pod.terminating"] = 0, terminating
			server.stalled = true
			worst := 0.0
			for range 8 {
				worst = max(worst, p.diagnoses(server)["severity"])
			}
			var reported map[string]float64
			for range 8 {
				reported = p.fails(server, "refused", map[string]float64{"vllm.pod.ready": 0, "vllm.pod.terminating": terminating})
				worst = max(worst, reported["severity"])
			}
			if terminating == 0 {
				assert.Equal(t, 3.0, worst)
				assert.Equal(t, 1.0, reported["condition=unreachable"])
				return
			}
			assert.Zero(t, worst)
			assert.Equal(t, 1.0, reported["condition=draining"])
		})
	}
}

// A page ends when its pod is deleted.
func TestAPageEndsWithItsPod(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	server.own = map[string]float64{"vllm.up": 1}
	p.watch(server, 8*time.Minute)
	conditionsOf(p, server, "refused", 8)
	reported := p.fails(server, "refused", map[string]float64{"vllm.pod.terminating": 1})
	assert.Zero(t, reported["severity"])
	assert.Equal(t, 1.0, reported["condition=draining"])
}
