// Package objective measures service level objectives such as "95 % of the requests get
// their first token within 2.5 s".
//
// A histogram shows only between which two bounds an observation lies. So observations
// are counted in three parts: good (certainly within the threshold), undecided (in the
// bucket that the threshold splits) and the rest, which is certainly bad. Every result is
// an Interval that contains the true value. Where the threshold is a bound of the
// histogram, both ends are equal.
//
// A Tracker counts for one objective. It has sums since its start, and for each window a
// ring of coarse slots, so that 30 days take as much memory as an hour. Encode and
// Restore preserve the rings over a restart of the collector.
//
// A State has the trackers of one resource: one for each objective and model, over all
// engines. It reads the steps of the histograms from the window. An Evaluator computes the
// metrics from the trackers.
//
// The package is pure: it has no clock, no logger and no lock. All times are Unix
// nanoseconds.
package objective
