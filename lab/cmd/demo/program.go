package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopLimit is how long a program may take to end after it is asked to.
const stopLimit = 10 * time.Second

// program is a child process. Its output goes to logFile.
type program struct {
	name, logFile string
	cmd           *exec.Cmd
	// ended is closed when the process has ended; err may be read from then on.
	ended chan struct{}
	err   error
	// said has the lines that it prints, where somebody listens; else it is nil.
	said chan string
}

// start runs a program with its output in <logs>/<name>.log. env is added to the
// environment of this process.
func start(logs, name string, env []string, path string, args ...string) (*program, error) {
	return startListening(nil, logs, name, env, path, args...)
}

// startListening does the same, and also sends each line that the program prints.
func startListening(said chan string, logs, name string, env []string, path string, args ...string) (*program, error) {
	logFile := filepath.Join(logs, name+".log")
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...) //nolint:gosec // the programs that the user named
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if said != nil {
		cmd.Stdout = &listener{log: log, said: said}
	}
	cmd.SysProcAttr = childAttributes()
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), log.Close())
	}

	p := &program{name: name, logFile: logFile, cmd: cmd, ended: make(chan struct{}), said: said}
	go func() {
		defer close(p.ended)
		p.err = errors.Join(cmd.Wait(), log.Close())
	}()
	return p, nil
}

// listener writes what a program prints to its log, and sends each whole line.
type listener struct {
	log  io.Writer
	said chan<- string
	rest string
}

func (l *listener) Write(printed []byte) (int, error) {
	l.rest += string(printed)
	for {
		line, rest, whole := strings.Cut(l.rest, "\n")
		if !whole {
			return l.log.Write(printed)
		}
		l.rest = rest
		select {
		case l.said <- line:
		default: // The program must not wait for somebody who does not listen.
		}
	}
}

// stop asks the program to end, kills it when it does not, and reports an end
// that was not clean. A program that had ended before is not reported again.
func (p *program) stop() error {
	select {
	case <-p.ended:
		return nil
	default:
	}
	// An error here means that it has just ended.
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
		if p.err != nil && !endedBy(p.err, syscall.SIGTERM) {
			return fmt.Errorf("%s did not end cleanly: %w", p.name, p.explain(p.err))
		}
		return nil
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %s and was killed", p.name, stopLimit)
	}
}

// endedBy reports whether the process was ended by the signal, which is how a
// program without a handler obeys it.
func endedBy(err error, signal syscall.Signal) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == signal
}

// explain adds the last lines of the program's log to err.
func (p *program) explain(err error) error {
	const lines = 15
	if err == nil {
		err = errors.New("it gave no error")
	}
	content, readErr := os.ReadFile(p.logFile)
	content = bytes.TrimSpace(content)
	if readErr != nil || len(content) == 0 {
		return fmt.Errorf("%w (nothing in %s)", err, p.logFile)
	}
	last := strings.Split(string(content), "\n")
	if len(last) > lines {
		last = last[len(last)-lines:]
	}
	return fmt.Errorf("%w\nThe end of %s:\n  %s", err, p.logFile, strings.Join(last, "\n  "))
}
