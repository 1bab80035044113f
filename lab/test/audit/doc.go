// Package audit checks that the points of one scrape are exactly what the scraped body
// contains. It is the independent oracle of the end-to-end tests, so it shares no code with
// the receiver: it reads each line by itself with Prometheus's own parser, implements the
// rules of docs/reference/naming.md again, and takes from the catalogue only which families
// have which names.
//
// Every line of the body that looks like a sample gets exactly one Fate. A line with the
// fate Emitted must be found in the points with its value; a line with any other fate must
// not. Points that are not from a line are violations too, except the metrics about the
// scrape itself and those from the labels of an info family.
package audit
