//go:build linux

package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// stand is a shell script in place of vLLM: processes with the titles of a server with two data
// parallel ranks, each a child of the one before it in the list of its rank.
const stand = `
sleeper() { exec -a "$1" sleep 300; }
for rank in 1 10; do
	(exec -a "VLLM::EngineCore_DP$rank" bash <<< '(exec -a VLLM::Worker sleep 300) & wait') &
done
(sleeper VLLM::ApiServer_0) &
wait
`

// running starts the stand-in, and returns when all of its processes are there.
func running(t *testing.T, script string, processes int) *Server {
	t.Helper()
	folder := t.TempDir()
	bin := filepath.Join(folder, "1.2.3", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "vllm"), []byte("#!/usr/bin/env bash\n"+script), 0o700))
	s := &Server{Folder: folder, Version: "1.2.3", Log: filepath.Join(folder, "log")}
	require.NoError(t, s.Launch())
	t.Cleanup(func() { assert.NoError(t, s.Stop()) })
	titled := func() bool {
		n := 0
		for _, p := range family(s.command.Process.Pid) {
			if title := titleOf(p); strings.HasPrefix(title, "VLLM::") || p == s.command.Process.Pid {
				n++
			}
		}
		return n == processes
	}
	require.Eventually(t, titled, time.Minute, 5*time.Millisecond)
	return s
}

// state is the letter of a process's state; empty where there is none.
func state(process int) string {
	fields, _ := statOf(process)
	if len(fields) == 0 {
		return ""
	}
	return fields[0]
}

func become(t *testing.T, processes []int, is func(state string) bool, what string) {
	t.Helper()
	for _, p := range processes {
		require.Eventually(t, func() bool { return is(state(p)) }, time.Minute, time.Millisecond, "%s: process %d is %q", what, p, state(p))
	}
}

func stopped(state string) bool { return state == "T" }
func runs(state string) bool    { return state == "S" || state == "R" }
func gone(state string) bool    { return state == "" || state == "Z" }

func TestProcessesAreFoundByTheirTitles(t *testing.T) {
	s := running(t, stand, 6)
	titles := func(of string) (out []string) {
		found, err := s.processes(of)
		require.NoError(t, err, of)
		for _, p := range found {
			title, _, _ := strings.Cut(titleOf(p), " ")
			out = append(out, title)
		}
		return out
	}
	assert.Len(t, titles(""), 6)
	assert.Equal(t, []string{"VLLM::Worker", "VLLM::Worker"}, titles("worker"))
	assert.ElementsMatch(t, []string{"VLLM::EngineCore_DP1", "VLLM::EngineCore_DP10"}, titles("core"))
	// Rank 10 is not rank 1.
	assert.Equal(t, []string{"VLLM::EngineCore_DP1"}, titles("core1"))
	assert.Equal(t, []string{"VLLM::EngineCore_DP10"}, titles("core10"))
	assert.Len(t, titles("worker1"), 1)
	api := titles("api")
	assert.Contains(t, api, "VLLM::ApiServer_0")
	assert.Len(t, api, 2, "and the program bin/vllm itself: %v", api)
	for _, of := range []string{"core2", "wroker", "7"} {
		_, err := s.processes(of)
		assert.ErrorContains(t, err, fmt.Sprintf("no process %q", of))
	}
	_, err := (&Server{}).processes("worker")
	assert.ErrorContains(t, err, "no process", "nothing was started")
}

func TestAStoppedProcessStandsUntilTheFaultEnds(t *testing.T) {
	s := running(t, stand, 6)
	workers, err := s.processes("worker")
	require.NoError(t, err)
	cores, err := s.processes("core")
	require.NoError(t, err)
	end, err := s.Begin(t.Context(), &story.Fault{Do: "stop", Of: "worker"})
	require.NoError(t, err)
	become(t, workers, stopped, "stopped")
	become(t, cores, runs, "not meant")
	require.NoError(t, end())
	become(t, workers, runs, "the fault is over")
}

// One process ended in that time. That is an error, and all others go on.
func TestAProcessThatEndedDoesNotKeepTheOthersStopped(t *testing.T) {
	for _, f := range []story.Fault{{Do: "stop", Of: "worker"}, {Do: "slow", Of: "worker", Share: 0.1}} {
		s := running(t, stand, 6)
		workers, err := s.processes("worker")
		require.NoError(t, err)
		end, err := s.Begin(t.Context(), &f)
		require.NoError(t, err)
		// Read first: a process that is gone has the parent 0, and a signal to 0 is for our own group.
		parent := parentOf(workers[0])
		require.Greater(t, parent, 1)
		require.NoError(t, syscall.Kill(workers[0], syscall.SIGKILL))
		// So that somebody else reaps it, where the parent has not ended with it.
		if err := syscall.Kill(parent, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			require.NoError(t, err)
		}
		require.Eventually(t, func() bool { return state(workers[0]) == "" }, time.Minute, time.Millisecond)
		assert.Error(t, end(), f.Do)
		become(t, workers[1:], runs, f.Do)
	}
}

func TestASlowedProcessStandsAndRunsInTurns(t *testing.T) {
	s := running(t, stand, 6)
	worker, err := s.processes("worker10")
	require.NoError(t, err)
	end, err := s.Begin(t.Context(), &story.Fault{Do: "slow", Of: "worker10", Share: 0.5})
	require.NoError(t, err)
	for range 3 {
		become(t, worker, stopped, "it stands")
		become(t, worker, runs, "it runs")
	}
	require.NoError(t, end())
	for range 50 {
		time.Sleep(2 * time.Millisecond)
		require.False(t, stopped(state(worker[0])), "the fault is over")
	}
}

func TestAKilledProcessIsGone(t *testing.T) {
	s := running(t, stand, 6)
	worker, err := s.processes("core1")
	require.NoError(t, err)
	again, err := s.Begin(t.Context(), &story.Fault{Do: "kill", Of: "core1"})
	require.NoError(t, err)
	become(t, worker, gone, "killed")
	// Nothing answers at the server's address, so that it is started again.
	first := s.command.Process.Pid
	require.NoError(t, again())
	assert.NotEqual(t, first, s.command.Process.Pid)
	assert.True(t, s.Running())
	become(t, []int{first}, gone, "the first server")
}

func TestAServerIsRestartedWhileItsClientsGoOn(t *testing.T) {
	s := running(t, "trap 'sleep 0.2; exit' TERM\nwhile :; do sleep 0.01; done", 1)
	first := s.command.Process.Pid
	end, err := s.Begin(t.Context(), &story.Fault{Do: "restart"})
	require.NoError(t, err)
	require.NoError(t, end())
	assert.NotEqual(t, first, s.command.Process.Pid)
	assert.True(t, s.Running())
	become(t, []int{first}, gone, "the first server")
}

func TestStopEndsAllProcessesAlsoThoseThatStand(t *testing.T) {
	s := running(t, stand, 6)
	all, err := s.processes("")
	require.NoError(t, err)
	_, err = s.Begin(t.Context(), &story.Fault{Do: "stop"})
	require.NoError(t, err)
	become(t, all, stopped, "all stand")
	require.NoError(t, s.Stop())
	become(t, all, gone, "all were killed")
	assert.False(t, s.Running())
	require.NoError(t, s.Stop(), "nothing is left to stop")
	require.NoError(t, (&Server{}).Stop(), "nothing was started")
}

func TestOneCoreIsForAllThreadsUntilTheFaultEnds(t *testing.T) {
	s := running(t, stand, 6)
	all, err := s.processes("")
	require.NoError(t, err)
	cores := func(p int) int {
		var set unix.CPUSet
		require.NoError(t, unix.SchedGetaffinity(p, &set))
		return set.Count()
	}
	before := cores(all[0])
	if before < 2 {
		t.Skip("this machine has one processor core")
	}
	end, err := s.Begin(t.Context(), &story.Fault{Do: "one-core"})
	require.NoError(t, err)
	for _, p := range all {
		assert.Equal(t, 1, cores(p))
	}
	require.NoError(t, end())
	for _, p := range all {
		assert.Equal(t, before, cores(p))
	}
}

func TestNeighboursEnd(t *testing.T) {
	mine := func() (out []int) {
		for _, p := range family(os.Getpid())[1:] {
			if strings.Contains(titleOf(p), "while :; do :; done") {
				out = append(out, p)
			}
		}
		return out
	}
	end, err := (&Server{}).Begin(t.Context(), &story.Fault{Do: "neighbour", Count: 2})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(mine()) == 2 }, time.Minute, time.Millisecond)
	require.NoError(t, end())
	assert.Empty(t, mine())
	_, err = (&Server{}).Begin(t.Context(), &story.Fault{Do: "explode"})
	assert.ErrorContains(t, err, `unknown fault "explode"`)
}

func TestAServerSleepsAndWakes(t *testing.T) {
	var asked []string
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		if r.URL.Path == "/health" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer h.Close()
	s := &Server{port: h.Listener.Addr().(*net.TCPAddr).Port}
	end, err := s.Begin(t.Context(), &story.Fault{Do: "sleep"})
	require.NoError(t, err)
	require.NoError(t, end())
	assert.False(t, s.Healthy(t.Context()), "503 is not healthy")
	assert.Equal(t, []string{"POST /sleep?level=1", "POST /wake_up", "GET /health"}, asked)
	h.Config.Handler = http.NotFoundHandler()
	_, err = s.Begin(t.Context(), &story.Fault{Do: "sleep"})
	assert.ErrorContains(t, err, "404")
}

func TestAServerThatEndsWhileItStartsIsAnErrorThatNamesItsLog(t *testing.T) {
	folder := t.TempDir()
	s := &Server{Folder: folder, Version: "1.2.3", Log: filepath.Join(folder, "log")}
	require.Error(t, s.Start(t.Context()), "there is no program")
	require.NoError(t, s.Stop())
	bin := filepath.Join(folder, "1.2.3", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	left := filepath.Join(folder, "left")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\"\nsleep 300 &\necho $! > %s\nexit 1\n", left)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "vllm"), []byte(script), 0o700))
	s.Story = story.Server{Flags: []string{"--lora-modules"}, Adapters: 2}
	err := s.Start(t.Context())
	require.ErrorContains(t, err, "ended while it started")
	require.ErrorContains(t, err, s.Log)
	log, err := os.ReadFile(s.Log)
	require.NoError(t, err)
	model := filepath.Join(folder, "model")
	assert.Contains(t, string(log), "serve "+model+" --served-model-name tiny")
	assert.Contains(t, string(log), "--lora-modules adapter-1="+model+"/adapter-1 adapter-2="+model+"/adapter-2\n")
	// What it had started is not left behind.
	raw, err := os.ReadFile(left)
	require.NoError(t, err)
	var child int
	_, err = fmt.Sscan(string(raw), &child)
	require.NoError(t, err)
	become(t, []int{child}, gone, "its child")
}
