package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a program in a process group of its own, to which its children belong.
type process struct {
	command *exec.Cmd
	// ended is closed when the program has ended and none of its group is left.
	ended chan struct{}
}

// start starts a command, and writes down that it runs, for the watchdog.
func (c *Cluster) start(command *exec.Cmd) (*process, error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	command.WaitDelay = time.Second
	if err := command.Start(); err != nil {
		return nil, err
	}
	mark := filepath.Join(c.dir, "running", strconv.Itoa(command.Process.Pid))
	err := os.WriteFile(mark, nil, 0o600)
	p := &process{command: command, ended: make(chan struct{})}
	go func() {
		_ = command.Wait()
		p.kill()
		_ = os.Remove(mark)
		close(p.ended)
	}()
	return p, err
}

// kill ends the whole group as a crash would.
func (p *process) kill() { _ = syscall.Kill(-p.command.Process.Pid, syscall.SIGKILL) }

// stop asks the program to end, kills it after a time, and waits until it has ended.
func (p *process) stop(grace time.Duration) {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
		p.kill()
		<-p.ended
	}
}

// code is the exit status of a program that has ended, as a kubelet reports it.
func (p *process) code() int32 {
	if status, ok := p.command.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int32(status.Signal())
	}
	return int32(p.command.ProcessState.ExitCode())
}

// over reports whether a channel is closed.
func over(ended <-chan struct{}) bool {
	select {
	case <-ended:
		return true
	default:
		return false
	}
}

// watchdog kills what runs when this program ends without its clean-up, as after a panic or by the limit of go test.
func (c *Cluster) watchdog(t *testing.T) {
	t.Helper()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	dog := exec.CommandContext(context.Background(), "/bin/sh", "-c", //nolint:gosec // our own folder
		`cat; cd "$0/running" && for pid in *; do kill -KILL -- "-$pid"; done; rm -rf "$0"`, c.dir)
	dog.Stdin, dog.SysProcAttr = read, &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, dog.Start())
	require.NoError(t, read.Close())
	t.Cleanup(func() {
		_ = dog.Process.Kill()
		_ = dog.Wait()
		_ = write.Close()
	})
}
