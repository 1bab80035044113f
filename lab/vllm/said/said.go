// Package said replays what a server showed through the receiver, the processor, the connector
// and the shipped alerts, and returns what they said and when.
package said

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
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

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector"
	"github.com/otelcol-vllm/otelcol-vllm/internal/judge"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
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

// Options are how a run is replayed.
type Options struct {
	// Interval is the time between two scrapes, a multiple of run.Every.
	Interval time.Duration
	// Rules is the file with the rules of the alerts.
	Rules string
	// Settings are the processor's besides those of the story.
	Settings map[string]any
	// Emitted receives what the processor emitted for each scrape; nil for nobody. at is in
	// seconds of the story.
	Emitted func(at float64, metrics pmetric.Metrics)
}

// Replay returns what would have been said about a run.
func Replay(ctx context.Context, r *run.Run, o Options) (all *All, err error) {
	interval := o.Interval
	p := &pipeline{run: r, options: o, out: &All{Interval: interval}}
	defer func() { err = errors.Join(err, p.close(ctx)) }()
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	next := 0.0
	for i := range r.Scrapes {
		s := &r.Scrapes[i]
		// Looks are at multiples of the shorter interval, give or take their delay. A scrape that is
		// late, because a look took its whole time, does not move those after it.
		if s.At < next-run.Every.Seconds()/2 {
			continue
		}
		next = (math.Floor((s.At+run.Every.Seconds()/2)/interval.Seconds()) + 1) * interval.Seconds()
		if err := p.scrape(ctx, s); err != nil {
			return nil, err
		}
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

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// pipeline is a collector in the time of a run.
type pipeline struct {
	run       *run.Run
	options   Options
	out       *All
	receiver  *vllmreceiver.Replay
	processor *judge.Processor
	connector connector.Metrics
	folder    string
	store     *rulestore.Store
	rules     *rulestore.Evaluation
}

func (p *pipeline) open(ctx context.Context) error {
	replays, err := vllmreceiver.NewReplays(vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config), "")
	if err != nil {
		return err
	}
	if p.receiver, err = replays.Target("http://vllm:8000", nil); err != nil {
		return err
	}
	settings := maps.Clone(p.options.Settings)
	if settings == nil {
		settings = map[string]any{}
	}
	maps.Copy(settings, p.run.Play.Processor)
	if p.processor, err = judge.NewProcessor(ctx, settings, p.run.Began); err != nil {
		return err
	}
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
	p.rules, errs = rulestore.NewEvaluation(ctx, p.store, p.run.Began, rulesEvery, p.options.Rules)
	return errors.Join(errs...)
}

func (p *pipeline) close(ctx context.Context) (err error) {
	if p.receiver != nil {
		p.receiver.Close()
	}
	if p.processor != nil {
		err = errors.Join(err, p.processor.Close(ctx))
	}
	if p.connector != nil {
		err = errors.Join(err, p.connector.Shutdown(ctx))
	}
	if p.store != nil {
		err = errors.Join(err, p.store.Close())
	}
	return errors.Join(err, os.RemoveAll(p.folder))
}

// scrape lets the pipeline see one answer of the server.
func (p *pipeline) scrape(ctx context.Context, s *run.Scrape) error {
	at := p.run.Began.Add(seconds(s.At))
	var metrics pmetric.Metrics
	if s.Status == http.StatusOK {
		metrics = p.receiver.Scrape(at, s.Body, p.run.Version)
	} else {
		metrics = p.receiver.Fail(at, s.Failure)
	}
	emitted, err := p.processor.Observe(ctx, s.At, metrics)
	if err != nil {
		return err
	}
	if p.options.Emitted != nil {
		p.options.Emitted(s.At, emitted)
	}
	if now := judge.SaidOf(s.At, emitted); now.Condition != "" {
		was := now
		if n := len(p.out.Said); n > 0 {
			was = p.out.Said[n-1]
			was.At = s.At
		}
		if len(p.out.Said) == 0 || was != now {
			p.out.Said = append(p.out.Said, now)
		}
	}
	// Rules that are due before this scrape do not see it.
	if err := p.rules.Until(ctx, at.Add(-time.Millisecond)); err != nil {
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
