// Package replay judges a history: the scrapes of a target go through the receiver, after
// its fetch, and through the processor, in the time of the history. The receiver parses and
// the processor judges as they do in a collector; here are only the two ends: the text that a
// scrape had, or the points that a collector had stored, and what the processor says about
// each server.
package replay
