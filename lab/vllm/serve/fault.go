//go:build linux

package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Begin does to the server what a fault says. The function that it returns ends the fault.
func (s *Server) Begin(ctx context.Context, f *story.Fault) (end func() error, err error) {
	switch f.Do {
	case "stop":
		return s.stopped(f.Of)
	case "slow":
		return s.slowed(f.Of, f.Share)
	case "one-core":
		return s.oneCore()
	case "neighbour":
		return neighbours(f.Count)
	case "kill":
		return s.killed(ctx, f.Of)
	case "restart":
		return s.restarted()
	case "sleep":
		return func() error { return s.post(ctx, "/wake_up") }, s.post(ctx, "/sleep?level=1")
	default:
		return nil, fmt.Errorf("unknown fault %q", f.Do)
	}
}

func (s *Server) stopped(of string) (func() error, error) {
	processes, err := s.processes(of)
	if err != nil {
		return nil, err
	}
	return func() error { return signal(processes, syscall.SIGCONT) }, signal(processes, syscall.SIGSTOP)
}

// turn is how long a slowed process runs and stands in all. A step takes longer.
const turn = 40 * time.Millisecond

func (s *Server) slowed(of string, share float64) (func() error, error) {
	processes, err := s.processes(of)
	if err != nil {
		return nil, err
	}
	enough, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		runs := time.Duration(share * float64(turn))
		for {
			// One that has ended is an error at the end.
			_ = signal(processes, syscall.SIGSTOP)
			time.Sleep(turn - runs)
			_ = signal(processes, syscall.SIGCONT)
			select {
			case <-enough:
				return
			case <-time.After(runs):
			}
		}
	}()
	return func() error {
		close(enough)
		<-done
		return signal(processes, syscall.SIGCONT)
	}, nil
}

func (s *Server) killed(ctx context.Context, of string) (func() error, error) {
	processes, err := s.processes(of)
	if err != nil {
		return nil, err
	}
	again := func() error {
		// Nobody needs another one where the story was broken off.
		if ctx.Err() != nil || s.Running() && s.Healthy(ctx) {
			return nil
		}
		if err := s.Stop(); err != nil {
			return err
		}
		return s.Launch()
	}
	return again, signal(processes, syscall.SIGKILL)
}

// restarted stops and starts the server while its clients go on: it takes some seconds.
func (s *Server) restarted() (func() error, error) {
	done := make(chan error, 1)
	go func() {
		err := s.Terminate()
		if err == nil {
			err = s.Launch()
		}
		done <- err
	}()
	return func() error { return <-done }, nil
}

// oneCore lets all threads of the server run on the first processor core only.
func (s *Server) oneCore() (func() error, error) {
	processes, err := s.processes("")
	if err != nil {
		return nil, err
	}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(processes[0], &all); err != nil {
		return nil, err
	}
	var one unix.CPUSet
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	set := func(to *unix.CPUSet) error {
		for _, process := range processes {
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", process))
			if err != nil {
				return err
			}
			for _, thread := range threads {
				id, err := strconv.Atoi(filepath.Base(thread))
				if err != nil {
					return err
				}
				if err := unix.SchedSetaffinity(id, to); err != nil && !errors.Is(err, unix.ESRCH) {
					return err
				}
			}
		}
		return nil
	}
	return func() error { return set(&all) }, set(&one)
}

// neighbours starts programs that do nothing but use a processor core each.
func neighbours(count int) (func() error, error) {
	var started []*exec.Cmd
	end := func() error {
		for _, c := range started {
			_ = c.Process.Kill()
			_ = c.Wait() // It was killed.
		}
		return nil
	}
	for range count {
		c := exec.Command("sh", "-c", "while :; do :; done")
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			return nil, errors.Join(err, end())
		}
		started = append(started, c)
	}
	return end, nil
}

func (s *Server) post(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("POST %s answers %s", path, response.Status)
	}
	return nil
}

// signal sends a signal to all processes, also where one of them has ended: the others would
// stand still otherwise.
func signal(processes []int, what syscall.Signal) (err error) {
	for _, p := range processes {
		if one := syscall.Kill(p, what); one != nil {
			err = errors.Join(err, fmt.Errorf("process %d: %w", p, one))
		}
	}
	return err
}

// processes returns the server's processes of a kind: worker, core or api, or a rank of one
// (worker1); all of them for "".
func (s *Server) processes(of string) ([]int, error) {
	kind := strings.TrimRight(of, "0123456789")
	rank := of[len(kind):]
	var all, out []int
	if s.command != nil {
		all = family(s.command.Process.Pid)
	}
	for _, p := range all {
		title := titleOf(p)
		is := map[string]bool{
			"":       true,
			"worker": strings.Contains(title, "VLLM::Worker"),
			"core":   strings.Contains(title, "EngineCore"),
			"api":    strings.Contains(title, "ApiServer") || strings.Contains(title, "vllm serve") || strings.Contains(title, "bin/vllm"),
		}[kind]
		if !is {
			continue
		}
		if rank != "" && !ofRank(p, rank) {
			continue
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the server has no process %q", of)
	}
	return out, nil
}

// ofRank reports whether a process is of a data parallel rank: its own title or that of its
// parent has the number.
func ofRank(process int, rank string) bool {
	for _, p := range []int{process, parentOf(process)} {
		_, after, is := strings.Cut(titleOf(p), "_DP")
		if digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789"))]; is && digits == rank {
			return true
		}
	}
	return false
}

// family returns a process and all that descend from it.
func family(root int) []int {
	out := []int{root}
	entries, _ := os.ReadDir("/proc")
	for grew := true; grew; {
		grew = false
		for _, e := range entries {
			p, err := strconv.Atoi(e.Name())
			if err != nil || slices.Contains(out, p) {
				continue
			}
			if slices.Contains(out, parentOf(p)) {
				out = append(out, p)
				grew = true
			}
		}
	}
	return out
}

func titleOf(process int) string {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", process))
	return strings.TrimSpace(strings.ReplaceAll(string(raw), "\x00", " "))
}

func parentOf(process int) int {
	fields, err := statOf(process)
	if err != nil || len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// statOf returns what Linux knows of a process: the fields from its state on, which is the third of
// /proc/PID/stat. The second is the name of the program in brackets, and may have spaces.
func statOf(process int) ([]string, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process))
	_, rest, _ := strings.Cut(string(raw), ") ")
	return strings.Fields(rest), err
}
