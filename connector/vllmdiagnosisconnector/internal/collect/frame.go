// Package collect reads diagnoses from metrics.
package collect

import "github.com/otelcol-vllm/otelcol-vllm/internal/message"

// Frame is the diagnosis of one engine, or one pool, at one time. Of a batch
// that was split it is a part.
type Frame struct {
	Key Key
	// Attributes are those that the points have in common, sorted by name: the
	// engine and the model, or the pool.
	Attributes []Attribute
	// Source is the index of the ResourceMetrics that the frame came from.
	Source int
	// Time is the points' time in nanoseconds since 1970.
	Time int64
	// Severity is from 0 to 3, or NoSeverity.
	Severity int
	// Ended is true where a point ends the series of the severity.
	Ended bool
	// Conditions and Causes say of each series whether it is the case.
	Conditions map[string]bool
	Causes     map[Cause]bool
	// Message is what the processor says about a change at this time; nil where there is none, or it did not
	// arrive.
	Message *message.Message
	// Points is the number of points in it.
	Points int
}

// NoSeverity is the severity of a frame without one.
const NoSeverity = -1

// Key names an engine or pool over all resources.
type Key struct {
	// Resource is the identity of the resource.
	Resource string
	// Pool is true for a pool.
	Pool bool
	// Point is the same for equal attributes.
	Point string
}

// Attribute is a name and a value.
type Attribute struct{ Name, Value string }

// Cause is one series of causes.
type Cause struct {
	Name string
	Role Role
	// Detail is empty where the cause has none.
	Detail string
}

// Role is the part that a cause plays.
type Role string

// The roles.
const (
	Primary      Role = "primary"
	Contributing Role = "contributing"
	Notice       Role = "notice"
)

// The catalogue has far fewer and shorter names; who sends more does not send a
// diagnosis. Together these bound what is kept of an engine at about 64 kB.
const (
	// maxSeries is the most series of one metric of one engine that are read.
	maxSeries = 128
	// maxName is the longest name of a condition or cause, with its detail.
	maxName = 128
	// maxAttributes is the size of the attributes of a point, in bytes.
	maxAttributes = 2 << 10
)

// Merge adds another part of the same frame. The order of the parts is of no
// importance.
func (f *Frame) Merge(part *Frame) {
	f.Severity = max(f.Severity, part.Severity)
	f.Ended = f.Ended || part.Ended
	f.Points += part.Points
	for name, is := range part.Conditions {
		set(f.Conditions, name, is)
	}
	for cause, is := range part.Causes {
		set(f.Causes, cause, is)
	}
	if part.Message != nil {
		f.Message = part.Message
	}
}

// set records a state; one that is true stays true. It returns false
// where there are too many.
func set[K comparable](to map[K]bool, key K, is bool) bool {
	was, known := to[key]
	if !known && len(to) >= maxSeries {
		return false
	}
	to[key] = was || is
	return true
}

// Reason says why a point is not used.
type Reason uint8

// The reasons.
const (
	// TypeConflict means: no gauge.
	TypeConflict Reason = iota
	// NoTimestamp means: a point without a time.
	NoTimestamp
	// BadValue means: a severity other than 0, 1, 2 and 3, or a state other than 0 and 1.
	BadValue
	// BadAttribute means: a condition or cause without its name, or a role that does not
	// exist.
	BadAttribute
	// TooMany means: more series of one metric of one engine than a diagnosis has.
	TooMany
	// TooLong means: longer names or more attributes than a diagnosis has.
	TooLong

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the connector's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{"type_conflict", "no_timestamp", "bad_value", "bad_attribute", "too_many", "too_long"}[r]
}

// Report counts what was not used.
type Report [NumReasons]int
