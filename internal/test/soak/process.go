package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// process is a running collector.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// startProcess runs a program. What it writes is added to a file.
func startProcess(program, output string, args ...string) (*process, error) {
	file, err := os.OpenFile(output, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := &process{ended: make(chan struct{})}
	p.cmd = exec.Command(program, args...) //nolint:gosec,noctx // it is ended by a signal, with its exit status checked
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(output), "GODEBUG=" + runtimeTraces}
	p.cmd.Stdout, p.cmd.Stderr = file, file
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("the collector cannot be started: %w", err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// running reports whether the program has not ended.
func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// terminate asks the program to end, and kills it after a time. It returns how long that took.
func (p *process) terminate(limit time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, err
	}
	select {
	case <-p.ended:
		return time.Since(began), p.err
	case <-time.After(limit):
	}
	// It then writes what each goroutine does.
	_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	return limit, fmt.Errorf("the collector did not end within %s of SIGTERM", limit)
}

var memoryLine = regexp.MustCompile(`(?m)^(VmRSS|RssAnon):\s+(\d+) kB$`)

// usage reads memory and file descriptors of the process from Linux.
func (p *process) usage() (sample, error) {
	folder := "/proc/" + strconv.Itoa(p.cmd.Process.Pid)
	status, err := os.ReadFile(folder + "/status")
	if err != nil {
		return sample{}, err
	}
	var s sample
	for _, line := range memoryLine.FindAllSubmatch(status, -1) {
		kib, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			return s, err
		}
		if string(line[1]) == "VmRSS" {
			s.RSS = kib * 1024
		} else {
			s.Anonymous = kib * 1024
		}
	}
	if s.RSS == 0 {
		return s, errors.New("the process has no memory any more")
	}
	files, err := os.ReadDir(folder + "/fd")
	s.Files = float64(len(files))
	return s, err
}

var ownLine = regexp.MustCompile(`(?m)^(otelcol_[a-z_]+)(?:\{[^}]*\})? (\S+)$`)

// ownMetrics reads the collector's own metrics; the series of one name are added.
func ownMetrics(ctx context.Context, port int) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(port)+"/metrics", http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, line := range ownLine.FindAllSubmatch(content, -1) {
		if v, err := strconv.ParseFloat(string(line[2]), 64); err == nil {
			out[string(line[1])] += v
		}
	}
	return out, nil
}
