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
		Short: "Checks rules and dashboards against the metrics that vLLM has",
		Long: "lint finds the expressions in rules and dashboards, and reports those that cannot do what they are for:\n" +
			"names that vLLM has removed, counters without rate, bounds and labels that do not exist, wrong units,\n" +
			"and more. Metrics of other programs are left alone.\n\n" +
			"It reads rules of Prometheus, Mimir and Thanos, PrometheusRule and other objects with groups of rules,\n" +
			"alerts and dashboards of Grafana, GrafanaDashboard, dashboards of Perses, triggers of KEDA, the rules of\n" +
			"prometheus-adapter, and ConfigMaps with such texts.\n" +
			"FILE can be a folder, whose YAML and JSON files are read, or - for standard input.\n\n" +
			"The comment \"# vllmctl-lint: disable=CODE reason\" above a rule, in it, or at the top of a file of YAML\n" +
			"suppresses findings. In a dashboard it can stand in an expression.\n\n" +
			"With --server the names, labels, values and bounds are also compared with what servers of vLLM expose,\n" +
			"and with --prometheus with what a Prometheus, Mimir or Thanos has stored in the last day.\n\n" +
			"--fix writes only replacements that are certain, and --stable-names lets it write the names of this\n" +
			"project, which are the same for all versions of vLLM, in place of vLLM's own.",
		Example: "  vllmctl lint rules.yaml dashboards/\n" +
			"  vllmctl lint --sarif rules.yaml dashboards/ > lint.sarif\n" +
			"  vllmctl lint --strict --vllm-version 0.20.0 rules.yaml\n" +
			"  helm template my-chart | vllmctl lint -\n" +
			"  vllmctl lint --diff rules.yaml\n" +
			"  vllmctl lint --server http://localhost:8000 rules.yaml\n" +
			"  vllmctl lint --prometheus https://mimir.example.com/prometheus --token-file token dashboards/\n" +
			"  vllmctl lint --fix --stable-names suffixed dashboards/\n" +
			"  vllmctl lint --codes",
		RunE: func(c *cobra.Command, args []string) error { return f.run(c, args) },
	}
	flags := c.Flags()
	flags.BoolVar(&f.json, "json", false, "write one JSON document")
	flags.BoolVar(&f.sarif, "sarif", false, "write SARIF 2.1.0, which GitHub, GitLab and Azure show beside the lines of a change")
	flags.BoolVar(&f.strict, "strict", false, "exit with 3 if there are warnings and no errors")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show the line of each finding, and what was skipped")
	flags.BoolVar(&f.fix, "fix", false, "write the replacements that are certain; all other bytes stay as they are")
	flags.BoolVar(&f.diff, "diff", false, "print the replacements that are certain as a unified diff, and write nothing")
	flags.BoolVar(&f.dryRun, "dry-run", false, "with --fix: print the diff and write nothing")
	flags.StringSliceVar(&f.disable, "disable", nil, "do not report this code; can be given several times")
	flags.StringSliceVar(&f.labels, "label", nil, "a label that the series of the deployment have, besides the usual ones")
	flags.StringVar(&f.version, "vllm-version", "", "check against this version of vLLM only")
	flags.StringVar(&f.spelling, "spelling", "", "how names are written: suffixed, unsuffixed, dotted or wire; by default it is found out")
	flags.StringVar(&f.stable, "stable-names", "", "report names of vLLM that have a stable one, in this spelling: suffixed, unsuffixed or dotted")
	flags.StringArrayVar(&f.servers, "server", nil, "the `URL` of a server of vLLM to compare with; can be repeated")
	flags.StringVar(&f.prometheus, "prometheus", "", "the `URL` of a Prometheus, Mimir or Thanos to compare with, without /api/v1")
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
		return errors.New("--json and --sarif exclude each other; use one of them")
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
		fmt.Fprintln(c.ErrOrStderr(), "vllmctl: not everything was compared:", lint.Printable(report.Failure))
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
		return o, errors.New("--server and --prometheus exclude each other; use one of them")
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
		section.Codes = append(section.Codes, reference.Code{Name: string(r.Code), Finds: r.Finds, Do: r.Remedy, Bad: r.Bad, Good: r.Good})
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
