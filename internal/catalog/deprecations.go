package catalog

// Deprecation is something that a release of this project called deprecated, renamed or removed.
type Deprecation struct {
	// Kind is "metric", "attribute", "value", "setting", "alert", "record", "telemetry", "family",
	// "file" or "form".
	Kind string
	// Name is what it was called. With Values it is about these values only: of the label Label of
	// the metric Name, or of the attribute or setting Name.
	Name   string
	Label  string
	Values []string
	// Spelled are the names of a metric that is gone in a Prometheus backend.
	Spelled []string
	// Since is the first release of this project that has the replacement; Gone is the first in
	// which the old one does not work, and is empty as long as it does.
	Since, Gone string
	// Promised is true if the promise of docs/reference/naming.md covers it.
	Promised bool
	// ReplacedBy is what to write instead; empty if there is nothing, and Note says why.
	ReplacedBy []string
	// Gate is the feature gate that brings the old one back; empty if there is none.
	Gate string
	// Note is one or two sentences for a person who has the old one.
	Note string
}

// Deprecations returns all entries of metadata.yaml, the oldest first. The slice is the table
// itself: do not change it.
func Deprecations() []Deprecation { return deprecations }
