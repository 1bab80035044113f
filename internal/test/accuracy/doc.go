// Package accuracy holds the processor's diagnosis against stories whose outcome is
// known, as a black box: every file of examples/scenarios through our receiver, and pools
// of servers. It knows the diagnosis only by the names of its metrics and imports no part
// of it.
//
// How accurate the diagnosis is, is measured by its packages stories, which makes stories
// with all causes, sizes and backgrounds, and measure, which plays and scores them and
// writes docs/why/accuracy.md ("make accuracy").
package accuracy
