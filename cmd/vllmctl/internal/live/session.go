package live

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// Session is the receivers and processors that feed one view. It is started once.
type Session struct {
	plan *Plan
	log  *Log

	mu    sync.Mutex
	state *State

	// news has an element if something has changed since it was last read.
	news chan struct{}

	// running are the components in the order of their start.
	running []component.Component
}

// NewSession returns a session whose components log to a log.
func NewSession(plan *Plan, log *Log) *Session {
	s := &Session{plan: plan, log: log, state: NewState(), news: make(chan struct{}, 1)}
	log.pass(func(line *Line) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.state.Note(line)
	})
	for _, note := range plan.Notes {
		log.Logger().Info(note)
	}
	return s
}

// Start starts the processors and then the receivers. host has the extensions that the
// receivers name. An error says which component could not start, and nothing runs any more.
func (s *Session) Start(ctx context.Context, host component.Host) error {
	for i := range s.plan.Pipelines {
		if err := s.start(ctx, host, &s.plan.Pipelines[i]); err != nil {
			return errors.Join(err, s.Shutdown(ctx))
		}
	}
	return nil
}

func (s *Session) start(ctx context.Context, host component.Host, p *Pipeline) error {
	sink, err := consumer.NewMetrics(s.take)
	if err != nil {
		return err
	}
	processors, receivers := vllmprocessor.NewFactory(), vllmreceiver.NewFactory()
	id := component.NewIDWithName(processors.Type(), p.Name)
	processed, err := processors.CreateMetrics(ctx, processor.Settings{
		ID: id, TelemetrySettings: configfile.Telemetry(s.log.Logger()),
	}, p.Processor, sink)
	if err != nil {
		return fmt.Errorf("the processor %s: %w", id, err)
	}
	if err := processed.Start(ctx, host); err != nil {
		return errors.Join(fmt.Errorf("the processor %s: %w", id, err), processed.Shutdown(ctx))
	}
	s.running = append(s.running, processed)
	for _, r := range p.Receivers {
		scraping, err := receivers.CreateMetrics(ctx, receiver.Settings{
			ID: r.id(), TelemetrySettings: configfile.Telemetry(s.log.Logger()),
		}, r.Config, processed)
		if err != nil {
			return fmt.Errorf("the receiver %s: %w", r.id(), err)
		}
		if err := scraping.Start(ctx, host); err != nil {
			return errors.Join(fmt.Errorf("the receiver %s: %w", r.id(), err), scraping.Shutdown(ctx))
		}
		s.running = append(s.running, scraping)
	}
	return nil
}

// Shutdown stops the receivers first, so that nothing is sent to a processor that has
// stopped. It is safe without Start and more than once.
func (s *Session) Shutdown(ctx context.Context) error {
	var all error
	for len(s.running) > 0 {
		last := len(s.running) - 1
		all = errors.Join(all, s.running[last].Shutdown(ctx))
		s.running = s.running[:last]
	}
	return all
}

// take is the end of the pipelines.
func (s *Session) take(_ context.Context, metrics pmetric.Metrics) error {
	s.mu.Lock()
	s.state.Take(metrics)
	s.mu.Unlock()
	signal(s.news)
	return nil
}

// News has an element after something has arrived. Several arrivals are one.
func (s *Session) News() <-chan struct{} { return s.news }

// Table returns what is known now. It shares nothing with the session.
func (s *Session) Table(details bool) *Table {
	s.mu.Lock()
	table := s.state.Table(time.Now(), details)
	s.mu.Unlock()
	table.Interval, table.Window, table.Targets = s.plan.Interval, s.plan.Window, s.plan.Targets
	table.markEarly(s.plan.Judging)
	return table
}

// TwoScrapes is how long it takes at most until each server has been scraped twice: the first
// scrapes are spread over an interval, and the last one may take an interval.
func (p *Plan) TwoScrapes() time.Duration { return 3*p.Interval + time.Second }

// Verdicts is how long it takes at most until a problem that each server has from the start
// has been reported.
func (p *Plan) Verdicts() time.Duration { return p.TwoScrapes() + max(p.Judging, harmShows) }

// harmShows is how long an engine that is asked for more than it can do has to be watched: until then its severity can
// be 1 although its users wait for minutes. Who waited before the watch counts with the time since then, which exceeds
// the limit of 30 s after about 35 s, and harm is reported 40 s later (docs/diagnosis.md).
const harmShows = 90 * time.Second

// Scraped reports whether all servers that are named have been scraped twice, successfully
// or not.
func (t *Table) Scraped() bool { return t.Servers >= t.Targets && t.Scrapes >= minScrapes }

// Judged reports whether a problem that a server has had from the start would be in the table.
func (t *Table) Judged() bool { return t.Scraped() && t.Early == 0 }

// Wait returns when a table is what is waited for, and at the latest after limit. Where
// servers are discovered it always waits for so long, because their number is not known. It
// returns an error only if ctx ends.
func (s *Session) Wait(ctx context.Context, limit time.Duration, until func(*Table) bool) error {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over.C:
			return nil
		case <-s.news:
		}
		if !s.plan.Discovers && until(s.Table(false)) {
			return nil
		}
	}
}

// Open does nothing: the details of all rows are known.
func (*Session) Open(string) {}

// Log returns the newest lines of the components, the oldest first.
func (s *Session) Log() []Line { return s.log.Lines() }
