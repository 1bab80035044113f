package main

import (
	"io"
	"os"
	"os/signal"
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
	want, err := referencePage("../..")
	require.NoError(t, err)
	got, err := os.ReadFile("../../docs/reference/vllmctl.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(got), "run make generate")
}

// Each command says what it does, and each flag what it means.
func TestEveryCommandAndFlagHasAText(t *testing.T) {
	root := newRoot()
	for _, c := range root.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		assert.NotEmpty(t, c.Short, c.Name())
		assert.NotEmpty(t, c.Long, c.Name())
		assert.NotEmpty(t, c.Example, c.Name())
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			assert.LessOrEqual(t, len(line), 110, "%s: %s", c.Name(), line)
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
