// Package exposition reads the bodies that /metrics endpoints serve.
//
// # Where the meaning comes from
//
// Lines are read by maintained parsers: sample lines of the text format by
// prometheus/common's expfmt, its comments by prometheus/prometheus's textparse, and
// OpenMetrics by textparse. All of them stop at the first bad line, so they get lines in a
// way that lets them start again after it. Only the bad line is lost, and it is reported as
// a Problem. This package itself finds the value in each line before the parsers, and after
// them assembles families over the whole body (assemble.go). So TYPE lines may follow
// samples, a family may be split in two, and HELP and TYPE lines may be repeated. Where the
// parsers differ, the more lenient one decides, for example about blanks at the end of a
// line.
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
// Level one is the block: one family's comments and samples, as the bytes between
// its numbers. A block that the body shows again costs a comparison and a number
// per line (replay.go); only blocks that changed go to the parsers. Lines are read
// one by one, so it does not matter where blocks begin and end.
//
// Level two is the Layout, which is assembled from a sequence of blocks. Equal
// sequences have the same Layout by pointer in all readers of a Memory, so what is
// derived from a Layout can be remembered by its pointer. A slot is the place of a good
// sample line in the body, so Values are the numbers in the order of the lines.
//
// Both are kept in a Memory that all targets of a receiver share. The Memory holds
// them weakly: each Reader keeps its last layouts alive, and what no Reader uses is
// freed. Blocks with bad lines or exemplars are parsed every time; their good lines
// still make a block of their own, so the Layout stays the same.
//
// Each level pays, see BenchmarkMemories and the project's documents on performance.
// Without blocks, one changed label means that a whole body is parsed. Without layouts,
// each scrape assembles one, and the receiver plans its points again. Without sharing,
// each replica holds a copy.
//
// Memory never changes a result: Snapshots are the same with and without it, which
// the tests prove on recorded, mutated and fuzzed bodies.
//
// # Bounds
//
// The rest of a body is dropped after 10,000 bad lines and after 2^17 lines. A line may
// have 128 labels, names and values have the lengths of Limits, and a help text is cut. The
// work is proportional to the size of the body. The size of all large layouts together is
// bounded (pool.go). Timestamps are checked and ignored: one scrape has one time.
package exposition
