//go:build linux

package real

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Where this is set, a test of this program is the server. Its value is the file that notes
// requests.
const pretend = "LAB_VLLM_PRETEND"

// script stands for the program vllm: a process with the title of a worker, and the server.
const script = `#!/bin/bash
bash -c 'exec -a VLLM::Worker sleep 60' &
exec %q -test.run '^TestPretend$' -- "$@"
`

// TestPretend is not a test: it plays the server.
func TestPretend(t *testing.T) {
	noted := os.Getenv(pretend)
	if noted == "" {
		t.Skip("it plays a server for other tests")
	}
	port := flag.Args()[slices.Index(flag.Args(), "--port")+1]
	http.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/v1/completions", func(w http.ResponseWriter, _ *http.Request) {
		_ = os.WriteFile(noted, []byte("asked"), 0o600)
		time.Sleep(50 * time.Millisecond)
		fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: [DONE]\n\n")
	})
	_ = http.ListenAndServe("127.0.0.1:"+port, nil)
}

func pretended(t *testing.T) (o *Options, port int, noted string) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	self, err := os.Executable()
	require.NoError(t, err)
	dir := t.TempDir()
	noted = filepath.Join(dir, "noted")
	t.Setenv(pretend, noted)
	bin := filepath.Join(dir, "9", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "vllm"), fmt.Appendf(nil, script, self), 0o755))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port = listener.Addr().(*net.TCPAddr).Port
	require.NoError(t, listener.Close())
	return &Options{Folder: dir, Version: "9", Logs: filepath.Join(dir, "logs"), Lengths: story.Phase{
		Prompt: story.Lengths{Mean: 3, Most: 9}, Output: story.Lengths{Mean: 3, Most: 9},
	}}, port, noted
}

var brief = Shown{
	Clients: 2, WarmUp: 100 * time.Millisecond, After: 100 * time.Millisecond, For: 200 * time.Millisecond,
	Fault: story.Fault{Do: "slow", Of: "worker", Share: 0.5},
}

func TestWhatIsShownIsSaidAndEndsWhenAsked(t *testing.T) {
	o, port, noted := pretended(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	from, to := io.Pipe()
	o.Say = to
	done := make(chan error, 1)
	go func() {
		done <- Show(ctx, o, port, &brief)
		_ = to.Close()
	}()

	var lines []string
	for scanner := bufio.NewScanner(from); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if scanner.Text() == "the fault ends" {
			assert.FileExists(t, noted, "clients send requests")
			cancel()
		}
	}

	require.NoError(t, <-done, "to be asked to end is not a failure")
	require.Len(t, lines, 4)
	assert.Contains(t, lines[0], "Starting vLLM 9 ")
	assert.Equal(t, []string{"ready", "the fault begins", "the fault ends"}, lines[1:])
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	require.NoError(t, err, "the server is gone")
	require.NoError(t, listener.Close())
}

func TestAServerThatIsShownAndEndsIsAFailure(t *testing.T) {
	o, port, _ := pretended(t)
	o.Say = io.Discard
	for name, tc := range map[string]struct {
		script, want string
	}{
		"at once": {"#!/bin/sh\nexit 1\n", "ended while it started"},
		"later":   {strings.Replace(script, "exec %q", "(sleep 3; kill $$) & exec %q", 1), "ended by itself"},
	} {
		t.Run(name, func(t *testing.T) {
			self, err := os.Executable()
			require.NoError(t, err)
			if strings.Contains(tc.script, "%q") {
				tc.script = fmt.Sprintf(tc.script, self)
			}
			require.NoError(t, os.WriteFile(filepath.Join(o.Folder, "9", "bin", "vllm"), []byte(tc.script), 0o755))

			require.ErrorContains(t, Show(t.Context(), o, port, &brief), tc.want)
		})
	}
}

// lab/cmd/demo reads these lines, and does not import the lab.
func TestTheDemoKnowsWhatIsSaid(t *testing.T) {
	source, err := os.ReadFile("../../../lab/cmd/demo/real.go")
	require.NoError(t, err)
	for _, line := range []string{"ready", "the fault begins", "the fault ends"} {
		assert.Contains(t, string(source), `= "`+line+`"`)
	}
}
