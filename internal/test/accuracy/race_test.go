//go:build race

package accuracy

// The race detector makes the engine some thirty times slower, and there is no
// concurrency in it to detect races in.
const raced = true
