package exposition

// Kind is the type that a TYPE line declares.
type Kind uint8

// The kinds of families.
const (
	KindUntyped Kind = iota
	KindCounter
	KindGauge
	KindHistogram
	KindSummary
	// KindInfo, KindStateSet and KindGaugeHistogram exist only in OpenMetrics.
	KindInfo
	KindStateSet
	KindGaugeHistogram
)

// NoSlot marks a value that a series does not have.
const NoSlot = -1

// Label is one name and value of a series.
type Label struct{ Name, Value string }

// Layout is the structure of a body without its numbers: its families, the series of each
// family, and the slot in Snapshot.Values of each number. A Layout is immutable. All
// targets whose bodies have the same structure share it, so results derived from it can be
// stored by its pointer.
type Layout struct {
	// Families are in the order in which the body first names them.
	Families []Family
	// Slots is the length of Snapshot.Values for this layout.
	Slots int
}

// Family is one metric family.
type Family struct {
	// Name is the family's name as the text format 0.0.4 writes it, whatever the
	// dialect of the body: a counter's name ends in "_total" if its samples do, an
	// info family's in "_info". No two families of a Layout have the same name.
	Name string
	Kind Kind
	Help string
	// Unit is the UNIT line of OpenMetrics; empty in the text format.
	Unit   string
	Series []Series
}

// Series is one label set of a family with the slots of its numbers.
type Series struct {
	// Labels are sorted by name, without "le" and "quantile".
	Labels []Label
	// Value is the slot of a counter's, gauge's or untyped sample's number.
	Value int
	// Sum and Count are the slots of a histogram's or summary's totals.
	Sum, Count int
	// Created is the slot of the "_created" sample, a Unix time in seconds.
	Created int
	// Buckets are a histogram's cumulative buckets, by ascending upper bound;
	// the last one's bound is +Inf where the body has it.
	Buckets []Bucket
	// Quantiles are a summary's, by ascending quantile.
	Quantiles []Quantile
}

// Bucket is one cumulative bucket of a histogram.
type Bucket struct {
	UpperBound float64
	Slot       int
}

// Quantile is one quantile of a summary.
type Quantile struct {
	Quantile float64
	Slot     int
}

// Snapshot is one parsed body.
type Snapshot struct {
	Layout *Layout
	// Values are the body's numbers by slot, which is the place of the sample's line among
	// the good ones. Duplicates and samples without a place in their family have a slot to
	// which nothing refers. The slice belongs to the Reader and is overwritten by its next
	// Read.
	Values []float64
	// Exemplars are rare, so they are kept apart, in the body's order.
	Exemplars []Exemplar
	// Problems are the lines that could not be read.
	Problems []Problem
	// Duplicates counts the samples dropped because an earlier line of the same
	// body has the same series.
	Duplicates int
	// Samples counts the sample lines that could be read, including duplicates.
	Samples int
	// Refused is true if there was no room for the body's layout in the memory. The
	// snapshot then has no samples.
	Refused bool
}

// Exemplar is an OpenMetrics exemplar of the sample at Slot.
type Exemplar struct {
	Slot   int
	Labels []Label
	Value  float64
	// Timestamp is a Unix time in milliseconds; HasTimestamp distinguishes a real 0.
	Timestamp    int64
	HasTimestamp bool
}

// Reason is why a line was dropped.
type Reason uint8

// The reasons for a bad line. metadata.yaml of the receiver says what each of them means.
const (
	ReasonNone Reason = iota
	ReasonBadName
	ReasonBadLabels
	ReasonBadValue
	ReasonBadTimestamp
	ReasonBadComment
	ReasonMissingEOF
	ReasonTooManyBadLines
	ReasonWrongType
	ReasonOrphanCreated
	ReasonTooManyLines
	ReasonNameTooLong
	ReasonLabelNameTooLong
	ReasonLabelValueTooLong
	reasonEnd
)

// Problem is one line that was dropped. Line counts from 1. The reasons
// ReasonTooManyBadLines and ReasonTooManyLines mean this line and all lines after it, and
// ReasonMissingEOF means the end of the body.
type Problem struct {
	Line   int
	Reason Reason
}
