package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pretend makes this test's own program play the two programs that the
// demonstration starts. Its value says how they behave.
const pretend = "DEMO_TEST_PRETEND"

func TestMain(m *testing.M) {
	if how := os.Getenv(pretend); how != "" {
		os.Exit(play(how, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func play(how string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if args[0] == "real" {
		return serveReally(ctx, how, args)
	}
	if args[0] == "serve" {
		fmt.Println("stand-in listens on", args[2], "with", strings.Join(args, " "))
		<-ctx.Done()
		return 0
	}
	fmt.Println("collector reads", os.Getenv("VLLM_ENDPOINT"), "with", strings.Join(args, " "))
	switch how {
	case "collector fails":
		fmt.Println("cannot start: no such component")
		return 3
	case "collector is silent":
		<-ctx.Done()
		return 0
	}
	began := time.Now()
	server := &http.Server{
		Addr:              os.Getenv("PROMETHEUS_ADDR"),
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "# TYPE vllm_num_requests_running gauge\nvllm_num_requests_running 5 %[1]d\n"+
				"# TYPE vllm_generation_throughput_per_second gauge\nvllm_generation_throughput_per_second 100 %[1]d\n",
				time.Now().UnixMilli())
			if how == "an incident" || how == "a real server" {
				diagnose(w, time.Since(began))
			}
		}),
	}
	go func() { _ = server.ListenAndServe() }()
	<-ctx.Done()
	if how == "collector stops badly" {
		return 4
	}
	return 0
}

// diagnose offers the diagnosis of a server that gets slow after a second and is
// well again after two.
func diagnose(w io.Writer, age time.Duration) {
	slow := age > time.Second && age < 2*time.Second
	states := map[bool]int{true: 1}
	fmt.Fprintf(w, "# TYPE vllm_diagnosis_condition gauge\n"+
		"vllm_diagnosis_condition{engine=\"0\",condition=\"healthy\"} %d\n"+
		"vllm_diagnosis_condition{engine=\"0\",condition=\"degraded\"} %d\n"+
		"# TYPE vllm_diagnosis_cause gauge\n"+
		"vllm_diagnosis_cause{engine=\"0\",cause=\"slow_steps\",role=\"primary\"} %d\n", states[!slow], states[slow], states[slow])
}

// theirs is the incident of "make run".
func theirs() incident {
	i := slowMemory
	i.file = filepath.Join("..", "..", "..", i.file)
	return i
}

func testOptions(t *testing.T, how string) options {
	t.Helper()
	t.Setenv(pretend, how)
	self, err := os.Executable()
	require.NoError(t, err)
	return options{
		collector: self, vllmsim: self, config: "unused.yaml",
		simAddr: freeAddr(t), promAddr: freeAddr(t), fleetAddr: freeAddr(t),
		logs: filepath.Join(t.TempDir(), "logs"), every: 200 * time.Millisecond, incident: theirs(),
	}
}

func freeAddr(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	return listener.Addr().String()
}

func TestDemonstrationShowsWhatTheCollectorSaysAndEndsByItself(t *testing.T) {
	opts := testOptions(t, "all is well")
	opts.runFor = 4 * time.Second
	var out strings.Builder

	require.NoError(t, demonstrate(t.Context(), opts, &out))

	assert.Contains(t, out.String(), "curl http://"+opts.promAddr+"/metrics")
	assert.Contains(t, out.String(), "  http://"+opts.fleetAddr+"/\n", "the address of the page")
	assert.Contains(t, out.String(), nameGeneration, "the legend names the metrics as exported")
	assert.Regexp(t, `(?m)^\S+ +5 +- +- +- +- +100 +-$`, out.String(), "5 running, 100 tokens a second, no diagnosis")
	assert.NotContains(t, out.String(), "What was changed", "the story was not over")
	require.NoError(t, checkFree("", opts.promAddr), "the collector is gone")

	log, err := os.ReadFile(filepath.Join(opts.logs, "vllmsim.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "stand-in listens on "+opts.simAddr)
	log, err = os.ReadFile(filepath.Join(opts.logs, "collector.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "collector reads http://"+opts.simAddr)
	assert.Contains(t, string(log), "metrics::vllm.time_to_first_token_mean::enabled: true", "a column of the table; the preset standard lacks it")
	assert.Contains(t, string(log), "yaml:extensions::vllm_fleet::endpoint: "+opts.fleetAddr+" --config yaml:service::extensions: [vllm_fleet]")
}

func TestTheStoryOfAnIncidentIsPrintedToItsEnd(t *testing.T) {
	opts := testOptions(t, "an incident")
	opts.runFor, opts.incident.epilogue = 5*time.Second, 1500*time.Millisecond
	opts.incident.file = filepath.Join(t.TempDir(), "short.yaml")
	opts.changes = filepath.Join(t.TempDir(), "changes")
	require.NoError(t, os.WriteFile(opts.incident.file, []byte(`
about: short
length: 3m
workload: {rate: 1}
changes: [{at: 2m6.5s, set: {bandwidth: 0.5}}, {at: 2m7.5s, set: {bandwidth: 1}}]
`), 0o600))
	var out strings.Builder

	require.NoError(t, demonstrate(t.Context(), opts, &out))

	said := out.String()
	for _, part := range []string{
		` 5 +- +- +- +- +100  healthy\n`,
		`\n\S+  now degraded: slow_steps\n  found:  Users wait longer than they should.*\n +The engine itself is slower`,
		`\n  next:   Find out what changed when step_time_factor`,
		`\n\S+  now healthy\n  found:  The engine serves`,
		`What was changed on the server, and what the processor reported:
  \S+  changed   the GPU's memory bandwidth falls to 30 %
  \S+  reported  degraded: slow_steps
  \S+  changed   the GPU's memory bandwidth is back to normal
  \S+  reported  healthy
  result: The processor noticed after \S+, with the right cause, and saw the end\s+after \S+\.
`, `The incident is over\..*\nThe server stays .* every 30s\.\n`,
		`are over, stopping\.\nLook at:\n  docs/runbooks/slow_steps\.md  +the runbook of what was found\n  docs/start/dashboards\.md  +the dashboards.*\n$`,
	} {
		at := regexp.MustCompile(part).FindStringIndex(said)
		if !assert.NotNil(t, at, "%s is not in its place in\n%s", part, &out) {
			return
		}
		said = said[at[1]:]
	}
	assert.Empty(t, said)
	_, quiet, _ := strings.Cut(out.String(), "every 30s.")
	quiet, _, _ = strings.Cut(quiet, "are over")
	assert.LessOrEqual(t, strings.Count(quiet, "\n"), 4, "afterwards it is quiet: %s", quiet)

	_, look, found := strings.Cut(out.String(), "Look at:")
	assert.True(t, found)
	for _, file := range regexp.MustCompile(`docs/\S+\.md`).FindAllString(look, -1) {
		assert.FileExists(t, filepath.Join("..", "..", "..", file))
	}

	changes, err := os.ReadFile(opts.changes)
	require.NoError(t, err)
	assert.Equal(t, "healthy\ndegraded: slow_steps\nhealthy\n", string(changes))

	log, err := os.ReadFile(filepath.Join(opts.logs, "vllmsim.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "--scenario "+opts.incident.file+" --uptime 2m6s")
}

func TestInterruptStopsBothPrograms(t *testing.T) {
	opts := testOptions(t, "all is well")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out strings.Builder

	require.NoError(t, demonstrate(ctx, opts, &out))

	assert.Contains(t, out.String(), "Ctrl-C ends both.")
	assert.Contains(t, out.String(), "Stopping.")
	require.NoError(t, checkFree("", opts.promAddr))
}

func TestFailuresAreReportedWithTheirCause(t *testing.T) {
	for how, tc := range map[string]struct {
		runFor time.Duration
		want   []string
	}{
		"collector fails":       {time.Minute, []string{"the collector ended by itself", "exit status 3", "no such component"}},
		"collector is silent":   {2 * time.Second, []string{"no metrics came within 2s", "connection refused", "collector reads http://"}},
		"collector stops badly": {2 * time.Second, []string{"collector did not end cleanly", "exit status 4"}},
	} {
		t.Run(how, func(t *testing.T) {
			opts := testOptions(t, how)
			opts.runFor = tc.runFor

			err := demonstrate(t.Context(), opts, &strings.Builder{})

			for _, part := range tc.want {
				require.ErrorContains(t, err, part)
			}
		})
	}
}

func TestAProgramThatIsNotThereIsReported(t *testing.T) {
	opts := testOptions(t, "all is well")
	opts.collector = filepath.Join(t.TempDir(), "missing")

	err := demonstrate(t.Context(), opts, &strings.Builder{})

	require.ErrorContains(t, err, "start collector")
}

func TestAFileForChangesThatCannotBeWrittenIsReportedBeforeTheStart(t *testing.T) {
	opts := testOptions(t, "all is well")
	opts.changes = filepath.Join(t.TempDir(), "missing", "changes")
	var out strings.Builder

	require.ErrorIs(t, demonstrate(t.Context(), opts, &out), os.ErrNotExist)

	assert.Empty(t, out.String())
}

func TestATakenPortIsNamedTogetherWithTheWayOut(t *testing.T) {
	for setting, choose := range map[string]func(*options) *string{
		"SIM_ADDR":        func(o *options) *string { return &o.simAddr },
		"PROMETHEUS_ADDR": func(o *options) *string { return &o.promAddr },
		"FLEET_ADDR":      func(o *options) *string { return &o.fleetAddr },
	} {
		t.Run(setting, func(t *testing.T) {
			opts := testOptions(t, "all is well")
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			taken := listener.Addr().String()
			*choose(&opts) = taken

			err = demonstrate(t.Context(), opts, &strings.Builder{})

			require.ErrorContains(t, err, taken+" is taken")
			require.ErrorContains(t, err, "make run "+setting+"=")
		})
	}
}
