package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serveReally plays the program that runs a real server. The collector of the test is slow
// after a second and well after two.
func serveReally(ctx context.Context, how string, args []string) int {
	fmt.Println("Starting with", strings.Join(args, " "))
	switch how {
	case "a server that fails":
		fmt.Fprintln(os.Stderr, "vllm: there is no such release")
		return 1
	case "a server that never starts":
		<-ctx.Done()
		return 0
	}
	for _, line := range []string{saidReady, saidBegins, saidEnds} {
		fmt.Println(line)
		select {
		case <-ctx.Done():
			return 0
		case <-time.After(900 * time.Millisecond):
		}
	}
	<-ctx.Done()
	return 0
}

func realOptions(t *testing.T, how string) options {
	t.Helper()
	opts := testOptions(t, how)
	opts.real, opts.realArgs, opts.incident = opts.collector, []string{"real", "-version", "9"}, slowWorker
	opts.incident.epilogue = 1500 * time.Millisecond
	return opts
}

func TestARealServerSaysItselfWhenItsIncidentIs(t *testing.T) {
	opts := realOptions(t, "a real server")
	opts.runFor = 5 * time.Second
	var out strings.Builder

	require.NoError(t, demonstrate(t.Context(), opts, &out))

	said := out.String()
	for _, part := range []string{
		"^Starting with real -version 9 -listen " + opts.simAddr + "\n",
		`The server is ready after \d s\.\n`,
		`A vLLM server \(a small model without trained weights, no GPU needed\) and the collector\n`,
		`Within two minutes the server has an incident`,
		`now degraded: slow_steps\n`,
		`  \S+  changed   the process that runs the model gets a third of its time
  \S+  reported  degraded: slow_steps
  \S+  changed   the process that runs the model gets all of its time again
  \S+  reported  healthy
  result: The processor noticed after \S+, with the right cause, and saw the end\s+after`,
	} {
		at := regexp.MustCompile(part).FindStringIndex(said)
		if !assert.NotNil(t, at, "%s is not in its place in\n%s", part, &out) {
			return
		}
		said = said[at[1]:]
	}
	for _, simulated := range []string{"imulated", "H100", "GPU's memory"} {
		assert.NotContains(t, out.String(), simulated, "it is not true of a real server on a CPU")
	}
	log, err := os.ReadFile(filepath.Join(opts.logs, "vllm.log"))
	require.NoError(t, err)
	assert.Equal(t, "Starting with real -version 9 -listen "+opts.simAddr+"\nready\nthe fault begins\nthe fault ends\n", string(log))
}

func TestARealServerThatDoesNotStart(t *testing.T) {
	opts := realOptions(t, "a server that fails")
	require.ErrorContains(t, demonstrate(t.Context(), opts, &strings.Builder{}), "vllm: there is no such release")

	opts = realOptions(t, "a server that never starts")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var out strings.Builder
	require.NoError(t, demonstrate(ctx, opts, &out))
	assert.Contains(t, out.String(), "Starting with real")
	assert.Contains(t, out.String(), "Stopping.")
	assert.NoFileExists(t, filepath.Join(opts.logs, "collector.log"), "there is nothing to read yet")
}
