package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// buffer can be read while a command writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func TestCommandLinesAndTheirErrors(t *testing.T) {
	for _, c := range []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"nothing prints the help", nil, 0, "vllmsim replay", ""},
		{"help", []string{"help"}, 0, "vllmsim record", ""},
		{"help of a command", []string{"serve", "-h"}, 0, "", "-dialect"},
		{"version", []string{"--version"}, 0, "vllmsim version ", ""},
		{"unknown command", []string{"sevre"}, 2, "", `unknown command "sevre"`},
		{"unknown flag", []string{"serve", "--dialekt", "v1"}, 2, "", "flag provided but not defined: -dialekt"},
		{"stray argument", []string{"serve", "v1"}, 2, "", `unexpected argument "v1"`},
		{"unknown dialect", []string{"serve", "--dialect", "v2"}, 2, "", "unknown dialect"},
		{"not loopback", []string{"serve", "--listen", "0.0.0.0:0"}, 1, "", "not on loopback"},
		{"uptime too long", []string{"serve", "--uptime", "48h"}, 2, "", "not between 0 and 24h"},
		{"replay of nothing", []string{"replay"}, 2, "", "want one FILE or DIR"},
		{"replay of a missing file", []string{"replay", "/does/not/exist"}, 1, "", "no such file"},
		{"replay not on loopback", []string{"replay", "main.go", "--listen", "10.0.0.1:0"}, 1, "", "not on loopback"},
		{"replay into the past", []string{"replay", "main.go", "--every", "-1s"}, 2, "", "below 0"},
		{"record without folder", []string{"record", "http://127.0.0.1:1"}, 2, "", "want URL and DIR"},
		{"record of no URL", []string{"record", "nowhere", "dir"}, 1, "", "want http://host:port"},
		{"record from a closed port", []string{"record", "http://127.0.0.1:1", t.TempDir()}, 1, "", "nothing was recorded from http://127.0.0.1:1/metrics: "},
		{"unknown hardware", []string{"serve", "--hardware", "abacus"}, 2, "", "unknown hardware"},
		{"change without time", []string{"serve", "--change", "clock=1"}, 2, "", "want TIME:PARAMETER=VALUE"},
		{"change at no time", []string{"serve", "--change", "soon:clock=1"}, 2, "", "want a duration"},
		{"change of nothing known", []string{"serve", "--change", "1s:mood=1"}, 2, "", "want one of [clock bandwidth"},
		{"change to no number", []string{"serve", "--change", "1s:clock=low"}, 2, "", `value "low" is not a number`},
		{"change of no engine", []string{"serve", "--change", "1s:clock=1@all"}, 2, "", `engine "all"`},
		{"change of a missing engine", []string{"serve", "--hardware", "8b-h100", "--change", "1s:clock=1@1"}, 2, "", "there is no engine 1"},
		{"truth into nowhere", []string{"serve", "--hardware", "8b-h100", "--truth", "/does/not/exist"}, 1, "", "no such file"},
		{"scenario from nowhere", []string{"serve", "--scenario", "/does/not/exist"}, 1, "", "no such file"},
		{"scenario and a flag against it", []string{"serve", "--scenario", "../../../examples/scenarios/idle.yaml", "--rate", "9"}, 2, "", "-rate: it cannot be combined with -scenario"},
		{"scenario of many engines in a dialect of one", []string{
			"serve", "--scenario", "../../../examples/scenarios/engine-imbalance.yaml", "--dialect", "v0",
		}, 2, "", "one engine per server"},
		{"scenario that counts its servers", []string{
			"serve", "--scenario", "../../../examples/scenarios/replica-imbalance.yaml", "--targets", "2",
		}, 2, "", "-targets: it cannot be combined with this file, which has 4 servers"},
		{"standing still", []string{"serve", "--speed", "0"}, 2, "", "-speed 0 is not between 0.01 and 1000"},
		{"traffic of no kind", []string{"traffic"}, 2, "", "want one kind of traffic, got 0: one of assistant, batch"},
		{"traffic of an unknown kind", []string{"traffic", "mail"}, 2, "", `unknown kind of traffic "mail": want one of assistant`},
		{"traffic of no length", []string{"traffic", "batch", "--seconds", "0"}, 2, "", "0 s is not a length of traffic"},
		{"traffic against a missing file", []string{"traffic", "batch", "--against", "/does/not/exist"}, 1, "", "no such file"},
		{"traffic against no trace", []string{"traffic", "batch", "--against", "main.go"}, 1, "", "main.go: line 1: the header has no column arrival_s"},
		{"help of traffic", []string{"traffic", "-h"}, 0, "", "conversations with a coding assistant"},
		{"curves of nothing", []string{"curves", "x"}, 2, "", "unexpected argument"},
		{"curves of unknown hardware", []string{"curves", "--hardware", "abacus"}, 2, "", "want one of 32b-b300, 32b-h200"},
		{"curves", []string{"curves", "--hardware", "8b-h100"}, 0, "8b-h100,ttft_by_prompt,1024,ttft_mean,0.0", ""},
		{"plots nowhere", []string{"plots"}, 2, "", "want one DIR"},
		{"plots into nothing", []string{"plots", "/does/not/exist"}, 1, "", "no such file"},
		{"fidelity of something", []string{"fidelity", "x"}, 2, "", "unexpected argument"},
		{"fidelity without the reference data", []string{"fidelity", "-shared", "/does/not/exist", "-page", "main.go"}, 0, "", "skipped, and no page is changed: no reference data: there is no folder /does/not/exist/profiles"},
		{"bodies in two places", []string{"bodies", "a", "b"}, 2, "", "at most one DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr buffer
			assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr))
			assert.Contains(t, stdout.String(), c.stdout)
			assert.Contains(t, stderr.String(), c.stderr)
		})
	}
}

var metricsURL = regexp.MustCompile(`http://\S+/metrics`)

// started runs a command until it prints where it listens; the returned function
// stops it as Ctrl-C does and returns its exit code.
func started(t *testing.T, args ...string) (urls []string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var stdout, stderr buffer
	done := make(chan int, 1)
	go func() { done <- run(ctx, args, &stdout, &stderr) }()
	require.Eventually(t, func() bool { return metricsURL.MatchString(stdout.String()) }, 10*time.Second, 5*time.Millisecond,
		"stderr: %s", &stderr)
	return metricsURL.FindAllString(stdout.String(), -1), func() int {
		cancel()
		http.DefaultClient.CloseIdleConnections()
		return <-done
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

// TestTrafficIsWrittenReadAndCompared reads back what the command wrote: compared with itself,
// it has the same statistics.
func TestTrafficIsWrittenReadAndCompared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "written.csv")
	var written, table, stderr buffer
	require.Zero(t, run(t.Context(), []string{"traffic", "long-context", "--rate", "2", "--seconds", "7000", "--seed", "7"}, &written, &stderr), &stderr)
	require.NoError(t, os.WriteFile(path, []byte(written.String()), 0o600))
	assert.Greater(t, strings.Count(written.String(), "\n"), 10000)
	// The span of a trace is that of its last request, so the length is given.
	require.Zero(t, run(t.Context(), []string{"traffic", "--against", path, "long-context", "--rate", "2", "--seconds", "7000", "--seed", "7"}, &table, &stderr), &stderr)
	lines := strings.Split(strings.TrimSpace(table.String()), "\n")
	assert.Equal(t, []string{"written", "long-context"}, strings.Fields(lines[0]))
	assert.Len(t, lines, 15)
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		assert.Equal(t, fields[len(fields)-1], fields[len(fields)-2], line)
	}
}

func TestAScenarioRunsInRealTimeOrFaster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	truth := filepath.Join(t.TempDir(), "truth.json")
	var stdout, stderr buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{
			"serve", "--listen", "127.0.0.1:0", "--scenario", "../../../examples/scenarios/unreachable.yaml", "--speed", "150", "--truth", truth,
		}, &stdout, &stderr)
	}()
	require.Eventually(t, func() bool { return metricsURL.MatchString(stdout.String()) }, 10*time.Second, 5*time.Millisecond, "stderr: %s", &stderr)
	url := metricsURL.FindString(stdout.String())
	answers := func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		_ = response.Body.Close()
		return true
	}
	assert.True(t, answers())
	// Minutes 10 to 13 are from 4 s to 5.2 s.
	require.Eventually(t, func() bool { return !answers() }, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, answers, 10*time.Second, 10*time.Millisecond)
	cancel()
	assert.Equal(t, 0, <-done)
	assert.Contains(t, stdout.String(), "unreachable, 17m0s: no connection to the server succeeds")
	assert.Contains(t, stdout.String(), "10m0s unreachable until 13m0s")
	written, err := os.ReadFile(truth)
	require.NoError(t, err)
	assert.Greater(t, bytes.Count(written, []byte("\n")), 1000)
	assert.Equal(t, []string{`{"injected":"unreachable","server":0,"at":600,"until":780}`}, injectedLines(written))
}

// The line of the exporters is the first one.
func TestServeShowsGPUsOnAPortOfTheirOwn(t *testing.T) {
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--gpus", "--gpu-listen", "127.0.0.1:0", "--uptime", "5m")
	assert.Contains(t, fetch(t, urls[0]), "DCGM_FI_DEV_POWER_VIOLATION{")
	assert.Zero(t, stop())
}

func TestServeRecordReplay(t *testing.T) {
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--targets", "2", "--uptime", "5m", "--vllm-version", "0.13.0")
	require.Len(t, urls, 2)
	assert.Contains(t, fetch(t, urls[1]), "vllm:generation_tokens_total")

	dir := filepath.Join(t.TempDir(), "recorded")
	var stdout, stderr buffer
	code := run(t.Context(), []string{"record", urls[0], "--for", "4s", "--every", "3s", dir}, &stdout, &stderr)
	require.Zero(t, code, stderr.String())
	assert.Regexp(t, `\d+ bodies in`, stdout.String())
	assert.Zero(t, stop())

	first, err := os.ReadFile(filepath.Join(dir, "000001.txt"))
	require.NoError(t, err)
	replayed, stopReplay := started(t, "replay", dir, "--listen", "127.0.0.1:0")
	assert.Equal(t, string(first), fetch(t, replayed[0]))
	assert.JSONEq(t, `{"version":"0.13.0"}`, fetch(t, replayed[0][:len(replayed[0])-len("metrics")]+"version"))
	assert.Zero(t, stopReplay())
}

func TestServeStopsByItselfAfterItsTime(t *testing.T) {
	var stdout, stderr buffer
	began := time.Now()
	assert.Zero(t, run(t.Context(), []string{"serve", "--listen", "127.0.0.1:0", "--for", "100ms"}, &stdout, &stderr))
	assert.GreaterOrEqual(t, time.Since(began), 100*time.Millisecond)
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.Regexp(t, `^vllmsim serve: v1, metrics at http://127\.0\.0\.1:\d+/metrics\n$`, stdout.String())
}

func TestServeWritesTheTruthOfASimulatedEngine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "truth.jsonl")
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--hardware", "8b-h100", "--uptime", "2m", "--rate", "5", "--truth", file)
	fetch(t, urls[0])
	assert.Zero(t, stop())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Empty(t, injectedLines(written))
	lines := bytes.Split(bytes.TrimSpace(written), []byte("\n"))
	assert.InDelta(t, 600, len(lines), 250)
	var first truthLine
	require.NoError(t, json.Unmarshal(lines[0], &first))
	assert.Positive(t, first.Prompt)
	assert.Positive(t, first.Ended)
	assert.NotEmpty(t, first.Outcome)
}

func injectedLines(truth []byte) []string {
	var out []string
	for line := range strings.Lines(string(truth)) {
		if strings.Contains(line, `"injected"`) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

func TestTheTruthHasInjectionsWithTheirTimes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "truth.jsonl")
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--hardware", "8b-h100", "--uptime", "2m", "--rate", "5",
		"--engines", "2", "--truth", file, "--change", "90s:bandwidth=0.5@1", "--change", "30s:corruption=0.25", "--change", "1h:clock=0.1")
	fetch(t, urls[0])
	assert.Zero(t, stop())
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, []string{
		`{"injected":"corruption","server":0,"at":30,"value":0.25}`,
		`{"injected":"bandwidth","server":0,"engines":[1],"at":90,"value":0.5}`,
	}, injectedLines(written), "in their order, without later ones")
	assert.Contains(t, string(written), `"outcome"`)
}

func TestServeMakesTheChangesOfItsFlags(t *testing.T) {
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--hardware", "8b-h100", "--uptime", "5m",
		"--change", "200s:sleep=1", "--change", "100s:corruption=1")
	body := fetch(t, urls[0])
	assert.Regexp(t, `vllm:engine_sleep_state\{.*sleep_state="weights_offloaded"\} 1.0`, body)
	assert.Zero(t, stop())
}

func TestWithoutLoadOnlyCallersAreServed(t *testing.T) {
	urls, stop := started(t, "serve", "--listen", "127.0.0.1:0", "--hardware", "8b-h100", "--uptime", "10m", "--no-load")
	assert.Contains(t, fetch(t, urls[0]), "vllm:generation_tokens_total{engine=\"0\",model_name=\"meta-llama/Llama-3.1-8B-Instruct\"} 0.0")
	assert.Zero(t, stop())
}

func TestBodiesWritesAFolderPerScenario(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr buffer
	require.Zero(t, run(t.Context(), []string{"bodies", dir}, &stdout, &stderr))
	for _, name := range []string{"metrics.txt", "metrics-2.txt", "content-type"} {
		assert.FileExists(t, filepath.Join(dir, "v1-0.20.0", name))
	}
}
