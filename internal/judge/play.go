package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
func Play(ctx context.Context, story *Story) (*Played, error) {
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
	out := &Played{Window: config.Window}
	for i := range s.Injections {
		if s.Injections[i].Effect > 0 {
			if err := seek(ctx, &s, i, objectives, out); err != nil {
				return nil, err
			}
		}
	}
	p, err := newPlayer(ctx, &s, config, out)
	if err != nil {
		return nil, err
	}
	err = p.play(ctx)
	return out, errors.Join(err, p.diagnosis.processor.Shutdown(context.WithoutCancel(ctx)))
}

// player is a story that is being played.
type player struct {
	story     *Story
	diagnosis *diagnosis
	servers   []*server
	out       *Played
}

// newPlayer prepares the runs of a story whose values are all known.
func newPlayer(ctx context.Context, s *Story, config *vllmprocessor.Config, out *Played) (*player, error) {
	d, err := newDiagnosis(ctx, config)
	if err != nil {
		return nil, err
	}
	p := &player{story: s, diagnosis: d, out: out}
	for i := range s.Servers {
		t, err := newTruth(s, i, objectivesOf(config), config.Window.Seconds())
		if err != nil {
			return nil, errors.Join(err, d.processor.Shutdown(ctx))
		}
		p.servers = append(p.servers, &server{
			truth: t, scraper: newScraper(t.actual(), i, !s.Uncounted), reported: report{severity: -1},
		})
	}
	return p, nil
}

// server is one server of it.
type server struct {
	truth    *truth
	scraper  *scraper
	reported report
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
	p.diagnosis.advance(at)
	for i, one := range p.servers {
		w := one.truth.actual()
		if err := one.truth.advance(at); err != nil {
			return err
		}
		metrics, came := one.scraper.scrape(w, p.diagnosis.clock.now, begin)
		if !came {
			continue
		}
		reported, err := p.diagnosis.observe(ctx, metrics)
		if err != nil {
			return err
		}
		if reported.severity > one.reported.severity && reported.severity >= warning {
			p.out.Alarms = append(p.out.Alarms, Alarm{
				Server: i, At: at, Severity: reported.severity, Condition: reported.condition, Cause: reported.primary(),
			})
		}
		one.reported = reported
	}
	return nil
}

// warning is the severity from which on there is an alarm.
const warning = 2

// minute ends a minute.
func (p *player) minute(n int, end float64) error {
	p.diagnosis.advance(end)
	for i, one := range p.servers {
		if err := one.truth.advance(end); err != nil {
			return err
		}
		if err := one.truth.advanceOthers(end); err != nil {
			return err
		}
		if n%10 == 9 {
			one.truth.forget(end)
		}
		r := &one.reported
		line := Line{Scenario: p.story.Name, Minute: n, Server: i, Condition: r.condition, Severity: r.severity, Causes: withoutNil(r.causes)}
		if pool := p.diagnosis.pool; pool != nil {
			line.Pool = &Pool{pool.condition, pool.severity, withoutNil(pool.causes)}
		}
		p.out.Lines = append(p.out.Lines, line)
	}
	return nil
}

func withoutNil(causes []Cause) []Cause {
	if causes == nil {
		return []Cause{}
	}
	return causes
}

// judge adds what is true.
func (p *player) judge() {
	var tokens []float64
	for _, one := range p.servers {
		tokens = append(tokens, one.truth.tokens())
	}
	for i := range p.out.Lines {
		line := &p.out.Lines[i]
		p.servers[line.Server].truth.fill(line, tokens[line.Server])
	}
}
