// Package vllmreceiver scrapes vLLM servers and emits their metrics under names
// that never change.
//
// A scrape passes four steps, each a package below internal:
//
//	fetch       HTTP: the body, its limits, and failures in words
//	exposition  text: the body's families and series, with a layout that is
//	            remembered, so that the next body costs only its numbers
//	normalize   names: which metric each family is, from the layout alone
//	emit        pdata: points with start times, resets and staleness
//
// exposition and normalize are pure. This package is the outer layer with the
// clock, the log and the counters: scraper.go is one cycle over one target, and
// receiver.go runs one scrape controller per target.
package vllmreceiver

//go:generate go tool mdatagen metadata.yaml
