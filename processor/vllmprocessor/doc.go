// Package vllmprocessor derives from the metrics of vLLM servers what an operator
// decides by: ratios, rates, means and quantiles over a window of time, for each
// engine and over the engines of a model.
//
// What passes through is never changed. A batch takes four steps, each a package
// below internal:
//
//	collect  pdata: the points that are needed, by resource and time
//	window   state: running totals, restarts, increases over a window
//	derive   formulas: a table of what is computed from what
//	emit     pdata: the values beside their input, and the ends of series
//
// window and derive are pure. This package is the outer layer with the clock, the
// log, the counters and the lock.
package vllmprocessor

//go:generate go tool mdatagen metadata.yaml
