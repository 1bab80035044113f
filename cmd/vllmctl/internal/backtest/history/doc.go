// Package history reads the history of vLLM servers: it finds the targets of a period, reads
// their samples part by part, keeps the parts in a folder so that a second run reads nothing
// again, and groups the samples of a part into scrapes.
//
// A part is one target in one window of a fixed grid, so that the parts of two runs over
// overlapping periods are the same. A server that refuses a part is asked for shorter
// periods, which are put together again.
package history
