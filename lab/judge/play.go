package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// The limits of a story.
const (
	longest = 14 * 24 * time.Hour
	// mostLines is the number of lines, minutes x servers.
	mostLines = 1_000_000
	// defaultInterval is the time between two scrapes.
	defaultInterval = 10 * time.Second
)

func (s *Story) check() error {
	switch {
	case len(s.Servers) == 0:
		return errors.New("a story needs a server")
	case s.Length < time.Minute || s.Length > longest:
		return fmt.Errorf("length %s is not between 1m and %s", s.Length, longest)
	case s.Interval < time.Second || s.Interval > s.Length:
		return fmt.Errorf("scrape_interval %s is not between 1s and the length %s", s.Interval, s.Length)
	case int(s.Length/time.Minute)*len(s.Servers) > mostLines:
		return fmt.Errorf("%d minutes of %d servers are more than %d lines; shorten the story, or use fewer servers",
			int(s.Length/time.Minute), len(s.Servers), mostLines)
	}
	for i := range s.Injections {
		in := &s.Injections[i]
		if in.At < 0 || in.Over < 0 || in.End() <= in.At || in.At+in.Over > in.End() {
			return fmt.Errorf("injection of %s at %v s: want at, at + over and until in this order", in.Parameter, in.At)
		}
		for _, n := range in.Servers {
			if n < 0 || n >= len(s.Servers) {
				return fmt.Errorf("injection of %s at %v s: there is no server %d", in.Parameter, in.At, n)
			}
		}
	}
	for i, f := range s.Faults {
		if f.Until <= f.At || (i > 0 && f.At < s.Faults[i-1].Until) {
			return fmt.Errorf("fault %s at %v s: it must end later than it begins, and faults must not overlap", f.Kind, f.At)
		}
	}
	return nil
}

// Play plays a story: it seeks the values that are asked for, runs the servers with and
// without each cause, and compares. Two plays of the same story give the same. Errors name
// the invalid part of the story or the setting that the processor refuses.
func Play(ctx context.Context, story *Story) (*Played, error) { return play(ctx, story, nil) }

// play plays a story, and keeps what the servers show on a tape where there is one.
func play(ctx context.Context, story *Story, tape *tape) (*Played, error) {
	s := *story
	if s.Interval == 0 {
		s.Interval = defaultInterval
	}
	s.Injections = slices.Clone(s.Injections)
	if err := s.check(); err != nil {
		return nil, err
	}
	config, err := configure(s.Processor)
	if err != nil {
		return nil, err
	}
	objectives := objectivesOf(config)
	out := &Played{Window: config.Window, Notes: notesOn(config)}
	for i := range s.Injections {
		if s.Injections[i].Effect > 0 {
			if err := seek(ctx, &s, i, objectives, out); err != nil {
				return nil, err
			}
		}
	}
	r, err := newReports(ctx, s.Name, len(s.Servers), config, out)
	if err != nil {
		return nil, err
	}
	p, err := newPlayer(&s, config, out)
	if err != nil {
		return nil, errors.Join(err, r.close(ctx))
	}
	p.audience = []audience{r}
	if tape != nil {
		// The processor adds to the metrics, so they are kept before.
		p.audience = []audience{tape, r}
		tape.begin(&s)
	}
	err = p.play(ctx)
	if err == nil && tape != nil {
		err = tape.end(out)
	}
	return out, errors.Join(err, r.close(ctx))
}

// audience takes what the servers of a story show, in the order of time.
type audience interface {
	// advance moves the time to so many seconds after the beginning.
	advance(to float64)
	// scraped takes the result of a scrape.
	scraped(ctx context.Context, server int, at float64, metrics pmetric.Metrics) error
	// minute ends a minute.
	minute(n int)
}

// player is a story that is being played.
type player struct {
	story    *Story
	audience []audience
	servers  []*server
	out      *Played
}

// newPlayer prepares the runs of a story whose values are all known.
func newPlayer(s *Story, config *vllmprocessor.Config, out *Played) (*player, error) {
	p := &player{story: s, out: out}
	for i := range s.Servers {
		t, err := newTruth(s, i, objectivesOf(config), config.Window.Seconds())
		if err != nil {
			return nil, err
		}
		p.servers = append(p.servers, &server{truth: t, scraper: newScraper(t.actual(), i, !s.Uncounted)})
	}
	return p, nil
}

// server is one server of it.
type server struct {
	truth   *truth
	scraper *scraper
}

func (p *player) play(ctx context.Context) error {
	length, interval := p.story.Length.Seconds(), p.story.Interval.Seconds()
	minutes := int(length / minuteSeconds)
	scrapes, minute := 1, 1
	for minute <= minutes {
		if err := ctx.Err(); err != nil {
			return err
		}
		// A scrape at the end of a minute belongs to it.
		end := float64(minute) * minuteSeconds
		if at := float64(scrapes) * interval; at <= end {
			if err := p.scrape(ctx, at); err != nil {
				return err
			}
			scrapes++
			continue
		}
		if err := p.minute(minute-1, end); err != nil {
			return err
		}
		minute++
	}
	for _, one := range p.servers {
		if err := one.truth.finish(ctx, float64(minutes)*minuteSeconds); err != nil {
			return err
		}
		one.truth.close()
	}
	p.judge()
	return nil
}

// scrape scrapes all servers.
func (p *player) scrape(ctx context.Context, at float64) error {
	for _, a := range p.audience {
		a.advance(at)
	}
	for i, one := range p.servers {
		w := one.truth.actual()
		if err := one.truth.advance(at); err != nil {
			return err
		}
		metrics, came := one.scraper.scrape(w, begin.Add(seconds(at)), begin)
		if !came {
			continue
		}
		for _, a := range p.audience {
			if err := a.scraped(ctx, i, at, metrics); err != nil {
				return err
			}
		}
	}
	return nil
}

// minute ends a minute.
func (p *player) minute(n int, end float64) error {
	for _, a := range p.audience {
		a.advance(end)
	}
	for _, one := range p.servers {
		if err := one.truth.advance(end); err != nil {
			return err
		}
		if err := one.truth.advanceOthers(end); err != nil {
			return err
		}
		if n%10 == 9 {
			one.truth.forget(end)
		}
	}
	for _, a := range p.audience {
		a.minute(n)
	}
	return nil
}

// judge adds what is true.
func (p *player) judge() {
	var tokens []float64
	var usual []Usual
	for _, one := range p.servers {
		tokens, usual = append(tokens, one.truth.tokens()), append(usual, one.truth.usual())
		p.out.Felt = append(p.out.Felt, one.truth.felt(p.story.Length.Seconds()))
	}
	for i := range p.out.Lines {
		line := &p.out.Lines[i]
		p.servers[line.Server].truth.fill(line, tokens[line.Server], &usual[line.Server])
	}
	p.out.Notes = append(p.out.Notes, p.notes()...)
}
