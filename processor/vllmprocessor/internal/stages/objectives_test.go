package stages

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

const month = objective.Duration(30 * 24 * time.Hour)

var burn = []objective.Duration{objective.Duration(time.Hour), objective.Duration(6 * time.Hour)}

func newStage(t *testing.T, all ...objective.Objective) (*Objectives, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	settings := processortest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	own, err := NewTelemetry(settings.TelemetrySettings, settings.ID)
	require.NoError(t, err)
	s, err := NewObjectives(all, month, burn, &Processor{
		Settings: settings, Telemetry: own, Now: time.Now, Every: func(time.Duration, func()) func() { return func() {} }, Each: func(func(*Server)) {}, Enabled: func(string) bool { return true },
		Archive: archive.Settings{Shared: &archive.Shared{}, Status: &archive.Status{}, Logger: settings.Logger, Now: time.Now, Every: func(time.Duration, func()) func() { return func() {} }},
	})
	require.NoError(t, err)
	return s, logs
}

func TestAThresholdInsideABucketIsLoggedAtTheStart(t *testing.T) {
	t.Parallel()
	s, logs := newStage(t, objective.Objective{
		Name: "two", Metric: "vllm.time_to_first_token", Threshold: objective.Duration(2 * time.Second), Target: 0.95,
	})
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, s.Shutdown(t.Context()))
	require.Equal(t, 1, logs.Len())
	assert.Contains(t, logs.All()[0].Message, "the threshold 2s lies inside a bucket")
}

func TestATargetThatNoFastAlertCanReachIsAWarningAtTheStart(t *testing.T) {
	t.Parallel()
	promise := func(name string, target float64) objective.Objective {
		return objective.Objective{Name: name, Metric: "vllm.time_to_first_token", Threshold: objective.Duration(2500 * time.Millisecond), Target: target}
	}
	s, logs := newStage(t, promise("p95", 0.95), promise("p90", 0.9))
	require.NoError(t, s.Start(t.Context(), componenttest.NewNopHost()))
	require.NoError(t, s.Shutdown(t.Context()))
	require.Equal(t, 1, logs.Len())
	assert.Equal(t, zapcore.WarnLevel, logs.All()[0].Level)
	assert.Contains(t, logs.All()[0].Message, `objective "p90": with the target 0.9 the burn rate is at most 10,`)
}

func TestAWarningIsLoggedOnceForItsTopicAndTheirNumberIsBounded(t *testing.T) {
	t.Parallel()
	s, logs := newStage(t)
	s.warn("a", "first")
	s.warn("a", "second")
	for i := range 1000 {
		s.warn(string(rune('b'+i)), "another")
	}
	assert.Equal(t, 100, logs.Len())
	assert.Equal(t, "first", logs.All()[0].Message)
}

func TestAnObjectiveOnAnUnknownMetricIsAnError(t *testing.T) {
	t.Parallel()
	_, err := NewObjectives([]objective.Objective{{Name: "a", Metric: "vllm.no_such"}}, month, burn, &Processor{Enabled: func(string) bool { return true }})
	assert.ErrorContains(t, err, `objective "a"`)
}

func TestAServerThatEndsGivesItsTrackersBack(t *testing.T) {
	t.Parallel()
	s, _ := newStage(t)
	begun := s.Begin(&Server{Key: "one"}, nil).(*objectivesState)
	require.True(t, begun.share.Take())
	require.Equal(t, 1, s.Trackers.Used())
	begun.End()
	assert.Zero(t, s.Trackers.Used())
}

func TestTheStageDerivesTheMetricsOfObjectives(t *testing.T) {
	t.Parallel()
	assert.True(t, (*Objectives)(nil).Derives("vllm.slo.burn_rate"))
	assert.False(t, (*Objectives)(nil).Derives("vllm.diagnosis.condition"))
}
