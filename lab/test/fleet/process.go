// Package fleet is what the long runs share, which know the collector as a program: the soak, the run at size, the faults and
// the comparison with the peers. It starts programs and measures what they use, is the backend that they send to, has bodies
// of servers whose counters grow, follows counters as a backend does, and writes what was found.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running program.
type Process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
	// Began is when it was started.
	Began time.Time
}

// Start runs a program and adds what it prints to a file. It has these variables and PATH, or without any those of this
// program. It is killed when ctx ends.
func Start(ctx context.Context, log string, env []string, program string, args ...string) (*Process, error) {
	file, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return StartTo(ctx, file, env, program, args...)
}

// StartTo is Start with a writer.
func StartTo(ctx context.Context, output io.Writer, env []string, program string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, program, args...), ended: make(chan struct{}), Began: time.Now()} //nolint:gosec // the program that is tested
	if env != nil {
		p.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s cannot be started: %w", program, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Exit waits until the program has ended, and returns how.
func (p *Process) Exit() error {
	<-p.ended
	return p.err
}

var errEnded = errors.New("it ended by itself")

// Ended is nil while the program runs.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %w", p.cmd.Path, errors.Join(p.err, errEnded))
	default:
		return nil
	}
}

// Name is what was started.
func (p *Process) Name() string { return filepath.Base(p.cmd.Path) }

// Pid is the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Signal sends a signal.
func (p *Process) Signal(signal os.Signal) error { return p.cmd.Process.Signal(signal) }

// Kill ends the program as a crash would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// StopLimit is how long a collector may take to end after SIGTERM.
const StopLimit = 20 * time.Second

// Stop asks the program to end, and kills it after limit. It returns how long that took, and how it ended.
func (p *Process) Stop(limit time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	select {
	case <-p.ended:
		return time.Since(began), p.err
	case <-time.After(limit):
	}
	// A Go program then writes what each goroutine does.
	_ = p.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.Kill()
	}
	return limit, fmt.Errorf("%s did not end within %s of SIGTERM", p.cmd.Path, limit)
}

// CPU is the processor time of a program that has ended.
func (p *Process) CPU() time.Duration {
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
}

// Usage is what a program has used since its start.
type Usage struct {
	// CPU is the processor time of all threads, and System that in the kernel.
	CPU, System time.Duration
	// Switches is how often a thread went to sleep.
	Switches int64
	// Peak is the highest resident memory, Resident that of now, and Anonymous the part of it that is not of files, in bytes.
	Peak, Resident, Anonymous int64
	// Files is the number of open file descriptors.
	Files int
}

var (
	memoryLine = regexp.MustCompile(`(?m)^(VmHWM|VmRSS|RssAnon):\s+(\d+) kB$`)
	sleepLine  = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)$`)
)

// Use reads what the program has used so far.
func (p *Process) Use() (Usage, error) { return UsageOf(p.Pid()) }

// UsageOf reads what a process has used so far, from Linux.
func UsageOf(pid int) (u Usage, err error) {
	folder := "/proc/" + strconv.Itoa(pid)
	stat, err1 := os.ReadFile(folder + "/stat")
	status, err2 := os.ReadFile(folder + "/status")
	files, err3 := os.ReadDir(folder + "/fd")
	if err := errors.Join(err1, err2, err3); err != nil {
		return u, err
	}
	u.Files = len(files)
	// The second field is the name in parentheses, which may have spaces. Times are in hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	u.System = time.Duration(whole(fields[12])) * 10 * time.Millisecond
	u.CPU = u.System + time.Duration(whole(fields[11]))*10*time.Millisecond
	for _, line := range memoryLine.FindAllSubmatch(status, -1) {
		bytes := whole(string(line[2])) << 10
		switch string(line[1]) {
		case "VmHWM":
			u.Peak = bytes
		case "VmRSS":
			u.Resident = bytes
		default:
			u.Anonymous = bytes
		}
	}
	if u.Resident == 0 {
		return u, errEnded
	}
	u.threads(folder)
	return u, nil
}

// threads adds what is known of each thread. Those that have ended are left out; a Go program keeps its threads.
func (u *Usage) threads(folder string) {
	precise := time.Duration(0)
	tasks, _ := filepath.Glob(folder + "/task/*")
	for _, task := range tasks {
		if text, err := os.ReadFile(task + "/schedstat"); err == nil {
			first, _, _ := strings.Cut(string(text), " ")
			precise += time.Duration(whole(first))
		}
		if text, err := os.ReadFile(task + "/status"); err == nil {
			if found := sleepLine.FindSubmatch(text); found != nil {
				u.Switches += whole(string(found[1]))
			}
		}
	}
	if precise > 0 {
		u.CPU = precise
	}
}

func whole(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // The kernel writes nothing else.
	return n
}
