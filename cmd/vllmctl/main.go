// Command vllmctl answers questions about vLLM servers, rules, dashboards and history before
// a collector is installed. It is one program over the receiver, the processor and the
// catalogue: it has no parser and no formulas of its own.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	context.AfterFunc(ctx, stop) // A second signal ends it at once.
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(int(code))
}

// endings are the signals that end a command in order, so that it gives the terminal back.
func endings() []os.Signal {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // It is with nohup, which a command should survive.
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// run carries out one command line.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) status.Status {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code, unprinted := status.Of(err)
	if unprinted {
		// It can repeat what a server says, and have several lines.
		lines := strings.Split(strings.ReplaceAll(err.Error(), "\t", "  "), "\n")
		for i, line := range lines {
			lines[i] = lint.Printable(line)
		}
		fmt.Fprintln(stderr, "vllmctl:", strings.Join(lines, "\n"))
	}
	return code
}

// addTemplates is once, since the functions of cobra's templates are those of the whole program.
var addTemplates = sync.OnceFunc(func() { cobra.AddTemplateFunc("ownFlags", reference.OwnFlags) })

// newRoot returns the command with all its subcommands. They are made by cobra, because it
// writes help, completion for four shells and the tree that the reference page is generated
// from; the standard library has none of them.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:     "vllmctl",
		Version: version.Of(),
		Short:   "Checks vLLM servers, rules, dashboards and history, without a collector",
		Long: "vllmctl checks vLLM servers, rules, dashboards and history. It needs neither a collector nor a\n" +
			"configuration. It only reads; only \"lint --fix\" changes files.",
		// run prints errors once; a usage text after each would hide them.
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newBacktest(), newCheck(), newLint(), newTop(), newReference())
	// Topics of the help.
	root.AddCommand(&cobra.Command{
		Use: "connection", Short: "Flags for credentials, TLS and a proxy",
		Long: "All commands have these flags for servers and Prometheus:\n\n" + connect.Shared().FlagUsages() +
			"\nOther users of the machine can see arguments: use --token-file for a secret.",
	}, &cobra.Command{Use: "incidents", Short: "File of incidents", Long: incidentsHelp})
	addTemplates()
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), ".LocalFlags.FlagUsages", "ownFlags .", 1))
	return root
}
