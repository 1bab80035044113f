// Package wire writes metric families as the bodies that vLLM servers answer
// with, one encoder per dialect: the Python client in one process and in
// multi-process mode, a Ray metrics agent, and the Rust front end.
//
// The writers are the project's own because no Go library writes Python's
// numbers (3.0, 1.234567e+06, 3.9e+010), its "_created" families or the sample
// orders that a reader of vLLM has to cope with.
package wire

import "io"

// Type is the kind of a family.
type Type uint8

// The kinds of families that vLLM exposes.
const (
	Gauge Type = iota
	Counter
	Histogram
	// Summary has only a sum and a count, as the Python client writes it.
	Summary
)

// String returns the kind as a TYPE line spells it.
func (t Type) String() string {
	return [...]string{"gauge", "counter", "histogram", "summary"}[t]
}

// Family is one metric family before it is written in any dialect.
type Family struct {
	// Name is the name in vLLM's code: for counters without "_total".
	Name string
	Help string
	Type Type
	// Whole marks values that the Rust front end keeps as integers.
	Whole  bool
	Points []Point
}

// Label is one name and value.
type Label struct{ Name, Value string }

// Point is one child of a family: one value or one histogram.
type Point struct {
	// Labels are in the order in which the server's code declares them.
	Labels []Label
	// Value is the value of a gauge or counter, the sum of the others.
	Value float64
	// Count, Bounds and Cumulative describe a histogram; Count also a summary.
	Count      uint64
	Bounds     []float64
	Cumulative []uint64
	// Created is when the child was created, in Unix seconds; 0 where the client has
	// no such time (the Python client's own process families).
	Created float64
}

// Encoder writes families in one dialect.
type Encoder interface {
	// Encode writes the body. It fails only where w does.
	Encode(w io.Writer, families []Family) error
	// ContentType is the header that goes with the body.
	ContentType() string
}
