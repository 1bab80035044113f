// Package diagnose finds out in which condition each engine is and, where its requests are
// harmed, why. It is pure: time comes with the batches.
//
// It takes five steps. A reading has the signals of an engine over the window
// (reading.go). The baseline has what these signals usually are, and how step times depend
// on the load (package learn). The symptoms are the harm: an objective is missed, or a
// latency is beyond the baseline or, before there is one, beyond the documented defaults
// (symptoms.go). The excess latency is split into front end, queue, prefill and decode, and
// each part is attributed to the causes that explain it (split.go, explain.go), unless their
// own evidence contradicts (contradiction.go). A new state is reported when it has lasted
// for the hold (hold.go). Pools are judged by package fleet.
package diagnose
