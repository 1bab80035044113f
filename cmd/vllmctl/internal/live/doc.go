// Package live is the engine of vllmctl top: the receiver and the processor of this project
// run in one process, and what they emit becomes a table with one row per engine.
//
// Session runs the components and has the only clock and the only goroutines. State takes
// what they emit, Table is what a moment looks like, and from there on all is text: Layout
// and Line for people, Document for programs. None of these steps keeps anything from a
// server without a limit.
package live
