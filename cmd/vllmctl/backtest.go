package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"
	_ "time/tzdata" // For --time-zone: the image has no files of time zones.

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/connect"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/plain"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// backtestFlags are the flags of vllmctl backtest.
type backtestFlags struct {
	connect                                    connect.Flags
	prometheus, from, to, zone, match, version string
	config, incidents, html, answer            string
	rules                                      []string
	warmup, margin, step                       time.Duration
	json, all                                  bool
	parallel, maxTargets                       int
}

// incidentsHelp is the topic of the help about the file of --incidents.
const incidentsHelp = `"vllmctl backtest --incidents FILE" reads YAML, or CSV with the same columns:

  incidents:
    - name: slow GPU
      from: 2026-11-20T10:00:00Z
      to: 2026-11-20T10:30:00Z
      targets: ["vllm-0:8000", "chat-*"]   # optional: instances or pods
      cause: slow_steps                    # optional: a cause or a condition

CSV separates targets by spaces or semicolons. A time without a zone needs --time-zone.

An alarm belongs to an incident if it starts during it, or up to --margin before it. An alert can also start
up to --margin after it. If an earlier alarm lasts into the incident, the incident is not missed, but has no
lead time. An alarm is false if it is further than --margin from every incident. Alarms are severities 2 and
3 of the diagnosis, and alerts whose severity is page, critical, high, error, emergency or absent.`

// newBacktest returns the command that judges a history.
func newBacktest() *cobra.Command {
	f := &backtestFlags{}
	c := &cobra.Command{
		Use:   "backtest --prometheus URL [--from TIME] [--to TIME]",
		Short: "What would the diagnosis and my alerts have said about the past?",
		Long: `Replays the history of vLLM servers through the receiver and the processor. It reports the condition of
each engine, its cause and how long it lasted. It only reads, from the API of Prometheus, Thanos, Mimir or
VictoriaMetrics. Metrics can have vLLM's own names or those of the receiver.

--rules also evaluates alerting rules, and compares them with the alerts that fired. --incidents lists
missed incidents, lead times and false alarms; "vllmctl help incidents" has the form of the file.

The diagnosis learns the usual values of a server during the warm-up: give it some hours. A time is
2026-11-20T10:00:00Z, a time in --time-zone, or an offset such as -24h or -7d.`,
		Example: `  vllmctl backtest --prometheus http://prometheus:9090 --from -24h --rules builtin-raw
  vllmctl backtest --prometheus https://mimir --from -7d --incidents incidents.yaml --html report.html`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.StringVar(&f.prometheus, "prometheus", "", "`URL` of the server, before /api/v1")
	flags.StringVar(&f.from, "from", "-24h", "start `time` of the period")
	flags.StringVar(&f.to, "to", "now", "end `time` of the period")
	flags.StringVar(&f.zone, "time-zone", "UTC", "`zone` of the output, and of times without one")
	flags.DurationVar(&f.warmup, "warmup", 2*time.Hour, "history before --from that baselines are learned from")
	flags.StringVar(&f.match, "match", "", "further `matchers` of the servers: 'job=\"vllm\",cluster=\"a\"'")
	flags.StringVar(&f.version, "vllm-version", "", "`version` of vLLM, where the history does not have it")
	flags.StringVar(&f.config, "config", "", "use the vllm receiver and processor of this collector's configuration `file`")
	flags.StringArrayVar(&f.rules, "rules", nil, "`file` of rules; builtin: ours; builtin-raw: ours on vLLM's names; repeatable")
	flags.DurationVar(&f.step, "evaluation-interval", time.Minute, "interval of groups of rules that have none")
	flags.StringVar(&f.incidents, "incidents", "", "`file` of incidents to compare with, YAML or CSV")
	flags.DurationVar(&f.margin, "margin", 15*time.Minute, "how far an alarm can be from its incident")
	flags.StringVar(&f.html, "html", "", "also write a self-contained page to this `file`")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.BoolVar(&f.all, "all", false, "also list changes between harmless conditions")
	flags.IntVar(&f.parallel, "parallel", 3, "concurrent requests")
	flags.IntVar(&f.maxTargets, "max-targets", 500, "most servers to judge")
	flags.StringVar(&f.answer, "max-answer", "64MiB", "largest answer; longer periods are read in parts")
	f.connect.Register(flags, promapi.DefaultDeadline)
	return c
}

func (f *backtestFlags) run(c *cobra.Command) (err error) {
	began := time.Now()
	ctx, stderr := c.Context(), c.ErrOrStderr()
	if f.parallel < 1 || f.maxTargets < 1 {
		return errors.New("--parallel and --max-targets must be at least 1")
	}
	if _, known := catalog.ParseRelease(f.version); f.version != "" && !known {
		return fmt.Errorf("--vllm-version %s: write a version such as 0.20.0", f.version)
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return fmt.Errorf("--time-zone: %q is not known; write for example Europe/Berlin", f.zone)
	}
	period, err := f.period(began, zone)
	if err != nil {
		return err
	}
	receiver, processor, err := f.settings(ctx)
	if err != nil {
		return err
	}
	var incidents []incident.Incident
	if f.incidents != "" {
		if incidents, err = incident.Read(f.incidents, f.incidentZone(c, zone)); err != nil {
			return err
		}
	}
	page, err := f.openPage()
	if err != nil {
		return err
	}
	defer func() { page.discard() }()
	client, address, closeClient, err := f.client(ctx)
	if err != nil {
		return err
	}
	defer closeClient()
	options := &backtest.Options{
		Server: client, Address: address, Period: period, Warmup: f.warmup, Match: f.match,
		Receiver: receiver, Processor: processor, Version: f.version, Parallel: f.parallel, MaxTargets: f.maxTargets,
	}
	if len(f.rules) > 0 {
		options.Rules, err = backtest.NewEngine(ctx, f.rules, receiver.Prefixes, period.From.Add(-f.warmup).Truncate(time.Minute), f.step)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, options.Rules.Close()) }()
	}
	progress := newProgress(stderr)
	options.Progress = progress.set
	out, err := backtest.Run(ctx, options)
	progress.end()
	if err != nil {
		return interrupted(ctx, err)
	}
	if len(out.Found.Targets) == 0 {
		return f.nothing(period)
	}
	r := backtest.Assemble(options, out, incidents, f.incidents != "", f.margin)
	r.Zone = zone
	stats := client.Stats()
	for _, w := range stats.Warnings {
		r.Notes = append(r.Notes, "the server warns: "+w)
	}
	if stats.Large > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("%d series are skipped: their labels are larger than 16 KiB", stats.Large))
	}
	r.Read = report.Read{
		Requests: stats.Queries, Retries: stats.Retries, Bytes: stats.Bytes, Samples: out.Load.Samples,
		Parts: out.Load.Parts, Seconds: time.Since(began).Seconds(),
	}
	if err := page.write(r); err != nil {
		return err
	}
	if err := f.print(c.OutOrStdout(), r); err != nil {
		return err
	}
	if failed := r.Unevaluated(); len(failed) > 0 {
		return fmt.Errorf("%d of the rules failed, so alerts may be missing from the report; the first: %s", len(failed), promapi.Printable(failed[0].String()))
	}
	if r.Compared && r.Failed() {
		return status.Found(status.Problem)
	}
	return nil
}

func (f *backtestFlags) print(w io.Writer, r *report.Report) error {
	if !f.json {
		return report.Text(w, r, f.all)
	}
	return plain.JSON(w, r)
}

// period reads --from and --to.
func (f *backtestFlags) period(now time.Time, zone *time.Location) (history.Span, error) {
	from, err := moment(f.from, now, zone)
	if err != nil {
		return history.Span{}, fmt.Errorf("--from: %w", err)
	}
	to, err := moment(f.to, now, zone)
	if err != nil {
		return history.Span{}, fmt.Errorf("--to: %w", err)
	}
	switch {
	case !to.After(from):
		return history.Span{}, fmt.Errorf("--from (%s) is not before --to (%s)", from.Format(time.RFC3339), to.Format(time.RFC3339))
	case from.After(now):
		return history.Span{}, fmt.Errorf("--from (%s) is in the future", from.Format(time.RFC3339))
	case f.warmup < 0:
		return history.Span{}, errors.New("--warmup must not be negative")
	case f.margin < 0:
		return history.Span{}, errors.New("--margin must not be negative")
	case f.step < time.Second:
		return history.Span{}, errors.New("--evaluation-interval must be at least 1s")
	}
	if to.After(now) {
		to = now.UTC().Truncate(time.Millisecond)
	}
	return history.Span{From: from, To: to}, nil
}

// moment reads a time that may be relative to now.
func moment(text string, now time.Time, zone *time.Location) (time.Time, error) {
	now = now.UTC().Truncate(time.Second)
	if text == "now" {
		return now, nil
	}
	if ago, relative := strings.CutPrefix(text, "-"); relative {
		d, err := model.ParseDuration(ago)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a duration; write for example -24h or -7d", text)
		}
		return now.Add(-time.Duration(d)), nil
	}
	return incident.ParseTime(text, zone)
}

// incidentZone is the zone of times without one: nil, which refuses them, unless the user
// has chosen one.
func (f *backtestFlags) incidentZone(c *cobra.Command, zone *time.Location) *time.Location {
	if c.Flags().Changed("time-zone") {
		return zone
	}
	return nil
}

// settings are those of a configuration, or the defaults.
func (f *backtestFlags) settings(ctx context.Context) (*vllmreceiver.Config, *vllmprocessor.Config, error) {
	receiver := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	processor := vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config)
	if f.config == "" {
		return receiver, processor, nil
	}
	file, err := configfile.Read(ctx, f.config)
	if err != nil {
		return nil, nil, err
	}
	if len(file.Problems) > 0 {
		return nil, nil, fmt.Errorf("--config: %w", errors.Join(file.Problems...))
	}
	if len(file.Receivers) > 1 || len(file.Processors) > 1 {
		return nil, nil, errors.New("--config: the configuration has several vllm receivers or processors; keep one of each")
	}
	for _, one := range file.Receivers {
		receiver = one.Config
	}
	for _, one := range file.Processors {
		processor = one.Config
	}
	return receiver, processor, nil
}

// client returns a client of the server, and its address without secrets.
func (f *backtestFlags) client(ctx context.Context) (client *promapi.Client, address string, closeAll func(), err error) {
	server, err := url.Parse(f.prometheus)
	switch {
	case f.prometheus == "":
		return nil, "", nil, errors.New("--prometheus is missing; write for example --prometheus http://prometheus:9090")
	case err != nil, server.Host == "", server.Scheme != "http" && server.Scheme != "https":
		// The error of url.Parse has the address with its secrets.
		return nil, "", nil, errors.New("--prometheus is not a URL; write for example http://prometheus:9090")
	}
	server.Fragment = ""
	for _, end := range []string{"/", "/graph", "/query", "/api/v1"} {
		server.Path = strings.TrimSuffix(server.Path, end)
	}
	shown := *server
	shown.User, shown.RawQuery = nil, ""
	answer, err := sizeOf(f.answer)
	if err != nil {
		return nil, "", nil, fmt.Errorf("--max-answer: %w", err)
	}
	connection, err := f.connect.Open(ctx, zap.NewNop())
	if err != nil {
		return nil, "", nil, err
	}
	deadline := connection.Client.Timeout
	// The client has the deadline of a whole answer itself.
	connection.Client.Timeout = 0
	http, err := connection.HTTP(ctx, zap.NewNop())
	if err != nil {
		return nil, "", nil, errors.Join(err, connection.Close(ctx))
	}
	client = promapi.New(promapi.Settings{HTTP: http, URL: *server, Deadline: deadline, MaxAnswer: answer})
	return client, shown.String(), func() {
		http.CloseIdleConnections()
		_ = connection.Close(context.WithoutCancel(ctx))
	}, nil
}

func sizeOf(text string) (int64, error) {
	var size vllmreceiver.ByteSize
	if err := size.UnmarshalText([]byte(text)); err != nil {
		return 0, err
	}
	if size < 64<<10 {
		return 0, fmt.Errorf("%s is too small for an answer; write at least 64KiB", text)
	}
	return int64(size), nil
}

// interrupted is the error of a run that did not end.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("the command was interrupted")
	}
	return err
}

// nothing is the error where there is no target.
func (f *backtestFlags) nothing(period history.Span) error {
	match := ""
	if f.match != "" {
		match = " with " + f.match
	}
	return fmt.Errorf("the history has no vLLM server%s from %s to %s, by vllm:num_requests_running or vllm_up; "+
		"check the period and --match, and that this server has the metrics of vLLM", match, period.From.Format(time.RFC3339), period.To.Format(time.RFC3339))
}
