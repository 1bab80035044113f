// Package accuracy measures the diagnosis. It plays many stories with known truth (see
// its package stories) through internal/judge, keeps the results, scores them and writes
// docs/why/accuracy.md.
//
// Scoring sees only what "vllmsim judge" prints: what was true and what was reported about
// each minute of each server.
package accuracy
