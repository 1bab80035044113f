// Package accuracy measures the processor's diagnosis as a black box: it lets a
// simulated engine run whose truth is known, gives the processor what a scrape
// every ten seconds would have shown, and compares what it tells with what was
// really wrong. "make accuracy" runs it and writes docs/why/accuracy.md.
//
// A Story is one run: a server, its workload, and what is done to either. Its
// truth comes from runs that differ in nothing else (common random numbers):
//
//   - A, the actual one;
//   - W, the nominal workload on the healthy engine: nothing is done;
//   - E, the actual workload on the healthy engine;
//   - A-c, for each cause c that was injected: all of it but this.
//
// Whether a minute was harmful, and what of the harm each cause accounts for, is
// told by the requests that arrived in it (harm.go, truth.go), never by a metric.
//
// This package knows the diagnosis by the names of its metrics only, and imports
// nothing of it.
package accuracy
