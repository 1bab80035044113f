//go:build !unix

package check

// mayWrite is not known on this system, so nothing is reported.
func mayWrite(string) bool { return true }

// freeSpace is not known on this system.
func freeSpace(string) int64 { return -1 }
