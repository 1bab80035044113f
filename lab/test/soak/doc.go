// Package soak runs the built collector for a long time against many servers that change all
// the time, and a backend that fails now and then. It checks that nothing grows and that
// nothing is lost. "make soak" runs it for an hour; "make soak SOAK_FOR=5m" is the short form.
//
// It is a program and no test: an hour is longer than the time limit of "go test", its progress
// must be seen while it runs, and Ctrl-C must still give the report of what has run so far. The
// accounting has unit tests.
//
// The collector is the shipped binary, without a change. What Go's runtime knows is read from
// its traces (GODEBUG): gctrace has the live heap after each collection, scheddetail each
// goroutine. The rest is read from /proc, so that only Linux can run a soak.
//
// Every answer of a server has a number of its own. A plan (plan.go) says what happens when.
// The fleet (lab/test/fleet, target.go) are the servers, the sink (sink.go) is the backend, the ledger
// (ledger.go) compares what was served with what was received, and flat.go compares the first
// third of the samples with the last.
package soak
