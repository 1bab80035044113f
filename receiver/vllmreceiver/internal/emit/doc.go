// Package emit turns a plan and the numbers of one scrape into OTLP points. It
// is the only package of the receiver that knows pdata.
//
// It stores the state of a target between two scrapes: when each cumulative series began,
// its last numbers, and which series had a point. A series that vanishes ends with one
// no-recorded-value point. It has no clock: the time of the scrape is a parameter.
//
// The rules for start times are, for a cumulative point:
//
//  1. the server's own "_created", unless it lies after the scrape;
//  2. for a series that the last successful scrape proves to have been absent, the
//     time of that scrape, or the process start if that is later;
//  3. process_start_time_seconds, if it is the vLLM process's;
//  4. the first point's own time, which says "unknown".
//
// A series that was present and not usable, that was refused, or that was forgotten
// is not new: rules 3 and 4 hold for it.
//
// After a reset the start is a newer "_created" or process start, else the time
// of the last scrape before the reset; never the reset point's own time, because
// consumers that convert to deltas drop a first point whose start equals its
// time, and the value would be lost.
package emit
