// Command vllmsim simulates vLLM servers, records real ones and replays
// what was recorded. It listens on loopback only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/version"
)

const usage = `vllmsim simulates vLLM servers, on loopback only.

  vllmsim serve [flags]                      a simulated server in any dialect
  vllmsim judge [flags] FILE…                compares the diagnosis with the truth of scenarios
  vllmsim replay [flags] FILE|DIR            serves recorded bodies in turn
  vllmsim curves [flags]                     latencies of the simulated engines as CSV
  vllmsim plots DIR                          draws these latencies as SVG
  vllmsim fidelity [flags]                   compares the simulated engine with real ones
  vllmsim record [flags] URL DIR             records a real server's /metrics
  vllmsim replay-recording [flags] [FOLDER…] sends recordings of real servers through the processor
  vllmsim traffic [flags] NAME               generates the requests of a day or an hour, as a trace
  vllmsim --version                          prints the version

"vllmsim serve -h" and so on list the flags.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // A second signal ends it at once.
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is one subcommand; it returns nil after a clean end.
type command func(ctx context.Context, args []string, stdout, stderr io.Writer) error

// commands are the subcommands. "bodies" writes the project's own test bodies
// and is left out of the usage text.
var commands = map[string]command{
	"serve": serve, "replay": replay, "record": record, "bodies": bodies, "curves": curves, "plots": plots,
	"judge": judgeFiles, "replay-recording": replayRecording, "fidelity": compareWithReal,
	"traffic": generate,
}

// run carries out one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if args[0] == "-h" || args[0] == "-help" || args[0] == "--help" || args[0] == "help" {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if args[0] == "-version" || args[0] == "--version" || args[0] == "version" {
		fmt.Fprintln(stdout, "vllmsim version", version.Of())
		return 0
	}
	cmd, ok := commands[args[0]]
	if !ok {
		fmt.Fprintf(stderr, "vllmsim: unknown command %q\n\n%s", args[0], usage)
		return 2
	}
	switch err := cmd(ctx, args[1:], stdout, stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "vllmsim %s: %v\n", args[0], err)
		return 2
	default:
		fmt.Fprintf(stderr, "vllmsim %s: %v\n", args[0], err)
		return 1
	}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// newFlags returns a flag set that prints its own description on -h.
func newFlags(name, arguments, description string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: vllmsim %s [flags] %s\n\n%s\n\nFlags:\n", name, arguments, description)
		flags.PrintDefaults()
	}
	return flags
}

// parse reads flags at any place among the positional arguments, which it returns.
func parse(flags *flag.FlagSet, args []string) ([]string, error) {
	var positional []string
	for {
		if err := flags.Parse(args); err != nil {
			if errors.Is(err, flag.ErrHelp) {
				return nil, err
			}
			return nil, usageError{err}
		}
		if flags.NArg() == 0 {
			return positional, nil
		}
		positional = append(positional, flags.Arg(0))
		args = flags.Args()[1:]
	}
}

// bounded ends ctx after d, where d is above 0.
func bounded(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}
