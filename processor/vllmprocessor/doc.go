// Package vllmprocessor derives from the metrics of vLLM servers what an operator needs
// for decisions: ratios, rates, means and quantiles over a window of time, objectives,
// and a diagnosis, for each engine and over the engines of a model.
//
// It never changes what passes through. A batch takes these steps, each a package below
// internal:
//
//	collect   pdata: the points that are needed, by resource and time
//	window    state: running totals, restarts, increases over a window
//	stages    what is derived, in the list of factory.go
//	emit      pdata: the values next to their input, and the ends of series
//
// All of them know the points as package input has them. window is pure, and so are the packages that the stages compute with. This package has
// the clock, the locks and the list of servers.
package vllmprocessor

//go:generate go tool mdatagen metadata.yaml
