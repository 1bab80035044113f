package diagnosis

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stage"
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
	l.line(&diagnose.Transition{Attributes: []collect.Attribute{{Name: "model_name", Value: long}}}, stage.ServerFields(resource))
	require.Equal(t, 1, logs.Len())
	line := logs.All()[0]
	assert.True(t, utf8.ValidString(line.ContextMap()["model_name"].(string)))
	assert.True(t, strings.HasSuffix(line.ContextMap()["model_name"].(string), "... (8388608 bytes)"))
	assert.Less(t, len(fmt.Sprint(line.ContextMap())), 20_000)
	resource.PutStr("service.instance.id", long)
	assert.Less(t, len(fmt.Sprint(stage.ServerFields(resource))), 1000)
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
			l.line(&diagnose.Transition{To: diagnose.Verdict{Condition: c, Severity: described.Severity}}, nil)
		}
		require.Equal(t, int(diagnose.NumConditions), logs.Len())
		for _, entry := range logs.All() {
			assert.Empty(t, entry.Stack, entry.Message)
			assert.LessOrEqual(t, entry.Level, zapcore.WarnLevel, entry.Message)
		}
	}
}
