package main

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// ctl runs vllmctl, and returns its exit status and what it prints.
func ctl(t *testing.T, args ...string) (code status.Status, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), args, strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// closedPipe is an output whose reader is gone.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWithoutArgumentsItListsItsCommands(t *testing.T) {
	code, out, errs := ctl(t)
	assert.Equal(t, status.OK, code)
	assert.Contains(t, out, "completion")
	assert.NotContains(t, out, "reference", "that command is for the project itself")
	assert.Empty(t, errs)
}

func TestItSaysItsVersion(t *testing.T) {
	code, out, errs := ctl(t, "--version")
	assert.Equal(t, status.OK, code)
	assert.Regexp(t, `^vllmctl version \S+\n$`, out)
	assert.Empty(t, errs)
}

func TestAWrongCommandLineIsNoResult(t *testing.T) {
	for name, args := range map[string][]string{"command": {"chekc"}, "flag": {"--nonsense"}, "flag of a command": {"reference", "--nonsense"}} {
		code, out, errs := ctl(t, args...)
		assert.Equal(t, status.Failed, code, name)
		assert.Empty(t, out, name)
		assert.Equal(t, 1, strings.Count(errs, "vllmctl: "), "%s: one message, and no usage text after it: %s", name, errs)
	}
}

func TestThereAreCompletionsForFourShells(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, _ := ctl(t, "completion", shell)
		assert.Equal(t, status.OK, code)
		assert.Contains(t, out, "vllmctl", shell)
	}
}

func TestTheReferencePageIsThatOfTheCommands(t *testing.T) {
	files, err := referenceFiles("../..")
	require.NoError(t, err)
	require.Len(t, files, 5)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", name))
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), "run make generate")
	}
}

// The help of a command says what it does, and fits a screen.
func TestTheHelpFitsAScreen(t *testing.T) {
	for _, c := range newRoot().Commands() {
		if c.Hidden || c.Name() == "completion" {
			continue
		}
		_, out, _ := ctl(t, "help", c.Name())
		lines := strings.Split(out, "\n")
		assert.LessOrEqual(t, len(lines), 45, c.Name())
		for _, line := range lines {
			assert.LessOrEqual(t, len(line), 115, "%s: %s", c.Name(), line)
		}
		if c.Runnable() {
			assert.NotEmpty(t, c.Long, c.Name())
			assert.NotEmpty(t, c.Example, c.Name())
			assert.Contains(t, out, "vllmctl help connection", c.Name())
		}
	}
}

// A terminal that is closed sends SIGHUP, and another program may send it as well: the
// terminal must be given back.
func TestAHangupEndsACommandInOrderExceptUnderNohup(t *testing.T) {
	// The tests themselves may run under nohup.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	assert.Contains(t, endings(), os.Signal(syscall.SIGHUP))
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	assert.NotContains(t, endings(), os.Signal(syscall.SIGHUP))
}
