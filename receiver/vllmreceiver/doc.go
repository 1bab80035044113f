// Package vllmreceiver scrapes vLLM servers and emits their metrics under names
// that never change.
//
// A scrape has four steps, each in a package below internal:
//
//	fetch       HTTP: the body, its limits, and messages for failures
//	exposition  text: the families and series of the body; their layout is
//	            remembered, so that the next scrape reads only numbers
//	normalize   names: which metric each family is, from the layout only
//	emit        pdata: points with start times, resets and staleness
//
// Package scrape is these four for one target, with the clock, the log and the counters; package
// probe takes the same way for vllmctl. discover finds targets. exposition and normalize are pure
// functions. This package has the targets: receiver.go, running.go and repeat.go scrape each at
// its times, discovery.go adds and removes discovered ones, and owed.go repeats ends that
// were refused.
package vllmreceiver

//go:generate go tool mdatagen metadata.yaml
