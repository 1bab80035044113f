// Package emit writes transitions as log records.
package emit

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/track"
	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
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
	attributeBoard             = "vllm.diagnosis.board"
	attributeSince             = "vllm.diagnosis.since"
	attributeEvidence          = "vllm.diagnosis.evidence"
	// The name of the signal follows.
	attributeSignal = "vllm.diagnosis.signal."
	attributeUsual  = "vllm.diagnosis.signal_usual."
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

// maxKept bounds the attributes of a resource that are kept, in bytes.
const maxKept = 16 << 10

// Keep returns an origin that outlives the metrics that it came with. Of a resource
// with very large attributes it has those that fit.
func (o Origin) Keep() Origin {
	kept := Origin{pcommon.NewResource(), o.SchemaURL[:min(len(o.SchemaURL), maxKept)]}
	o.Resource.CopyTo(kept.Resource)
	room := maxKept
	kept.Resource.Attributes().RemoveIf(func(name string, value pcommon.Value) bool {
		size := 32 + len(name) + len(value.AsString())
		if size > room {
			return true
		}
		room -= size
		return false
	})
	return kept
}

// Writer puts the records of one delivery together, those of a resource in one place.
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

// Add copies a record to those of its resource.
func (w *Writer) Add(resource string, from Origin, record plog.LogRecord) {
	records, there := w.records[resource]
	if !there {
		to := w.Logs.ResourceLogs().AppendEmpty()
		from.Resource.CopyTo(to.Resource())
		// The record says it, and a resource that follows it would be a new stream of
		// logs each time.
		to.Resource().Attributes().RemoveIf(func(name string, _ pcommon.Value) bool { return identity.Diagnosis(name) })
		to.SetSchemaUrl(from.SchemaURL)
		scope := to.ScopeLogs().AppendEmpty()
		scope.Scope().SetName(w.Scope)
		scope.Scope().SetVersion(w.Version)
		records = scope.LogRecords()
		w.records[resource] = records
	}
	record.CopyTo(records.AppendEmpty())
}

// NewRecord returns the record of a transition of an engine, which was observed now.
func NewRecord(key *collect.Key, attributes []collect.Attribute, t *track.Transition, now time.Time) plog.LogRecord {
	record := plog.NewLogRecord()
	record.SetEventName(EngineEvent)
	if key.Pool {
		record.SetEventName(PoolEvent)
	}
	record.SetTimestamp(pcommon.Timestamp(t.Time))
	record.SetObservedTimestamp(pcommon.NewTimestampFromTime(now))
	number := severities[min(max(t.To.Severity, 0), len(severities)-1)]
	record.SetSeverityNumber(number)
	record.SetSeverityText(strings.ToUpper(number.String()))
	words := t.Message
	if words == nil {
		// Without the processor's words it is not known which metrics are configured.
		words = &message.Message{Words: wording.Of(&wording.Diagnosis{
			Condition: t.To.Condition, Cause: t.To.Primary, Detail: t.To.Detail, Notices: t.To.Notices,
		}, wording.EnabledByDefault)}
	}
	record.Body().SetStr(words.Sentence)
	for _, a := range attributes {
		record.Attributes().PutStr(a.Name, a.Value)
	}
	writeState(record.Attributes(), t)
	putStrings(record.Attributes(), attributeNextSteps, words.Next)
	putString(record.Attributes(), attributeRunbook, words.Runbook)
	putString(record.Attributes(), attributeBoard, words.Board)
	if words.Since > 0 {
		record.Attributes().PutStr(attributeSince, time.Unix(0, words.Since).UTC().Format(time.RFC3339))
	}
	putStrings(record.Attributes(), attributeEvidence, wording.Lines(words.Signals))
	for _, s := range words.Signals {
		record.Attributes().PutDouble(attributeSignal+s.Name, s.Value)
		if !math.IsNaN(s.Usual) {
			record.Attributes().PutDouble(attributeUsual+s.Name, s.Usual)
		}
	}
	return record
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
