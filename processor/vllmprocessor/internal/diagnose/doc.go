// Package diagnose says of each engine in which condition it is and, where it
// harms its requests, why. It is pure: time comes with the batches.
//
// It goes in five steps. A reading is what the engine says over the window, as
// numbers of known meaning (reading.go). The baseline is what these numbers were
// while all was well, and how step times depend on the load (baseline.go,
// expect.go). The symptoms are what requests feel that they should not: the
// user's objectives are missed, or latencies are beyond the baseline, or, before
// there is one, beyond the documented defaults (symptoms.go). The excess latency
// is split into the front end, the queue, prefill and decode, and each share is
// given to the cause that explains it (causes.go). What is told changes only when
// the new state has lasted for some windows (state.go).
package diagnose
