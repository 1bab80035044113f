// Package objective measures service level objectives: promises such as "95 %
// of the requests get their first token within 2.5 s".
//
// A histogram knows only between which two bounds an observation lies. So what
// was observed is counted in three parts: good (certainly within the
// threshold), undecided (in the bucket that the threshold splits) and the rest,
// which is certainly bad. Every result that follows from them is an Interval
// that the truth cannot leave; with a threshold on a bound of the histogram its
// two ends are equal.
//
// A Tracker counts for one objective and one server or group. It keeps sums
// since its start, and for each window a ring of coarse slots, so that 30 days
// cost as much memory as an hour. The rings survive a restart of the collector
// through Encode and Restore.
//
// The package is pure: it has no clock, no logger and no lock. Times are
// nanoseconds of the Unix epoch.
package objective
