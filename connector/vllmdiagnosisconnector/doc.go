// Package vllmdiagnosisconnector turns the diagnosis that the vllm processor
// writes as metrics into events: one log record for each change.
//
// What passes takes three steps, each a package below internal:
//
//	collect  pdata: the points of each engine at each time, as a frame
//	track    state: the last reported diagnosis, and whether it has changed
//	emit     pdata: the log record, in the words of the catalogue
//
// track is pure. This package is the outer layer with the clock, the log, the
// counters and the lock.
package vllmdiagnosisconnector

//go:generate go tool mdatagen metadata.yaml
