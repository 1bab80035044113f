// Package slo measures objectives on the resources of the processor: it takes
// the steps of their histograms into trackers and tells what these know.
//
// Each resource has one tracker for an objective and each of its models, over all
// engines. The package is pure: it has no clock, no logger and no lock.
package slo
