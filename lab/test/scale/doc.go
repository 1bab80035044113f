// Package scale runs a simulated fleet that is larger than one collector should have: shards of
// the built collector, with examples/shards.yaml, read thousands of engines. While they do so a
// shard is killed, all are rolled, and their number changes. It counts the increments that were
// lost and doubled on the way to the backend, for each engine. "make scale" runs 10,000 engines;
// "make e2e" runs a short form.
//
// It is a program and no test, for the same reasons as the soak. The collector is known as a
// program only. Engines show counters that are a function of the clock, so that the truth of
// each moment is known without a record, and each answer has a number that says when it was
// given and to which process. So an answer that arrives at the backend names its way.
package scale
