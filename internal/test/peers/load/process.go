// Package load starts the programs of the comparison and measures what they use.
package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running program.
type Process struct {
	cmd   *exec.Cmd
	log   *os.File
	ended chan error
	// Began is when it was started.
	Began time.Time
}

// NewProcess starts a program and writes what it prints to a file. The program is killed when
// ctx ends.
func NewProcess(ctx context.Context, log, program string, args ...string) (*Process, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, args...) //nolint:gosec // the program that is measured
	p := &Process{cmd: command, log: file, ended: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.Began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	go func() { p.ended <- p.cmd.Wait() }()
	return p, nil
}

// stopLimit is how long a program may take to end.
const stopLimit = 20 * time.Second

// Stop ends the program.
func (p *Process) Stop() error {
	defer p.log.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-p.ended:
		return err
	case <-time.After(stopLimit):
		_ = p.cmd.Process.Kill()
		<-p.ended
		return fmt.Errorf("%s did not end within %s", p.cmd.Path, stopLimit)
	}
}

// Ended reports whether the program has ended by itself, with its error.
func (p *Process) Ended() error {
	select {
	case err := <-p.ended:
		p.ended <- err
		return fmt.Errorf("%s ended: %w; its log is %s", p.cmd.Path, errors.Join(err, errEnded), p.log.Name())
	default:
		return nil
	}
}

var errEnded = errors.New("it ended by itself")

// Usage is what a program has used since its start.
type Usage struct {
	// CPU is the processor time of all threads, and System that in the kernel.
	CPU, System time.Duration
	// Switches is how often a thread went to sleep.
	Switches int64
	// Peak is the highest resident memory and Resident that of now, in bytes.
	Peak, Resident int64
}

// tick is the unit of time in /proc: Linux shows programs a hundredth of a second.
const tick = 10 * time.Millisecond

// Use reads what the program has used so far.
func (p *Process) Use() (Usage, error) {
	dir := "/proc/" + strconv.Itoa(p.cmd.Process.Pid)
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Usage{}, err
	}
	// The second field is the name in parentheses, which may have spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	status, err3 := os.Open(dir + "/status")
	if err := errors.Join(err1, err2, err3); err != nil {
		return Usage{}, err
	}
	defer status.Close()
	out := Usage{CPU: time.Duration(user+system) * tick, System: time.Duration(system) * tick, Switches: switches(dir)}
	if precise := onProcessor(dir); precise > 0 {
		out.CPU = precise
	}
	for lines := bufio.NewScanner(status); lines.Scan(); {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		if name != "VmHWM" && name != "VmRSS" {
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return Usage{}, err
		}
		if name == "VmHWM" {
			out.Peak = kilobytes << 10
		} else {
			out.Resident = kilobytes << 10
		}
	}
	return out, nil
}

// onProcessor is the processor time of all threads in nanoseconds, where the kernel counts it.
// Threads that have ended are left out; a Go program keeps its threads.
func onProcessor(dir string) (sum time.Duration) {
	files, _ := filepath.Glob(dir + "/task/*/schedstat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		first, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// switches sums what the threads of a program have slept. Threads that have ended are left out.
func switches(dir string) (sum int64) {
	files, _ := filepath.Glob(dir + "/task/*/status")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if rest, is := strings.CutPrefix(line, "voluntary_ctxt_switches:"); is {
				n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
				sum += n
			}
		}
	}
	return sum
}

// Allocated reads the bytes that a Go program has allocated since its start, from its own
// metrics.
func Allocated(ctx context.Context, address string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "otelcol_process_runtime_total_alloc_bytes") {
			return strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndexByte(line, ' ')+1:]), 64)
		}
	}
	return 0, errors.New("the program does not report what it has allocated")
}
