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

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/version"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// lintFlags are the flags of vllmctl lint.
type lintFlags struct {
	spelling, version           string
	stable, prometheus          string
	disable, labels, servers    []string
	json, sarif                 bool
	strict, verbose             bool
	fix, diff, dryRun, allCodes bool
	connect                     connect.Flags
}

func newLint() *cobra.Command {
	f := &lintFlags{}
	c := &cobra.Command{
		Use:   "lint FILE...",
		Short: "Do these rules and dashboards fit the metrics of vLLM?",
		Long: `Checks the PromQL in rules and dashboards against the metrics of vLLM: removed names, counters without
rate, wrong labels, bounds and units, and more. It ignores metrics of other programs.

FILE is a file, a folder with YAML and JSON files, or - for standard input. It reads rules of Prometheus,
Mimir, Thanos and prometheus-adapter, PrometheusRule, alerts and dashboards of Grafana, GrafanaDashboard,
dashboards of Perses, triggers of KEDA, and ConfigMaps with these.

--server and --prometheus also compare with the series that exist. --fix writes only replacements that are
certain. --stable-names proposes this project's names, which are the same for all versions of vLLM.

To suppress a finding, write "# vllmctl-lint: disable=CODE reason" above or in a rule, at the top of a YAML
file, or in the expression of a dashboard.`,
		Example: `  vllmctl lint rules.yaml dashboards/
  vllmctl lint --strict --vllm-version 0.20.0 rules.yaml
  helm template my-chart | vllmctl lint -
  vllmctl lint --prometheus https://mimir.example.com/prometheus --token-file token dashboards/
  vllmctl lint --fix --stable-names suffixed dashboards/`,
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&f.sarif, "sarif", false, "print SARIF 2.1.0 for GitHub, GitLab or Azure")
	flags.BoolVar(&f.strict, "strict", false, "exit with 3 if there are only warnings")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show the line of each finding, and what was skipped")
	flags.BoolVar(&f.fix, "fix", false, "write the certain replacements; keep all other bytes")
	flags.BoolVar(&f.diff, "diff", false, "print the certain replacements as a unified diff")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --fix: print the diff, write nothing")
	flags.StringSliceVar(&f.disable, "disable", nil, "do not report this `code`; repeatable")
	flags.StringSliceVar(&f.labels, "label", nil, "`label` that your deployment adds to the series; repeatable")
	flags.StringVar(&f.version, "vllm-version", "", "check against this `version` of vLLM only")
	flags.StringVar(&f.spelling, "spelling", "", "`form` of names: suffixed, unsuffixed, dotted or wire (default: detected)")
	flags.StringVar(&f.stable, "stable-names", "", "propose stable names in this `form`: suffixed, unsuffixed or dotted")
	flags.StringArrayVar(&f.servers, "server", nil, "`URL` of a vLLM server to compare with; repeatable")
	flags.StringVar(&f.prometheus, "prometheus", "", "`URL` of a Prometheus, Mimir or Thanos to compare with (last day)")
	f.connect.Register(flags, 30*time.Second)
	flags.BoolVar(&f.allCodes, "codes", false, "list all codes and exit")
	return c
}

func (f *lintFlags) run(c *cobra.Command, args []string) error {
	if f.allCodes {
		return printCodes(c.OutOrStdout(), f.json)
	}
	o, err := f.options()
	for _, name := range []string{"prometheus", "vllm-version", "spelling", "stable-names"} {
		if flag := c.Flags().Lookup(name); flag.Changed && flag.Value.String() == "" && err == nil {
			// A variable of the shell that is not set must not look like a comparison.
			err = fmt.Errorf("--%s is empty; give it a value or leave it out", name)
		}
	}
	switch {
	case err != nil:
		return err
	case f.json && f.sarif:
		return errors.New("use either --json or --sarif")
	case f.dryRun && !f.fix && !f.diff:
		return errors.New("--dry-run needs --fix; --diff shows the same")
	case len(args) == 0:
		return fmt.Errorf("name at least one file or folder, or - for standard input; see %q", "vllmctl lint --help")
	}
	ctx := c.Context()
	inputs := lint.Collect(ctx, args, c.InOrStdin())
	if len(f.servers) > 0 || f.prometheus != "" {
		connection, err := f.connect.Open(ctx, zap.NewNop())
		if err != nil {
			return err
		}
		defer func() { _ = connection.Close(context.WithoutCancel(ctx)) }()
		if o.Live, err = f.source(ctx, connection); err != nil {
			return err
		}
	}
	report := lint.Check(ctx, inputs, o)
	write := f.fix && !f.dryRun && !f.diff && ctx.Err() == nil
	if f.fix || f.diff {
		report.Plan(ctx, o)
	}
	if write {
		report.Write()
	}
	if err := f.print(c, report, !write && (f.fix || f.diff)); err != nil {
		return err
	}
	if report.Failure != "" {
		fmt.Fprintln(c.ErrOrStderr(), "vllmctl: the comparison is incomplete:", lint.Printable(report.Failure))
	}
	return status.Found(report.Status(f.strict))
}

// source returns what the files are compared with.
func (f *lintFlags) source(ctx context.Context, connection *connect.Connection) (live.Source, error) {
	client, err := connection.HTTP(ctx, zap.NewNop())
	if err != nil {
		return nil, err
	}
	if f.prometheus == "" {
		var servers []string
		for _, server := range f.servers {
			servers = append(servers, connect.Address(server))
		}
		return live.ReadServers(ctx, client, servers)
	}
	address := connect.Address(f.prometheus)
	p, err := live.NewPrometheus(client, address, time.Now())
	if err == nil {
		err = p.Reach(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("--prometheus %s: %w", live.Shown(address), err)
	}
	return p, nil
}

func (f *lintFlags) options() (lint.Options, error) {
	o := lint.Options{Labels: f.labels, Version: f.version}
	for _, code := range f.disable {
		if !lint.Known(querylint.Code(code)) {
			return o, fmt.Errorf("--disable %s: there is no such code; see %q", code, "vllmctl lint --codes")
		}
		o.Disable = append(o.Disable, querylint.Code(code))
	}
	o.Spelling, o.Stable = querylint.Spelling(f.spelling), querylint.Spelling(f.stable)
	switch _, version := catalog.ParseRelease(f.version); {
	case f.spelling != "" && !known(o.Spelling):
		return o, fmt.Errorf("--spelling %s: write suffixed, unsuffixed, dotted or wire", f.spelling)
	case f.stable != "" && (!known(o.Stable) || o.Stable == querylint.Wire):
		return o, fmt.Errorf("--stable-names %s: write suffixed, unsuffixed or dotted", f.stable)
	case f.version != "" && !version:
		return o, fmt.Errorf("--vllm-version %s: write a version such as 0.20.0", f.version)
	case len(f.servers) > 0 && f.prometheus != "":
		return o, errors.New("use either --server or --prometheus")
	}
	return o, nil
}

func known(s querylint.Spelling) bool {
	return slices.Contains(querylint.Spellings(), s)
}

// print writes the report. A diff goes to standard output alone, so that it can be passed on.
func (f *lintFlags) print(c *cobra.Command, report *lint.Report, diff bool) error {
	out := c.OutOrStdout()
	switch {
	case f.json:
		return plain.JSON(out, report)
	case f.sarif:
		return report.SARIF(out, version.Of())
	}
	terminal := isTerminal(out)
	if diff {
		for i := range report.Files {
			if err := report.Files[i].Diff(out); err != nil {
				return err
			}
		}
		out, terminal = c.ErrOrStderr(), isTerminal(c.ErrOrStderr())
	}
	return report.Print(out, lint.Style{
		Source: terminal || f.verbose, Colour: terminal && os.Getenv("NO_COLOR") == "", Skipped: f.verbose,
	})
}

// lintSection is the part of the reference page about the JSON and the codes.
func lintSection(checkout string) (reference.Section, error) {
	section := reference.Section{Command: "lint"}
	var err error
	section.Document, err = reference.Document(filepath.Join(checkout, "cmd", "vllmctl", "internal", "lint"), "Report")
	for _, r := range lint.Rules() {
		section.Codes = append(section.Codes, reference.Code{Name: string(r.Code), Finds: r.Finds, Bad: r.Bad, Good: r.Good})
	}
	return section, err
}

// codeList is what --codes writes with --json.
type codeList struct {
	Version int              `json:"version"`
	Codes   []querylint.Rule `json:"codes"`
}

// printCodes lists the codes, each with what it finds.
func printCodes(w io.Writer, asJSON bool) error {
	if asJSON {
		return plain.JSON(w, codeList{1, lint.Rules()})
	}
	for _, r := range lint.Rules() {
		if _, err := fmt.Fprintf(w, "%-22s %s\n", r.Code, strings.ReplaceAll(r.Finds, "`", "")); err != nil {
			return err
		}
	}
	return nil
}
