package vllmprocessor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.uber.org/zap/zapcore"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
)

// What an operator reads about an incident, from the first word to the last.
func TestAnIncidentIsLoggedInSentences(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	server := steady("one:8000", noon)
	p.watch(server, 8*time.Minute)
	require.Empty(t, p.changes(), "a new engine that is well is not news")
	server.firstToken = 3
	p.watch(server, 5*time.Minute)
	server.firstToken = 0.1
	p.watch(server, 5*time.Minute)

	lines := p.changes()
	require.GreaterOrEqual(t, len(lines), 2)
	first, last := lines[0], lines[len(lines)-1]
	assert.Equal(t, zapcore.WarnLevel, first.Level)
	assert.True(t, strings.HasPrefix(first.Message, "diagnosis: Users wait longer than they should"), first.Message)
	assert.True(t, strings.HasSuffix(first.Message, "."), first.Message)
	fields := first.ContextMap()
	for name, want := range map[string]any{
		"condition": "degraded", "previous_condition": "healthy", "severity": int64(2), "reference": "baseline",
		"service.name": "vllm", "service.instance.id": "one:8000", "engine": "0", "model_name": "m",
	} {
		assert.Equal(t, want, fields[name], name)
	}
	assert.Contains(t, fmt.Sprint(fields["evidence"]), "time_to_first_token_mean 3 s (usual 0.1)")
	assert.NotEmpty(t, fields["next"])
	assert.Contains(t, fields["runbook"], "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/")

	assert.Equal(t, zapcore.InfoLevel, last.Level)
	assert.Equal(t, "diagnosis: The engine serves its requests as it should. In the last 30 s requests waited about 0.1 s for their first token (usual 0.1 s).", last.Message)
	assert.Equal(t, "degraded", last.ContextMap()["previous_condition"])
	assert.NotContains(t, last.ContextMap(), "next", "there is nothing to do")
	for i := 1; i < len(lines); i++ {
		was, is := lines[i-1].ContextMap(), lines[i].ContextMap()
		assert.False(t, was["condition"] == is["condition"] && was["cause"] == is["cause"], "a line without a change: %s", lines[i].Message)
	}
}

// A server that cannot be judged is reported with what is missing.
func TestWhatIsMissingIsNamed(t *testing.T) {
	r := newRig(t, "")
	var text strings.Builder
	for at := 0; at <= 120; at += 15 {
		fmt.Fprintf(&text, "at %d\ngauge vllm.num_requests.running{0} 2\ncounter vllm.generation_tokens{0} %d\n", at, at*10)
	}
	r.send(text.String())
	var logged []string
	for _, entry := range r.logs.FilterMessageSnippet("diagnosis: ").All() {
		logged = append(logged, entry.Message)
	}
	assert.Equal(t, []string{"diagnosis: The engine cannot be judged: the server reports neither vllm.time_to_first_token nor vllm.inter_token_latency."}, logged)
}

// Thousands of engines that change at once do not flood the log. The summary says
// how many, and the counter counts them.
func TestAStormOfChangesIsSummedUp(t *testing.T) {
	p := newInstance(t, createDefaultConfig().(*Config), &archive.Shared{})
	p.begin(componenttest.NewNopHost())
	defer p.end()
	var servers []*load
	for n := range 250 {
		servers = append(servers, steady(fmt.Sprintf("%d:8000", n), noon))
	}
	round := func(minutes int) {
		for range 4 * minutes {
			for _, server := range servers {
				p.diagnoses(server)
			}
		}
	}
	round(7)
	require.Empty(t, p.changes())
	for _, server := range servers {
		server.firstToken = 3
	}
	round(6)
	lines := p.changes()
	summaries := 0
	perMinute := map[time.Time]int{}
	for _, line := range lines {
		if strings.Contains(line.Message, "more changes within a minute") {
			summaries++
			assert.Equal(t, "diagnosis: 150 more changes within a minute were not logged one by one; "+
				"vllm.diagnosis.condition and vllm.diagnosis.cause have all of them", line.Message)
			assert.Equal(t, map[string]any{"now_degraded": int64(150)}, line.ContextMap())
			continue
		}
		perMinute[line.ContextMap()["at"].(time.Time)]++
	}
	assert.Equal(t, 1, summaries)
	for at, n := range perMinute {
		assert.LessOrEqual(t, n, 100, at)
	}
	assert.Equal(t, int64(150), p.counted("otelcol_processor_vllm_unlogged_changes", ""))
}

// Where a resource has no name, all its attributes are in the line.
func TestAServerWithoutANameIsNamedByItsAttributes(t *testing.T) {
	r := newRig(t, "{diagnosis: {hold: 1}}")
	story := readStory(t, `
		at 0
		attribute host.name=gpu-7
		gauge vllm.num_requests.running{0} 1
		gauge vllm.engine.sleep_state{0,sleep_state=awake} 1
		histogram vllm.inter_token_latency{0} 0.05:1 inf:0 sum:0.01
		at 15
		attribute host.name=gpu-7
		gauge vllm.num_requests.running{0} 1
		gauge vllm.engine.sleep_state{0,sleep_state=awake} 1
		histogram vllm.inter_token_latency{0} 0.05:2 inf:0 sum:0.02
		at 30
		attribute host.name=gpu-7
		gauge vllm.num_requests.running{0} 0
		gauge vllm.engine.sleep_state{0,sleep_state=awake} 0
		histogram vllm.inter_token_latency{0} 0.05:2 inf:0 sum:0.02`)
	for _, call := range story.calls {
		call.input.ResourceMetrics().At(0).Resource().Attributes().Remove("service.instance.id")
		r.processor.now = func() time.Time { return call.at }
		_, err := r.processor.process(t.Context(), call.input)
		require.NoError(t, err)
	}
	entries := r.logs.FilterMessageSnippet("diagnosis: The engine sleeps").All()
	require.Len(t, entries, 1)
	assert.Equal(t, "host.name=gpu-7 service.name=vllm", entries[0].ContextMap()["resource"])
}
