package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"
	"golang.org/x/term"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
)

// checkFlags are the flags of check besides those of the connection.
type checkFlags struct {
	config          []string
	kubeconfig      string
	objectives      []string
	delay, interval time.Duration
	json, strict    bool
	running         bool
	verbose         bool
}

func newCheck() *cobra.Command {
	var (
		flags      checkFlags
		connection connect.Flags
	)
	command := &cobra.Command{
		Use:   "check {URL... | --config FILE | --running}",
		Short: "What is wrong with these servers or this configuration?",
		Long: `Scrapes each server twice, as the collector does, and says what is wrong and what to do. It checks the
connection, TLS, credentials, body, version, missing metrics, limits and objectives. --config also checks a
collector's configuration, its exporters, its queues on disk and its permissions in Kubernetes, and says what
will be sent. --running does the same in the container of a running collector, for the files that process 1
was started with and with the environment of this command.

It sends nothing to an exporter but an empty request. "vllm-0:8000" means http://vllm-0:8000/metrics.`,
		Example: `  vllmctl check vllm-0:8000 vllm-1:8000
  vllmctl check --objective ttft=2s --objective itl=80ms vllm-0:8000
  vllmctl check --config otelcol.yaml --strict
  kubectl exec POD -- /vllmctl check --running
  vllmctl check --json vllm-0:8000 | jq '.targets[].findings[].code'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd.Context(), cmd, args, &connection)
		},
	}
	f := command.Flags()
	f.StringArrayVar(&flags.config, "config", nil, "collector's configuration `file`; repeatable, merged as by the collector")
	f.BoolVar(&flags.running, "running", false, "check the configuration of the collector that is process 1 (Linux)")
	f.StringVar(&flags.kubeconfig, "kubeconfig", "", "`file` with the access to Kubernetes (default: as the discovery)")
	f.StringArrayVar(&flags.objectives, "objective", nil, "`latency=time` to compare with the buckets: ttft, itl, tpot, e2e; repeatable")
	f.DurationVar(&flags.delay, "delay", 2*time.Second, "time between the two scrapes")
	f.DurationVar(&flags.interval, "interval", 15*time.Second, "collection interval of the proposed configuration")
	f.BoolVar(&flags.json, "json", false, "print JSON")
	f.BoolVar(&flags.strict, "strict", false, "exit with 3 if there are only warnings")
	f.BoolVarP(&flags.verbose, "verbose", "v", false, "also show what is right, infos, all details and links")
	connection.Register(f, 10*time.Second)
	return command
}

func (c *checkFlags) run(ctx context.Context, cmd *cobra.Command, args []string, connection *connect.Flags) error {
	if err := c.validate(cmd, args); err != nil {
		return err
	}
	report, err := c.look(ctx, cmd, args, connection)
	if err != nil {
		return err
	}
	if err := c.print(cmd.OutOrStdout(), report); err != nil {
		return fmt.Errorf("the result cannot be written: %w", err)
	}
	return status.Found(status.Status(report.Status))
}

// ofConfiguration are the flags that a configuration sets itself.
var ofConfiguration = []string{"header", "token-file", "ca-file", "cert-file", "key-file", "server-name", "insecure-skip-verify", "proxy-url", "timeout", "interval", "objective"}

func (c *checkFlags) validate(cmd *cobra.Command, args []string) error {
	switch {
	case c.running && len(args)+len(c.config) > 0:
		return errors.New("--running has the servers and the files of the running collector; leave out servers and --config")
	case len(args) == 0 && len(c.config) == 0 && !c.running:
		return errors.New("name the servers to check, for example http://vllm-0:8000, or a configuration with --config or --running")
	case len(args) > 0 && len(c.config) > 0:
		return errors.New("name either servers or --config; the configuration has its own servers")
	case slices.ContainsFunc(args, func(address string) bool { return strings.TrimSpace(address) == "" }):
		return errors.New("the address of a server is empty, perhaps an unset variable; write for example http://vllm-0:8000")
	case c.delay <= 0:
		return fmt.Errorf("--delay %s must be longer than 0", c.delay)
	case c.interval < time.Millisecond:
		return fmt.Errorf("--interval %s is too short; write for example 15s", c.interval)
	case len(args) > 0 && c.kubeconfig != "":
		return errors.New("--kubeconfig needs --config with a discovery")
	}
	if timeout, err := cmd.Flags().GetDuration("timeout"); err == nil && cmd.Flags().Changed("timeout") && timeout > c.interval && len(args) > 0 {
		return fmt.Errorf("--timeout %s is longer than --interval %s, so the collector would skip scrapes; raise --interval", timeout, c.interval)
	}
	if len(args) == 0 {
		for _, name := range ofConfiguration {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s has no effect with a configuration; set it in the configuration", name)
			}
		}
	}
	return nil
}

func (c *checkFlags) look(ctx context.Context, cmd *cobra.Command, args []string, connection *connect.Flags) (*check.Report, error) {
	if c.running {
		var err error
		if c.config, err = check.Running("/proc"); err != nil {
			return nil, err
		}
	}
	if len(c.config) > 0 {
		return check.Configured(ctx, c.config, check.Settings{Delay: c.delay, Strict: c.strict, KubeConfig: c.kubeconfig, Running: c.running})
	}
	plan := check.Plan{Delay: c.delay, Strict: c.strict, Given: len(c.objectives) > 0}
	plan.Request.Interval = c.interval
	for _, address := range args {
		if e := connect.Address(address); !slices.Contains(plan.Request.Endpoints, e) {
			plan.Request.Endpoints = append(plan.Request.Endpoints, e)
		}
	}
	plan.Request.Promises = check.Promises()
	if plan.Given {
		plan.Request.Promises = nil
		for _, written := range c.objectives {
			promise, err := check.ParsePromise(written)
			if err != nil {
				return nil, err
			}
			plan.Request.Promises = append(plan.Request.Promises, promise)
		}
	}
	open, err := connection.Open(ctx, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer open.Close(context.WithoutCancel(ctx))
	if plan.Request.Client, plan.Request.Extensions, err = connection.Settings(); err != nil {
		return nil, err
	}
	if !cmd.Flags().Changed("timeout") && c.interval < 10*time.Second {
		// An interval shorter than the default timeout is not a mistake.
		plan.Request.Client["timeout"] = c.interval.String()
	}
	return plan.Servers(ctx, open.Host)
}

func (c *checkFlags) print(to io.Writer, report *check.Report) error {
	if c.json {
		return plain.JSON(to, report)
	}
	return report.Write(to, check.Style{Color: isTerminal(to) && os.Getenv("NO_COLOR") == "", Verbose: c.verbose})
}

// isTerminal reports whether text is read by a person.
func isTerminal(to io.Writer) bool {
	file, is := to.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// checkSection is the part of the reference page about the JSON and the codes.
func checkSection(checkout string) (reference.Section, error) {
	section := reference.Section{Command: "check"}
	var err error
	section.Document, err = reference.Document(filepath.Join(checkout, "cmd", "vllmctl", "internal", "check"), "Report")
	for _, c := range check.Codes() {
		section.Codes = append(section.Codes, reference.Code{Name: c.Name, Level: c.Severity, Finds: c.Finds})
	}
	return section, err
}
