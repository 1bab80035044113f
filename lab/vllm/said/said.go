// Package said replays what a server showed through the receiver, the processor, the connector
// and the shipped alerts, and returns what they said and when.
package said

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
)

// All is everything that was said about a run, at one interval.
type All struct {
	Interval time.Duration
	// Said are the changes of what the processor reports, in the order of their times.
	Said []judge.Said
	// Records are those of the connector, Alerts those of the shipped rules.
	Records []run.Record
	Alerts  []Alert
	// Heard is what users felt beside it, and Unfelt are warnings without such harm.
	Felt   []judge.Felt
	Heard  []judge.Heard
	Unfelt []judge.Said
}

// Alert is a time in which an alert fired.
type Alert struct {
	Name     string
	From, To float64
	Page     bool
}

// rulesEvery is the interval of Prometheus's rules.
const rulesEvery = 15 * time.Second

// Replay returns what would have been said about a run at an interval between scrapes, with
// the alerts of a file with rules.
func Replay(ctx context.Context, r *run.Run, interval time.Duration, rules string) (all *All, err error) {
	p := &pipeline{run: r, out: &All{Interval: interval}}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if err := p.open(ctx, rules); err != nil {
		return nil, err
	}
	err = Feed(ctx, r, interval, nil, func(s *run.Scrape, emitted pmetric.Metrics) error { return p.take(ctx, s.At, emitted) })
	if err != nil {
		return nil, err
	}
	end := r.Began.Add(seconds(r.End()))
	firings, problems, _ := p.rules.Finish(end)
	for _, problem := range problems {
		return nil, fmt.Errorf("a rule cannot be evaluated: %s", problem)
	}
	var pages []judge.Page
	for _, f := range firings {
		a := Alert{Name: f.Alert, From: f.From.Sub(r.Began).Seconds(), To: f.To.Sub(r.Began).Seconds(), Page: f.Labels.Get("severity") == "page"}
		p.out.Alerts = append(p.out.Alerts, a)
		if a.Page {
			pages = append(pages, judge.Page{From: a.From, To: a.To})
		}
	}
	slices.SortFunc(pages, func(a, b judge.Page) int { return cmp.Compare(a.From, b.From) })
	p.out.Felt = judge.FeltHarm(r.Sent, r.Usual(), r.End())
	p.out.Heard = judge.Hear(p.out.Felt, p.out.Said, pages, interval.Seconds(), r.End())
	p.out.Unfelt = judge.Unfelt(p.out.Felt, p.out.Said)
	return p.out, nil
}

// pipeline is what comes after the processor: the connector, and a Prometheus with rules.
type pipeline struct {
	run       *run.Run
	out       *All
	connector connector.Metrics
	folder    string
	store     *rulestore.Store
	rules     *rulestore.Evaluation
}

func (p *pipeline) open(ctx context.Context, rules string) error {
	factory := vllmdiagnosisconnector.NewFactory()
	logs, err := consumer.NewLogs(p.record)
	if err != nil {
		return err
	}
	if p.connector, err = factory.CreateMetricsToLogs(ctx, connector.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
	}, factory.CreateDefaultConfig(), logs); err != nil {
		return err
	}
	if err := p.connector.Start(ctx, nil); err != nil {
		return err
	}
	if p.folder, err = os.MkdirTemp("", "vllm-rules-"); err != nil {
		return err
	}
	if p.store, err = rulestore.Open(p.folder, rulestore.Suffixed, rulestore.Memory, 0); err != nil {
		return err
	}
	var errs []error
	p.rules, errs = rulestore.NewEvaluation(ctx, p.store, p.run.Began, rulesEvery, rules)
	return errors.Join(errs...)
}

func (p *pipeline) close(ctx context.Context) (err error) {
	if p.connector != nil {
		err = errors.Join(err, p.connector.Shutdown(ctx))
	}
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	return errors.Join(err, os.RemoveAll(p.folder))
}

// take takes what the processor emitted at a time, in seconds of the story.
func (p *pipeline) take(ctx context.Context, at float64, emitted pmetric.Metrics) error {
	if now := judge.SaidOf(at, emitted); now.Condition != "" {
		was := now
		if n := len(p.out.Said); n > 0 {
			was = p.out.Said[n-1]
			was.At = at
		}
		if len(p.out.Said) == 0 || was != now {
			p.out.Said = append(p.out.Said, now)
		}
	}
	// Rules that are due before this scrape do not see it.
	if err := p.rules.Until(ctx, p.run.Began.Add(seconds(at)-time.Millisecond)); err != nil {
		return err
	}
	if err := p.store.Take(ctx, emitted); err != nil {
		return err
	}
	return p.connector.ConsumeMetrics(ctx, emitted)
}

func (p *pipeline) record(_ context.Context, logs plog.Logs) error {
	p.out.Records = append(p.out.Records, run.Records(logs, p.run.Began)...)
	return nil
}
