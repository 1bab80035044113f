package stages

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// Names and values come from servers. However long they are, a line is short.
func TestLongAttributesAreCutInLines(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := changeLog{logger: zap.New(core), emits: func(string) bool { return true }}
	resource := pcommon.NewMap()
	long := strings.Repeat("\u00e9", 4<<20)
	for n := range 100 {
		resource.PutStr(fmt.Sprintf("%d%s", n, long[:1000]), long)
	}
	l.logs(&diagnose.Transition{Attributes: []input.Attribute{{Name: "model_name", Value: long}}}, ServerFields(resource))
	require.Equal(t, 1, logs.Len())
	line := logs.All()[0]
	assert.True(t, utf8.ValidString(line.ContextMap()["model_name"].(string)))
	assert.True(t, strings.HasSuffix(line.ContextMap()["model_name"].(string), "... (8388608 bytes)"))
	assert.Less(t, len(fmt.Sprint(line.ContextMap())), 20_000)
	resource.PutStr("service.instance.id", long)
	assert.Less(t, len(fmt.Sprint(ServerFields(resource))), 1000)
}

// JSON leaves U+009B, with which a command of a terminal can begin, and U+202E, after which the line is
// read from right to left, as they are.
func TestNamesInLinesArePrintable(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	l := changeLog{logger: zap.New(core), emits: func(string) bool { return true }}
	const hostile = "a\u009b31m\u202eb\x1b[2J\n\u2066\xffc\u00e9 d"
	for _, name := range []string{"service.instance.id", "host.name"} {
		resource := pcommon.NewMap()
		resource.PutStr(name, hostile)
		l.logs(&diagnose.Transition{Attributes: []input.Attribute{{Name: "model_name" + hostile, Value: hostile}}, Failure: hostile}, ServerFields(resource))
	}
	require.Equal(t, 2, logs.Len())
	for _, line := range logs.All() {
		said := fmt.Sprint(line.Message, line.ContextMap())
		assert.NotContains(t, said, "\n")
		assert.Equal(t, -1, strings.IndexFunc(said, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }), "%q", said)
		assert.Equal(t, 4, strings.Count(said, "a?31m?b?[2J???c\u00e9 d"), "%q", said)
	}
}

// The lines about servers have no stack of this program, whatever the collector's logs
// are set to, and are no errors of the collector.
func TestDiagnosesHaveNoStackTraces(t *testing.T) {
	for _, development := range []bool{false, true} {
		level := zapcore.ErrorLevel // what zap does in production
		if development {
			level = zapcore.WarnLevel
		}
		core, logs := observer.New(zapcore.InfoLevel)
		l := changeLog{logger: withoutStacks(zap.New(core, zap.AddStacktrace(level))), emits: func(string) bool { return true }}
		for c := range diagnose.NumConditions {
			described, _ := catalog.ConditionByName(c.String())
			l.logs(&diagnose.Transition{To: diagnose.Verdict{Condition: c, Severity: described.Severity}}, nil)
		}
		require.Equal(t, int(diagnose.NumConditions), logs.Len())
		for _, entry := range logs.All() {
			assert.Empty(t, entry.Stack, entry.Message)
			assert.LessOrEqual(t, entry.Level, zapcore.WarnLevel, entry.Message)
		}
	}
}

// logs logs one change.
func (l *changeLog) logs(t *diagnose.Transition, server []zap.Field) {
	said := l.message(t, pcommon.NewMap())
	l.line(t, &said, server)
}

// newLog returns a log, its lines and the telemetry that counts what has no line.
func newLog(t *testing.T) (*changeLog, *observer.ObservedLogs, *componenttest.Telemetry) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	counted := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, counted.Shutdown(context.WithoutCancel(t.Context()))) })
	own, err := NewTelemetry(counted.NewTelemetrySettings(), component.MustNewID("vllm"))
	require.NoError(t, err)
	return &changeLog{logger: zap.New(core), telemetry: own, relearnAfter: time.Hour, emits: func(string) bool { return true }}, logs, counted
}

// changed is a change from one condition to another, with their severities.
func changed(from, to diagnose.Condition) diagnose.Transition {
	verdict := func(c diagnose.Condition) diagnose.Verdict {
		described, _ := catalog.ConditionByName(c.String())
		return diagnose.Verdict{Condition: c, Severity: described.Severity}
	}
	return diagnose.Transition{From: verdict(from), To: verdict(to)}
}

// A server with a thousand engines that become idle still says what the one does that stalls.
func TestHarmIsSaidFirst(t *testing.T) {
	t.Parallel()
	l, _, _ := newLog(t)
	changes := append(slices.Repeat([]diagnose.Transition{changed(diagnose.Healthy, diagnose.Idle)}, 1000), changed(diagnose.Healthy, diagnose.Stalled))
	said := l.write(t.Context(), changes, "", pcommon.NewMap(), time.Unix(1, 0))
	assert.Contains(t, said[0].Sentence, "has stalled")
	assert.LessOrEqual(t, len(said), 1+message.Most)
	continues := changed(diagnose.Healthy, diagnose.Healthy)
	continues.Continues = true
	said = l.write(t.Context(), []diagnose.Transition{continues, changed(diagnose.Healthy, diagnose.Stalled)}, "", pcommon.NewMap(), time.Unix(1, 0))
	assert.Len(t, said, 1, "the newest of an engine counts")
}

// In one minute 100 changes have a line, and 100 more if they are into or out of harm. The
// others are counted, and one line sums them up when the next minute brings a change.
func TestAStormOfChangesIsSummedUp(t *testing.T) {
	t.Parallel()
	l, logs, counted := newLog(t)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	write := func(after time.Duration, changes ...diagnose.Transition) {
		l.write(t.Context(), changes, "", pcommon.NewMap(), at.Add(after))
	}
	idle := slices.Repeat([]diagnose.Transition{changed(diagnose.Healthy, diagnose.Idle)}, 60)
	write(0, idle...)
	write(time.Second, idle...)
	assert.Equal(t, 100, logs.Len(), "20 of the 120 have no line")
	worse, better := changed(diagnose.Healthy, diagnose.Degraded), changed(diagnose.Degraded, diagnose.Healthy)
	write(2*time.Second, slices.Repeat([]diagnose.Transition{worse}, 70)...)
	write(3*time.Second, slices.Repeat([]diagnose.Transition{better}, 40)...)
	assert.Equal(t, 200, logs.Len(), "10 of the 110 have no line")
	metadatatest.AssertEqualProcessorVllmUnloggedChanges(t, counted, []metricdata.DataPoint[int64]{{Value: 30}}, metricdatatest.IgnoreTimestamp())

	write(time.Minute-1, worse)
	assert.Equal(t, 200, logs.Len(), "the minute has not passed")
	logs.TakeAll()
	write(time.Minute, worse)
	lines := logs.TakeAll()
	require.Len(t, lines, 2)
	assert.Contains(t, lines[0].Message, "diagnosis: 31 more changes within a minute")
	assert.Equal(t, map[string]any{"now_idle": int64(20), "now_healthy": int64(10), "now_degraded": int64(1)}, lines[0].ContextMap())
	assert.Equal(t, "degraded", lines[1].ContextMap()["condition"])

	write(2*time.Minute, worse)
	assert.Equal(t, 1, logs.Len(), "nothing was left without a line in that minute")
	// A clock that is set back begins a new minute at once.
	write(2*time.Minute, slices.Repeat([]diagnose.Transition{worse}, 99)...)
	logs.TakeAll()
	write(-time.Hour, worse)
	assert.Equal(t, 1, logs.Len())
}

// What an operator would read as the same has no line, and does not hide what follows.
func TestOnlyNewsHasALine(t *testing.T) {
	t.Parallel()
	l, logs, _ := newLog(t)
	resource := pcommon.NewMap()
	resource.PutStr("service.instance.id", "vllm-0:8000")
	l.write(t.Context(), []diagnose.Transition{
		changed(diagnose.Healthy, diagnose.Healthy), changed(diagnose.Healthy, diagnose.Stalled), changed(diagnose.Stalled, diagnose.Healthy),
	}, "", resource, time.Unix(1, 0))
	require.Equal(t, 2, logs.Len())
	for _, line := range logs.All() {
		assert.Equal(t, "vllm-0:8000", line.ContextMap()["service.instance.id"], "each line names the server")
	}
}

// Fields that a change has nothing for are left out of its line.
func TestALineHasTheFieldsOfItsChange(t *testing.T) {
	t.Parallel()
	always := []string{"condition", "previous_condition", "severity", "at", "since", "runbook"}
	explained := changed(diagnose.Healthy, diagnose.Degraded)
	explained.To.Explained, explained.To.Primary = true, diagnose.PrefillHeavy
	explained.Details[diagnose.PrefillHeavy] = "prompts_grew"
	explained.To.Contributing[diagnose.DecodeLoad] = true
	asksForMore := explained
	asksForMore.To.Severity = 1
	failing := changed(diagnose.Healthy, diagnose.Failing)
	failing.To.Objective, failing.Missed = "ttft", 0.25
	noticed := changed(diagnose.Healthy, diagnose.Healthy)
	noticed.To.Severity, noticed.To.Notices[diagnose.WorkloadShift] = 1, true
	unread := changed(diagnose.Healthy, diagnose.Unreachable)
	unread.Failure = "timeout"
	withSignals := changed(diagnose.Healthy, diagnose.Degraded)
	withSignals.Signals, withSignals.Usual = signal.Unknown(), signal.Unknown()
	withSignals.Signals[signal.TimeToFirstToken] = 3
	quiet := changed(diagnose.Degraded, diagnose.Healthy)
	for _, transition := range []*diagnose.Transition{&explained, &asksForMore, &failing, &noticed, &unread, &quiet} {
		transition.Signals, transition.Usual = signal.Unknown(), signal.Unknown()
	}
	for name, test := range map[string]struct {
		change diagnose.Transition
		more   []string
	}{
		"harm with a cause":     {explained, []string{"reference", "cause", "detail", "not_separable", "contributing", "next"}},
		"harm that is a notice": {asksForMore, []string{"reference", "cause", "detail", "not_separable", "contributing", "next"}},
		"a missed objective":    {failing, []string{"reference", "objective", "missed_share", "next"}},
		"a notice":              {noticed, []string{"notices", "next"}},
		"an unreadable server":  {unread, []string{"scrape_failure", "next"}},
		"the end of harm":       {quiet, nil},
		"harm with evidence":    {withSignals, []string{"reference", "evidence", "next"}},
	} {
		l, logs, _ := newLog(t)
		l.logs(&test.change, nil)
		require.Equal(t, 1, logs.Len(), name)
		got := slices.Collect(maps.Keys(logs.All()[0].ContextMap()))
		assert.ElementsMatch(t, append(slices.Clone(always), test.more...), got, name)
	}
}

// Another detail of the same harm is a quiet line: it is as bad as before.
func TestAnotherDetailIsAQuietLine(t *testing.T) {
	t.Parallel()
	l, logs, _ := newLog(t)
	change := changed(diagnose.Degraded, diagnose.Degraded)
	change.To.Explained, change.To.Primary = true, diagnose.DemandExceedsCapacity
	change.Details[diagnose.DemandExceedsCapacity] = "kv"
	l.logs(&change, nil)
	change.Refined = true
	l.logs(&change, nil)
	require.Equal(t, 2, logs.Len())
	assert.Equal(t, zapcore.WarnLevel, logs.All()[0].Level)
	assert.Equal(t, zapcore.InfoLevel, logs.All()[1].Level)
	assert.Equal(t, "kv", logs.All()[1].ContextMap()["detail"])
}

// Contributing causes stand in the order of their shares.
func TestContributingCausesAreRanked(t *testing.T) {
	t.Parallel()
	l, logs, _ := newLog(t)
	change := changed(diagnose.Healthy, diagnose.Degraded)
	change.To.Contributing[diagnose.KVPressure], change.To.Contributing[diagnose.DecodeLoad] = true, true
	change.Shares = diagnose.Shares{diagnose.KVPressure: 0.2, diagnose.DecodeLoad: 0.3}
	l.logs(&change, nil)
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, []any{"decode_load", "kv_pressure"}, logs.All()[0].ContextMap()["contributing"])
}

// A board gets the values of its variables from the server and the engine. What a server calls itself is escaped, and
// left out where it is long: the board then shows all.
func TestABoardHasTheVariablesOfItsServer(t *testing.T) {
	t.Parallel()
	l := &changeLog{boards: "https://grafana.example.com/"}
	resource := pcommon.NewMap()
	resource.PutStr("service.instance.id", "a:1&var-x=y z")
	resource.PutStr("k8s.pod.name", strings.Repeat("p", 201))
	resource.PutStr("k8s.namespace.name", "chat")
	resource.PutStr("model_name", "not this")
	since := time.Date(2026, 1, 2, 3, 30, 0, 0, time.UTC)
	change := diagnose.Transition{Since: since.UnixNano(), Attributes: []input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}}}
	assert.Equal(t, fmt.Sprintf("https://grafana.example.com/d/vllm-engine?from=%d&to=now&var-namespace=chat&var-instance=a%%3A1%%26var-x%%3Dy+z&var-model=m",
		since.Add(-30*time.Minute).UnixMilli()), l.board(&change, resource))
	l.boards = ""
	assert.Empty(t, l.board(&change, resource))
	l.boards = "https://grafana.example.com/" + strings.Repeat("a", maxAddress-28)
	for _, v := range variables {
		resource.PutStr(v.attribute, strings.Repeat("\u00e9", maxShown/2))
	}
	assert.Less(t, len(l.board(&change, resource)), 2<<10, "a record would cut it")
	// The shipped board has all of them.
	shipped, err := os.ReadFile("../../../../content/grafana/suffixed/vllm-engine.json")
	require.NoError(t, err)
	var board struct {
		UID        string
		Templating struct{ List []struct{ Name string } }
	}
	require.NoError(t, json.Unmarshal(shipped, &board))
	assert.Equal(t, "vllm-engine", board.UID)
	for _, v := range variables {
		assert.Contains(t, board.Templating.List, struct{ Name string }{v.name})
	}
}
