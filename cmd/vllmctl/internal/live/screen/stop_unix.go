//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stop stops the process as the terminal does for other programs on Ctrl-Z, with all of its
// group, so that the shell notices. It returns when the shell continues it.
func stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(0, syscall.SIGTSTP) != nil {
		return
	}
	// Another thread may take the signal. Where there is no shell to continue it, the signal is
	// ignored.
	const ignored = 200 * time.Millisecond
	select {
	case <-continued:
	case <-time.After(ignored):
	}
}
