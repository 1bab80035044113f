//go:build linux

// Package serve runs a real vLLM on the loopback, and does to its processes what a story says.
package serve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Model is the name under which the model is served.
const Model = "tiny"

// Server is a vLLM server that may be started several times.
type Server struct {
	// Folder is that of install.sh, Version the release.
	Folder, Version string
	Story           story.Server
	// Log is the file that receives what the server prints.
	Log string

	port    int
	command *exec.Cmd
	ended   chan struct{}
}

// ListenOn chooses the port; without it the first Launch takes a free one.
func (s *Server) ListenOn(port int) { s.port = port }

// URL is the address of the server.
func (s *Server) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", s.port) }

// startLimit is how long a server may take until it answers; it took 35 to 60 s.
const startLimit = 6 * time.Minute

// Start starts the server and waits until it answers. A server that ends instead is an error
// that names the log.
func (s *Server) Start(ctx context.Context) error {
	if err := s.Launch(); err != nil {
		return err
	}
	deadline := time.Now().Add(startLimit)
	for time.Now().Before(deadline) {
		if s.Healthy(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Stop())
		case <-s.ended:
			// Its children can go on without it.
			return errors.Join(fmt.Errorf("vLLM %s ended while it started; its log is %s", s.Version, s.Log), s.Stop())
		case <-time.After(500 * time.Millisecond):
		}
	}
	return errors.Join(fmt.Errorf("vLLM %s does not answer after %s; its log is %s", s.Version, startLimit, s.Log), s.Stop())
}

// freePort returns a port of the loopback at which nothing listens.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
}

// Launch starts the process, at the same port as before.
func (s *Server) Launch() error {
	if s.port == 0 {
		port, err := freePort()
		if err != nil {
			return err
		}
		s.port = port
	}
	folder, err := filepath.Abs(s.Folder)
	if err != nil {
		return err
	}
	model := filepath.Join(folder, "model")
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	bin := filepath.Join(folder, s.Version, "bin")
	args := []string{
		"serve", model, "--served-model-name", Model, "--host", "127.0.0.1", "--port", strconv.Itoa(s.port),
		"--load-format", "dummy", "--enforce-eager", "--dtype", "bfloat16", "--max-num-seqs", "16", "--max-model-len", "4096",
	}
	if s.Version == "0.16.0" {
		// Where a processor has AMX, larger blocks make it choose a kernel that is not in its wheel.
		args = append(args, "--block-size=16")
	}
	args = append(args, s.Story.Flags...)
	for n := range s.Story.Adapters {
		args = append(args, fmt.Sprintf("%s=%s", Adapter(n+1), filepath.Join(model, fmt.Sprintf("adapter-%d", n+1))))
	}
	command := exec.Command(filepath.Join(bin, "vllm"), args...) //nolint:gosec // The program is the one that install.sh made.
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(),
		"PATH="+bin+":"+os.Getenv("PATH"),
		"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind", "OMP_NUM_THREADS=1",
		"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1")
	command.Env = append(command.Env, s.Story.Env...)
	// A group of its own, so that all of its processes can be ended together.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		return err
	}
	s.command, s.ended = command, make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		_ = command.Wait() // How it ended is in its log.
		close(ended)
	}(s.command, s.ended)
	return nil
}

// Adapter is the name of a LoRA adapter by its number.
func Adapter(n int) string { return fmt.Sprintf("adapter-%d", n) }

// Healthy reports whether /health answers 200 within a second.
func (s *Server) Healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL()+"/health", http.NoBody)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// Running reports whether the server's first process has not ended.
func (s *Server) Running() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// CPU is the processor time of the server's first process so far, also of its threads that have ended.
// It is the API server, where there is one.
func (s *Server) CPU() (time.Duration, error) {
	fields, err := statOf(s.command.Process.Pid)
	if err != nil {
		return 0, err
	}
	// Times are in hundredths of a second.
	var user, system int64
	if _, err := fmt.Sscan(strings.Join(fields[11:13], " "), &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// Terminate asks the server to end and waits until it has.
func (s *Server) Terminate() error {
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
	}
	return s.Stop()
}

// Stop kills all processes of the server.
func (s *Server) Stop() error {
	if s.command == nil {
		return nil
	}
	if err := syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	<-s.ended
	// A child can outlive its group's first process for a moment, and holds the port.
	time.Sleep(500 * time.Millisecond)
	return nil
}
