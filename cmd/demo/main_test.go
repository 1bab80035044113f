package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
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
	if args[0] == "serve" {
		fmt.Println("stand-in listens on", args[2])
		<-ctx.Done()
		return 0
	}
	fmt.Println("collector reads", os.Getenv("VLLM_ENDPOINT"))
	switch how {
	case "collector fails":
		fmt.Println("cannot start: no such component")
		return 3
	case "collector is silent":
		<-ctx.Done()
		return 0
	}
	server := &http.Server{
		Addr:              os.Getenv("PROMETHEUS_ADDR"),
		ReadHeaderTimeout: time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "# TYPE vllm_num_requests_running gauge\nvllm_num_requests_running 5 %[1]d\n"+
				"# TYPE vllm_generation_throughput_per_second gauge\nvllm_generation_throughput_per_second 100 %[1]d\n",
				time.Now().UnixMilli())
		}),
	}
	go func() { _ = server.ListenAndServe() }()
	<-ctx.Done()
	if how == "collector stops badly" {
		return 4
	}
	return 0
}

func testOptions(t *testing.T, how string) options {
	t.Helper()
	t.Setenv(pretend, how)
	self, err := os.Executable()
	require.NoError(t, err)
	return options{
		collector: self, vllmsim: self, config: "unused.yaml",
		simAddr: freeAddr(t), promAddr: freeAddr(t),
		logs: filepath.Join(t.TempDir(), "logs"), every: 200 * time.Millisecond,
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
	assert.Contains(t, out.String(), nameGeneration, "the legend names the metrics as exported")
	assert.Regexp(t, `(?m)^\S+ +5 +- +- +- +100 `, out.String(), "5 running, 100 tokens a second")
	require.NoError(t, checkFree("", opts.promAddr), "the collector is gone")

	log, err := os.ReadFile(filepath.Join(opts.logs, "vllmsim.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "stand-in listens on "+opts.simAddr)
	log, err = os.ReadFile(filepath.Join(opts.logs, "collector.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "collector reads http://"+opts.simAddr)
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

func TestATakenPortIsNamedTogetherWithTheWayOut(t *testing.T) {
	for setting, choose := range map[string]func(*options) *string{
		"SIM_ADDR":        func(o *options) *string { return &o.simAddr },
		"PROMETHEUS_ADDR": func(o *options) *string { return &o.promAddr },
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
