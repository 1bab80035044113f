// Package race lets tests know whether the race detector is on.
package race

import "testing"

// SkipSequential skips a test under the race detector. It is for long tests of values,
// which share nothing between goroutines: the detector makes them several times slower
// and finds nothing.
func SkipSequential(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("a long test without concurrency; make test runs it")
	}
}
