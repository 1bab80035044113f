package exposition

import (
	"mime"
	"slices"
	"strings"
)

// Dialect is the grammar of a body.
type Dialect uint8

// The dialects.
const (
	// DialectText is the Prometheus text format, versions 0.0.4 and 1.0.0.
	DialectText Dialect = iota
	// DialectOpenMetrics is the OpenMetrics text format 1.0.
	DialectOpenMetrics
)

// DialectOf returns the dialect of a response by its Content-Type. Anything but
// OpenMetrics is read as text, because servers name the text format in many
// ways: without a version, as 1.0.0 (prometheus_client since 0.23), or not at
// all.
func DialectOf(contentType string) Dialect {
	if strings.HasPrefix(contentType, "text/plain") {
		return DialectText
	}
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		// A broken parameter does not make the type itself unknown.
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	if media == "application/openmetrics-text" {
		return DialectOpenMetrics
	}
	return DialectText
}

// String returns "text" or "openmetrics".
func (d Dialect) String() string {
	if d == DialectOpenMetrics {
		return "openmetrics"
	}
	return "text"
}

var kindNames = [...]string{
	KindUntyped: "untyped", KindCounter: "counter", KindGauge: "gauge",
	KindHistogram: "histogram", KindSummary: "summary", KindInfo: "info",
	KindStateSet: "stateset", KindGaugeHistogram: "gaugehistogram",
}

// String returns the kind as a TYPE line writes it.
func (k Kind) String() string { return kindNames[k] }

var reasonNames = [reasonEnd]string{
	ReasonNone: "none", ReasonBadName: "bad_name", ReasonBadLabels: "bad_labels",
	ReasonBadValue: "bad_value", ReasonBadTimestamp: "bad_timestamp",
	ReasonBadComment: "bad_comment", ReasonMissingEOF: "missing_eof",
	ReasonTooManyBadLines: "too_many_bad_lines", ReasonWrongType: "wrong_type",
	ReasonOrphanCreated: "orphan_created", ReasonTooManyLines: "too_many_lines",
	ReasonNameTooLong: "name_too_long", ReasonLabelNameTooLong: "label_name_too_long",
	ReasonLabelValueTooLong: "label_value_too_long",
}

// String returns the reason in snake_case, as telemetry spells it.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns every reason but ReasonNone.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonEnd-1)
	for r := ReasonNone + 1; r < reasonEnd; r++ {
		out = append(out, r)
	}
	return out
}

// kindOf maps the word of a TYPE line to a kind. Like expfmt it ignores
// case. It knows the words of both dialects, because OpenMetrics bodies
// are also served as text.
func kindOf(word string) (Kind, bool) {
	switch word = strings.ToLower(word); word {
	case "unknown":
		return KindUntyped, true
	case "gauge_histogram":
		return KindGaugeHistogram, true
	}
	i := slices.Index(kindNames[:], word)
	return Kind(max(i, 0)), i >= 0
}
