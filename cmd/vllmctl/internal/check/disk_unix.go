//go:build unix

package check

import (
	"math"

	"golang.org/x/sys/unix"
)

// mayWrite reports whether this process may create files in a directory.
func mayWrite(path string) bool { return unix.Access(path, unix.W_OK|unix.X_OK) == nil }

// freeSpace is what this process may still write to the file system of a path; negative if
// that is not known.
func freeSpace(path string) int64 {
	var stat unix.Statfs_t
	if unix.Statfs(path, &stat) != nil {
		return -1
	}
	free := float64(stat.Bavail) * float64(stat.Bsize)
	return int64(min(free, math.MaxInt64/2))
}
