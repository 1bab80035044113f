package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gdamore/tcell/v2"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"golang.org/x/term"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live/screen"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// topOptions are the flags of top.
type topOptions struct {
	configs    []string
	from       string
	times      live.Times
	once, json bool
	connect    connect.Flags
	// connecting are the flags of connect.
	connecting *pflag.FlagSet
}

func newTop() *cobra.Command {
	opts := &topOptions{connecting: pflag.NewFlagSet("", pflag.ContinueOnError)}
	cmd := &cobra.Command{
		Use:   "top {URL... | --config FILE | --from URL}",
		Short: "How are the engines now, and why?",
		Long: `Watches vLLM servers in the terminal: one row per engine, the worst first, with condition, cause, load,
latencies and throughput. Enter shows evidence and next steps; ? shows all keys. It judges as a collector
would, and reads only /metrics and /version.

A problem shows after two windows; a longer --window is calmer and slower. The usual latencies are learned
in this session, from five windows with traffic. Until then, fixed limits decide.

--config takes servers, objectives, pools and intervals from a collector's configuration, not exporters.
--from asks a collector with the extension vllm_fleet, at once and with all that it has learned.

--once waits until a severe problem would show (two windows and up to four intervals; 90 s where only demand
makes a server slow), prints the table and exits: with 1 if users are harmed (severity 2 or more) or a server
cannot be reached, with 0 after a notice. Small or slow problems need a longer watch. --json prints one
document per interval (NDJSON), or one in all with --once.`,
		Example: `  vllmctl top vllm-0:8000 vllm-1:8000
  vllmctl top --config collector.yaml
  vllmctl top --from http://localhost:55690
  vllmctl top --once vllm-0:8000 || echo "needs action"`,
		RunE: func(cmd *cobra.Command, args []string) error { return opts.run(cmd, args) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&opts.configs, "config", nil, "collector's configuration `file`; repeatable, merged as by the collector")
	flags.StringVar(&opts.from, "from", "", "ask the extension vllm_fleet of a collector at this `URL`")
	flags.DurationVar(&opts.times.Interval, "interval", 0, "time between two scrapes (default 5s; 2s with --once)")
	flags.DurationVar(&opts.times.Window, "window", 0, "time that rates and means cover (default three intervals)")
	flags.BoolVar(&opts.once, "once", false, "print the table once and exit")
	flags.BoolVar(&opts.json, "json", false, "print JSON")
	opts.connect.Register(opts.connecting, live.DefaultInterval)
	flags.AddFlagSet(opts.connecting)
	return cmd
}

func (o *topOptions) run(cmd *cobra.Command, args []string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	var terminal tcell.Screen
	if !o.once && !o.json {
		var err error
		if terminal, err = openTerminal(out); err != nil {
			return err
		}
	}
	log := live.NewLog()
	if o.from != "" {
		return o.ask(cmd, args, log, terminal)
	}
	plan, host, err := o.plan(ctx, cmd.Flags(), args, log)
	if err != nil {
		return err
	}
	session := live.NewSession(plan, log)
	if err := session.Start(ctx, host); err != nil {
		return errors.Join(err, host.Shutdown(ctx))
	}
	switch {
	case o.once:
		err = o.printOnce(ctx, cmd, session, plan)
	case o.json:
		if session.Wait(ctx, plan.TwoScrapes(), (*live.Table).Scraped) == nil { // Else it was interrupted, which is how it ends.
			err = stream(ctx, out, plan.Interval, func() (*live.Table, error) { return session.Table(true), nil })
		}
	default:
		if err = screen.Run(ctx, session, terminal); err != nil {
			err = fmt.Errorf("%w%s", err, instead)
		}
	}
	// ctx may have ended, and what runs should end properly.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	return errors.Join(err, session.Shutdown(ctx), host.Shutdown(ctx))
}

// shutdownLimit is how long the components may take to end.
const shutdownLimit = 5 * time.Second

// instead is what to use where there is no terminal.
const instead = "; use --once for a table, or --json"

// openTerminal returns the screen to draw on. An error says what to use instead.
func openTerminal(out io.Writer) (tcell.Screen, error) {
	file, isFile := out.(*os.File)
	switch {
	case !isFile || !term.IsTerminal(int(file.Fd())):
		return nil, errors.New("the output is not a terminal" + instead)
	case os.Getenv("TERM") == "" || os.Getenv("TERM") == "dumb":
		return nil, fmt.Errorf("the terminal cannot move its cursor (TERM is %q)%s", os.Getenv("TERM"), instead)
	}
	terminal, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("the terminal cannot be used (TERM is %q): %w%s", os.Getenv("TERM"), err, instead)
	}
	return terminal, nil
}

// host is what has extensions to stop.
type topHost interface {
	component.Host
	Shutdown(ctx context.Context) error
}

// plan returns what to run, and starts the extensions that it needs.
func (o *topOptions) plan(ctx context.Context, flags *pflag.FlagSet, args []string, log *live.Log) (*live.Plan, topHost, error) {
	for _, times := range []struct {
		flag  string
		value time.Duration
	}{{"interval", o.times.Interval}, {"window", o.times.Window}} {
		if flags.Changed(times.flag) && times.value <= 0 {
			return nil, nil, fmt.Errorf("--%s %s must be longer than 0; write for example 5s", times.flag, times.value)
		}
	}
	switch {
	case len(args) == 0 && len(o.configs) == 0:
		return nil, nil, errors.New("name the servers, for example vllm-0:8000, a configuration with --config, or a collector with --from")
	case len(args) > 0 && len(o.configs) > 0:
		return nil, nil, errors.New("name either servers or --config; the configuration has its own servers")
	case len(args) > 0:
		return o.ofAddresses(ctx, args, log)
	}
	var set error
	o.connecting.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			set = cmp.Or(set, fmt.Errorf("--%s has no effect with --config; set it in the configuration", f.Name))
		}
	})
	if set != nil {
		return nil, nil, set
	}
	return o.ofFile(ctx, log)
}

// onceInterval is the default time between two scrapes with --once.
const onceInterval = 2 * time.Second

func (o *topOptions) ofAddresses(ctx context.Context, addresses []string, log *live.Log) (*live.Plan, topHost, error) {
	connection, err := o.connect.Open(ctx, log.Logger())
	if err != nil {
		return nil, nil, err
	}
	var endpoints []string
	for _, address := range addresses {
		if e := connect.Address(address); !slices.Contains(endpoints, e) {
			endpoints = append(endpoints, e)
		}
	}
	if o.once && o.times.Interval == 0 {
		// A person waits.
		o.times.Interval = onceInterval
		if o.times.Window > 0 {
			o.times.Interval = max(time.Second, min(onceInterval, o.times.Window/2))
		}
	}
	plan, err := live.OfAddresses(endpoints, &connection.Client, o.times)
	if err != nil {
		return nil, nil, errors.Join(err, connection.Close(ctx))
	}
	return plan, connection.Host, nil
}

func (o *topOptions) ofFile(ctx context.Context, log *live.Log) (*live.Plan, topHost, error) {
	file, err := configfile.Read(ctx, o.configs...)
	if err != nil {
		return nil, nil, err
	}
	if len(file.Problems) > 0 {
		return nil, nil, fmt.Errorf("the configuration has mistakes; vllmctl check --config lists all of them: %w", file.Problems[0])
	}
	plan, err := live.OfFile(file, o.times)
	if err != nil {
		return nil, nil, err
	}
	plan.Notes = append(plan.Notes, file.Warnings...)
	// An authenticator of an exporter may need a secret that only the collector has.
	file.Started = slices.DeleteFunc(file.Started, func(extension string) bool { return !authenticates(file, extension) })
	host, err := file.Host(ctx, log.Logger())
	if err != nil && len(file.Warnings) > 0 {
		err = fmt.Errorf("%w (%s)", err, strings.Join(file.Warnings, "; "))
	}
	if err != nil {
		err = errors.Join(err, host.Shutdown(ctx))
		return nil, nil, err
	}
	return plan, host, nil
}

// authenticates reports whether a receiver names an extension as its authenticator.
func authenticates(file *configfile.File, extension string) bool {
	names := func(client *confighttp.ClientConfig) bool {
		return client.Auth.HasValue() && client.Auth.Get().AuthenticatorID.String() == extension
	}
	return slices.ContainsFunc(file.Receivers, func(r configfile.Receiver) bool {
		return names(&r.Config.Client) || slices.ContainsFunc(r.Config.Targets, func(t vllmreceiver.TargetConfig) bool { return names(&t.Client) })
	})
}

// ask shows what a collector knows. It ends with the first question that fails; the screen waits for the next answer.
func (o *topOptions) ask(cmd *cobra.Command, args []string, log *live.Log, terminal tcell.Screen) (err error) {
	ctx := cmd.Context()
	switch {
	case len(args) > 0 || len(o.configs) > 0:
		return errors.New("name either servers, --config or --from; the collector has its own servers")
	case cmd.Flags().Changed("window"):
		return errors.New("--window has no effect with --from; set it in the processor of the collector")
	}
	connection, err := o.connect.Open(ctx, log.Logger())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, connection.Close(context.WithoutCancel(ctx))) }()
	client, err := connection.HTTP(ctx, log.Logger())
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	fleet, err := live.NewFleet(connect.Address(o.from), client, o.times.Interval, log)
	if err != nil {
		return err
	}
	next := func() (*live.Table, error) {
		if err := fleet.Ask(ctx, live.MostExplained); err != nil {
			return nil, err
		}
		return fleet.Table(true), nil
	}
	if o.json && !o.once {
		return stream(ctx, cmd.OutOrStdout(), fleet.Interval, next)
	}
	table, err := next()
	switch {
	case err != nil:
		return err
	case o.once:
		return o.print(cmd, table)
	}
	following, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { fleet.Follow(following) })
	if err = screen.Run(ctx, fleet, terminal); err != nil {
		err = fmt.Errorf("%w%s", err, instead)
	}
	stop()
	done.Wait()
	return err
}

// printOnce waits until a problem would be reported and prints what there is.
func (o *topOptions) printOnce(ctx context.Context, cmd *cobra.Command, session *live.Session, plan *live.Plan) error {
	limit := plan.Verdicts()
	if file, is := cmd.ErrOrStderr().(*os.File); is && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintf(file, "This takes about %s, and up to %s; a shorter --window takes less.\n", plan.Judging, limit)
	}
	if err := session.Wait(ctx, limit, (*live.Table).Judged); err != nil {
		return err
	}
	return o.print(cmd, session.Table(true))
}

func (o *topOptions) print(cmd *cobra.Command, table *live.Table) error {
	out := cmd.OutOrStdout()
	var err error
	if o.json {
		err = plain.JSONLine(out, table.Document())
	} else {
		err = table.WritePlain(out, widthOf(out))
	}
	if err != nil {
		return err
	}
	return status.Found(table.Status())
}

// widthWithoutTerminal has room for all columns.
const widthWithoutTerminal = 160

// widthOf is how many characters a line of the output can have.
func widthOf(out io.Writer) int {
	if file, isFile := out.(*os.File); isFile {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return widthWithoutTerminal
}

// stream prints a document per interval until ctx ends.
func stream(ctx context.Context, out io.Writer, interval time.Duration, next func() (*live.Table, error)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		table, err := next()
		if err == nil {
			err = plain.JSONLine(out, table.Document())
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// topSection is the part of the reference page that the help of top does not have.
func topSection(checkout string) (reference.Section, error) {
	document, err := reference.Document(filepath.Join(checkout, "cmd", "vllmctl", "internal", "live"), "Document")
	return reference.Section{Command: "top", Document: document}, err
}
