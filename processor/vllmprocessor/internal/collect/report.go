package collect

// Reason is why a point is not used. The point passes through unchanged.
type Reason uint8

// The reasons.
const (
	// TypeConflict means: a known name with points of another kind, as Ray's gauge
	// twin of a counter.
	TypeConflict Reason = iota
	// UnsupportedTemporality means: neither cumulative nor delta.
	UnsupportedTemporality
	// NotANumber means: a value that is NaN or infinite, or a negative count.
	NotANumber
	// BadHistogram means: bounds out of order, or counts that do not fit them.
	BadHistogram
	// NoTimestamp means: a point without a time.
	NoTimestamp
	// OlderName means: the same series also exists under a newer name.
	OlderName
	// TooLarge means: the attributes of the point, or of its resource, exceed the limits.
	TooLarge
	// SeveralProcesses means: each API server of a server reports the gauge for itself,
	// and none of the values is right for the whole.
	SeveralProcesses

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{
		"type_conflict", "unsupported_temporality", "not_a_number", "bad_histogram", "no_timestamp", "older_name", "too_large",
		"several_processes",
	}[r]
}

// Report counts what was not used.
type Report [NumReasons]int
