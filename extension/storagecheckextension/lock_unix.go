//go:build unix && !solaris && !aix

package storagecheckextension

import (
	"errors"
	"os"
	"syscall"
)

var errLocked = errors.New("it has been locked")

// tryLock takes the lock that bbolt has on an open file. Closing the file releases it.
func tryLock(file *os.File) error {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errLocked
	}
	return err
}
