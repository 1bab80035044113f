// Package judge compares what the processor reports about simulated servers with what
// is true. It plays a story in simulated time: servers whose life is known, a scrape at
// each interval, and the processor as a black box, of which it knows only the factory
// and the names of the metrics.
//
// The truth of a minute is computed from runs that differ only in the injected causes,
// with common random numbers, and from the requests that the compared runs have in
// common, never from a metric.
package judge
