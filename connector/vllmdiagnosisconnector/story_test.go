package vllmdiagnosisconnector

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// epoch is the time of second 0 in the tests.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cause is one series of causes.
type cause struct{ name, role, detail string }

// diagnosis is what the processor reports of one engine at one time.
type diagnosis struct {
	severity  int
	condition string
	causes    []cause
	// said is what the processor says about a change to it; nil without.
	said *message.Message
}

// said is a message with all that one can have.
func said() *message.Message {
	return &message.Message{
		Since: epoch.Add(3 * time.Second).UnixNano(), Board: "https://grafana.example.com/d/vllm-engine?var-model=m",
		Words:   wording.Words{Sentence: "Users wait 3.2 s.", Next: []string{"Look.", "Act."}, Runbook: "https://wiki.example.com/prefill_heavy.md"},
		Signals: []wording.Signal{{Name: "running", Value: 12, Usual: 6}, {Name: "waiting", Value: 7, Usual: math.NaN()}},
	}
}

// server writes diagnoses as the processor's contract has it: a series is there
// from its first activation on, 1 or 0.
type server struct {
	instance   string
	attributes map[string]any
	prefix     string
	conditions []string
	causes     []cause
}

func newServer(instance string) *server {
	return &server{instance: instance, attributes: map[string]any{"engine": "0", "model_name": "m"}, prefix: "vllm.diagnosis."}
}

// reports writes the points of one batch, each as metrics of its own, so that a test
// may split them: severity, conditions, causes.
func (s *server) reports(second float64, d diagnosis) []pmetric.Metrics {
	if !slices.Contains(s.conditions, d.condition) {
		s.conditions = append(s.conditions, d.condition)
	}
	for _, c := range d.causes {
		if !slices.Contains(s.causes, c) {
			s.causes = append(s.causes, c)
		}
	}
	all := []pmetric.Metrics{s.point(second, "severity", float64(d.severity), nil)}
	if d.said != nil {
		metric := all[0].ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
		point := metric.Gauge().DataPoints().At(0)
		d.said.Attributes = point.Attributes()
		message.Write(metric.Metadata(), int64(point.Timestamp()), []message.Message{*d.said})
	}
	for _, name := range s.conditions {
		all = append(all, s.point(second, "condition", one(name == d.condition), map[string]any{"condition": name}))
	}
	for _, c := range s.causes {
		attributes := map[string]any{"cause": c.name, "role": c.role}
		if c.detail != "" {
			attributes["detail"] = c.detail
		}
		all = append(all, s.point(second, "cause", one(slices.Contains(d.causes, c)), attributes))
	}
	return all
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (s *server) point(second float64, name string, value float64, own map[string]any) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl("https://opentelemetry.io/schemas/1.30.0")
	rm.Resource().Attributes().PutStr("service.instance.id", s.instance)
	rm.Resource().Attributes().PutStr("vllm.diagnosis.condition", "any")
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName(s.prefix + name)
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(epoch.Add(time.Duration(second * float64(time.Second)))))
	point.SetDoubleValue(value)
	for _, attributes := range []map[string]any{s.attributes, own} {
		for name, value := range attributes {
			point.Attributes().PutStr(name, value.(string))
		}
	}
	return metrics
}

// joined is one batch of several.
func joined(parts ...pmetric.Metrics) pmetric.Metrics {
	all := pmetric.NewMetrics()
	for _, part := range parts {
		part.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
	}
	return all
}

// sink keeps what is delivered, and can refuse.
type sink struct {
	mu      sync.Mutex
	refuses bool
	// refusal is the error where it is not errRefused.
	refusal error
	batches []plog.Logs
}

var errRefused = errors.New("the queue is full")

func (s *sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (s *sink) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses && s.refusal != nil {
		return s.refusal
	}
	if s.refuses {
		return errRefused
	}
	s.batches = append(s.batches, logs)
	return nil
}

// records are all that were delivered, in this order.
func (s *sink) records() []plog.LogRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []plog.LogRecord
	for _, logs := range s.batches {
		for _, resource := range logs.ResourceLogs().All() {
			for _, scope := range resource.ScopeLogs().All() {
				for _, record := range scope.LogRecords().All() {
					all = append(all, record)
				}
			}
		}
	}
	return all
}

// conditions are those of the records.
func (s *sink) conditions() []string {
	var all []string
	for _, record := range s.records() {
		all = append(all, text(record, "vllm.diagnosis.condition"))
	}
	return all
}

func text(record plog.LogRecord, name string) string {
	value, there := record.Attributes().Get(name)
	if !there {
		return ""
	}
	return value.AsString()
}

// bench is a connector with a clock of its own, which is set to second.
type bench struct {
	*diagnosisConnector
	sink   *sink
	logs   *observer.ObservedLogs
	second float64
}

func newBench(t *testing.T, change func(*Config)) *bench {
	t.Helper()
	return newBenchWith(t, connectortest.NewNopSettings(metadata.Type), change)
}

func newBenchWith(t *testing.T, settings connector.Settings, change func(*Config)) *bench {
	t.Helper()
	config := createDefaultConfig().(*Config)
	if change != nil {
		change(config)
	}
	require.NoError(t, config.Validate())
	core, logs := observer.New(zap.DebugLevel)
	settings.Logger = zap.New(core)
	settings.BuildInfo.Version = "1.2.3"
	b := &bench{sink: &sink{}, logs: logs}
	c, err := newConnector(config, settings, b.sink)
	require.NoError(t, err)
	c.now = func() time.Time { return epoch.Add(time.Duration(b.second * float64(time.Second))) }
	b.diagnosisConnector = c
	require.NoError(t, c.Start(t.Context(), nil))
	return b
}

// consume takes a batch at the time that its points have.
func (b *bench) consume(t *testing.T, second float64, parts ...pmetric.Metrics) {
	t.Helper()
	b.second = second
	require.NoError(t, b.ConsumeMetrics(t.Context(), joined(parts...)))
}

// warnings are the sentences in the log.
func (b *bench) sentences() []string {
	var all []string
	for _, entry := range b.logs.All() {
		all = append(all, entry.Message)
	}
	return all
}

var (
	healthy  = diagnosis{severity: 0, condition: "healthy"}
	stalled  = diagnosis{severity: 3, condition: "stalled"}
	degraded = diagnosis{severity: 2, condition: "degraded", causes: []cause{{"slow_steps", "primary", ""}}}
)
