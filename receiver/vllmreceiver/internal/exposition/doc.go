// Package exposition reads the bodies that /metrics endpoints serve.
//
// # Where the meaning comes from
//
// Samples are read by maintained parsers: those of the text format by prometheus/common's expfmt,
// and OpenMetrics by prometheus/prometheus's textparse. Both stop at the first bad line, so they get
// lines in a way that lets them start again after it. Only the bad line is lost, and it is reported
// as a Problem. This package itself finds the value in each line before the parsers, and after them
// assembles families over the whole body (assemble.go). So TYPE lines may follow samples, a family
// may be split in two, and HELP and TYPE lines may be repeated. Where the parsers differ, the more
// lenient one decides, for example about blanks at the end of a line.
//
// # Two levels of memory
//
// The parsers are slow, and the bodies of one server differ in little but numbers.
//
//	body ──cut into──> blocks ──known?──yes──> replay: compare, read the numbers ──┐
//	                      │                                                        ├─> blocks + Values
//	                      └────────────no───> parsers: expfmt, textparse ──────────┘        │
//	                                                                                 sequence known?
//	                                     Snapshot = Layout + Values <──yes: the same Layout─┤
//	                                                                <──no: assemble it──────┘
//
// Level one is the block: one family's comments and samples, as the hashes of the bytes between its numbers.
// Level two is the Layout, which is assembled from a sequence of blocks. Equal sequences have the
// same Layout by pointer in all readers of a Memory, so what is derived from a Layout can be
// remembered by its pointer. Blocks with bad lines or exemplars are parsed every time; their good
// lines still make a block of their own, so the Layout stays the same. Memory never changes a
// result: the tests prove that on recorded, mutated and fuzzed bodies.
//
// # Bounds
//
// maxBadLines, maxLines, maxLabels, the lengths in limits.go, and the size of all large layouts
// together (pool.go). The work is proportional to the size of the body. Timestamps are checked and
// ignored: one scrape has one time.
package exposition
