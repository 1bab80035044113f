// Package emit writes transitions as log records.
package emit

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
)

// The names of the events, of an engine and of a pool.
const (
	EngineEvent = "vllm.diagnosis.changed"
	PoolEvent   = "vllm.pool.diagnosis.changed"
)

// The attributes of a record. None is a dotted prefix of another, since backends
// that make objects of dots break on that.
const (
	attributeCondition         = "vllm.diagnosis.condition"
	attributePreviousCondition = "vllm.diagnosis.previous_condition"
	attributeSeverity          = "vllm.diagnosis.severity"
	attributeCause             = "vllm.diagnosis.cause"
	attributeDetail            = "vllm.diagnosis.detail"
	attributeContributing      = "vllm.diagnosis.contributing_causes"
	attributeNotices           = "vllm.diagnosis.notices"
	attributeNextSteps         = "vllm.diagnosis.next_steps"
	attributeRunbook           = "vllm.diagnosis.runbook"
	// The name of the signal follows.
	attributeSignal      = "vllm.diagnosis.signal."
	attributeSignalRatio = "vllm.diagnosis.signal_ratio."
)

// severities are the numbers of the logs data model. A notice is still
// information, only more of it; a page is an error, since "fatal" is for programs
// that end.
var severities = [...]plog.SeverityNumber{
	plog.SeverityNumberInfo, plog.SeverityNumberInfo2, plog.SeverityNumberWarn, plog.SeverityNumberError,
}

// Origin is where the metrics of an engine came from.
type Origin struct {
	Resource  pcommon.Resource
	SchemaURL string
}

// NewOrigin returns an origin with an empty resource.
func NewOrigin(schemaURL string) Origin {
	return Origin{Resource: pcommon.NewResource(), SchemaURL: schemaURL}
}

// Writer puts the records of one batch together, those of a resource in one place.
type Writer struct {
	Logs plog.Logs
	// Scope and Version are the instrumentation scope.
	Scope, Version string

	records map[string]plog.LogRecordSlice
}

// NewWriter returns a writer without records.
func NewWriter(scope, version string) *Writer {
	return &Writer{Logs: plog.NewLogs(), Scope: scope, Version: version, records: map[string]plog.LogRecordSlice{}}
}

// Add writes one transition of an engine, which was observed now.
func (w *Writer) Add(
	key *collect.Key, attributes []collect.Attribute, from Origin, t *track.Transition, now time.Time,
) {
	records, there := w.records[key.Resource]
	if !there {
		resource := w.Logs.ResourceLogs().AppendEmpty()
		from.Resource.CopyTo(resource.Resource())
		// The record says it, and a resource that follows it would be a new stream of
		// logs each time.
		resource.Resource().Attributes().RemoveIf(func(name string, _ pcommon.Value) bool { return identity.Diagnosis(name) })
		resource.SetSchemaUrl(from.SchemaURL)
		scope := resource.ScopeLogs().AppendEmpty()
		scope.Scope().SetName(w.Scope)
		scope.Scope().SetVersion(w.Version)
		records = scope.LogRecords()
		w.records[key.Resource] = records
	}
	record := records.AppendEmpty()
	record.SetEventName(EngineEvent)
	if key.Pool {
		record.SetEventName(PoolEvent)
	}
	record.SetTimestamp(pcommon.Timestamp(t.Time))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	number := severities[min(max(t.To.Severity, 0), len(severities)-1)]
	record.SetSeverityNumber(number)
	record.SetSeverityText(strings.ToUpper(number.String()))
	says := say(&t.To)
	record.Body().SetStr(says.sentence())
	for _, a := range attributes {
		record.Attributes().PutStr(a.Name, a.Value)
	}
	writeState(record.Attributes(), t)
	putStrings(record.Attributes(), attributeNextSteps, says.next)
	putString(record.Attributes(), attributeRunbook, says.runbook)
	putNumbers(record.Attributes(), attributeSignal, t.Signals)
	putNumbers(record.Attributes(), attributeSignalRatio, t.Ratios)
}

func writeState(to pcommon.Map, t *track.Transition) {
	to.PutStr(attributeCondition, t.To.Condition)
	putString(to, attributePreviousCondition, t.From.Condition)
	to.PutInt(attributeSeverity, int64(t.To.Severity))
	putString(to, attributeCause, t.To.Primary)
	putString(to, attributeDetail, t.To.Detail)
	putStrings(to, attributeContributing, t.To.Contributing)
	putStrings(to, attributeNotices, t.To.Notices)
}

// putString leaves out what there is not.
func putString(to pcommon.Map, name, value string) {
	if value != "" {
		to.PutStr(name, value)
	}
}

func putStrings(to pcommon.Map, name string, values []string) {
	if len(values) == 0 {
		return
	}
	slice := to.PutEmptySlice(name)
	for _, value := range values {
		slice.AppendEmpty().SetStr(value)
	}
}

func putNumbers(to pcommon.Map, prefix string, values map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		to.PutDouble(prefix+name, values[name])
	}
}
