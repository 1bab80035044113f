package cluster

import (
	"os/exec"
	"syscall"
)

// isolate gives a command mounts, a host name and processes of its own: it is process 1 there.
func isolate(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWPID}
}
