//go:build unix

package lint

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives the new file the owner of the old one, where that is allowed.
func keepOwner(f *os.File, old fs.FileInfo) {
	if s, is := old.Sys().(*syscall.Stat_t); is {
		_ = f.Chown(int(s.Uid), int(s.Gid))
	}
}
