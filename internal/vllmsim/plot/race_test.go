//go:build race

package plot

// The race detector makes the model some thirty times slower, and there is no
// concurrency in it to detect races in.
const raced = true
