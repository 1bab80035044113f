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
// discover finds targets. exposition and normalize are pure functions. This package
// has the clock, the log and the counters: scraper.go is one scrape of one target,
// receiver.go, running.go, repeat.go and phases.go scrape each target at its times, discovery.go adds
// and removes discovered targets, and owed.go repeats ends that were refused.
package vllmreceiver

//go:generate go tool mdatagen metadata.yaml
