// Package diagnose finds out in which condition each engine is and, where its requests are
// harmed, why. It is pure: time comes with the batches.
//
// A reading has the signals of an engine over the window (reading.go). It goes through these
// steps:
//
//   - The growth of each factor that requests become slower by, against what is usual for the
//     engine (factors.go; package signal), against its siblings in a pool (peers.go) or, where
//     nothing is known yet, against limits for any engine.
//   - Which factors have changed: a CUSUM of each growth (symptoms.go).
//   - What the changed factors cost, in seconds of the first token and of each further one
//     (effects.go), and of a queue (overload.go).
//   - Whether that is harm: a sequential test of the cost (symptoms.go), one of each missed objective
//     (objectives.go), or measured waits (felt.go). Errors and dropped requests are counted.
//   - How much of the harm each cause explains: the costs of its factors (effects.go),
//     unless its own evidence contradicts (explain.go).
//   - What is reported (hold.go, details.go), and what is learned: what may have changed is
//     left out (learn.go).
//
// docs/why/method.md has the formulas and their sources. Pools are judged by package pools.
package diagnose
