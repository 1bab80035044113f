package main

import "syscall"

// childAttributes keep Ctrl-C away from a child, so that this program ends both
// in order, and let it die with this program even where that is killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
