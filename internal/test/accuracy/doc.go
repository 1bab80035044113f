// Package accuracy measures the processor's diagnosis as a black box. It runs a
// simulated engine whose truth is known, sends the processor a scrape of it every
// ten seconds, and compares the reported diagnosis with the truth. "make accuracy"
// runs it and writes docs/why/accuracy.md.
//
// A Story is one run: a server, its workload, and the changes to either. Its truth is
// computed from runs that differ only in the changes (common random numbers):
//
//   - A, the actual run;
//   - W, the nominal workload on the healthy engine, without any change;
//   - E, the actual workload on the healthy engine;
//   - A-c, for each injected cause c: the actual run without this cause.
//
// Whether a minute was harmful, and which share of the harm each cause accounts
// for, is computed from the requests that arrived in it (harm.go, truth.go), never
// from a metric.
//
// This package knows the diagnosis only by the names of its metrics. It imports no
// part of the diagnosis.
package accuracy
