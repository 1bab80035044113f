// Package sim plays stories on the simulator, in virtual time. What it returns has the form of
// a run on a real vLLM, and is equal for equal options.
package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Options are how to play.
type Options struct {
	// Book is where the stories are from. It has the reasons why some are not simulated, and
	// the lengths of the requests by which the capacity is measured.
	Book *story.Book
	// Version is the release of vLLM that is imitated.
	Version string
	// Capacity is how many requests the server answers in a second; 0 measures it as on a real
	// server.
	Capacity float64
	Seed     uint64
	// Pace is how many times as long the server takes for everything as on a machine that nothing
	// else used; 0 is 1. The real one took up to 2.5 times as long on the same machine.
	Pace float64
}

// The times of a play on a real server: the capacity is measured for some seconds, after some
// requests that let the server prepare, and requests that are under way when the story ends
// may take a while.
const (
	prepares = 5 * time.Second
	measured = 25 * time.Second
	linger   = 30 * time.Second
)

// ready is when the simulated server is ready. It is fixed, so that runs are equal.
var ready = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

// Play plays a story, and returns what was seen.
func Play(ctx context.Context, p *story.Play, o Options) (*run.Run, error) {
	if err := simulated(p, o.Book); err != nil {
		return nil, err
	}
	began := time.Second
	if p.Loaded() && o.Capacity == 0 {
		began += prepares + measured
	}
	w := &world{ctx: ctx, underway: map[int]*attempt{}}
	cfg, err := config(p, &o)
	if err != nil {
		return nil, err
	}
	if cfg.Changes, cfg.Faults, err = faults(p, began.Seconds()); err != nil {
		return nil, err
	}
	cfg.Truth = func(_ int, outcome engine.Outcome) { w.news = append(w.news, news{id: outcome.ID, outcome: &outcome}) }
	cfg.Tokens = func(_, id, _ int, at float64) { w.news = append(w.news, news{id: id, at: at}) }
	if w.server, err = vllmsim.New(cfg); err != nil {
		return nil, err
	}
	w.target = w.server.Targets()[0]
	r := &run.Run{Play: *p, Version: o.Version, Simulated: true, Capacity: o.Capacity, Seed: o.Seed, Began: ready.Add(began)}
	if p.Loaded() && o.Capacity == 0 {
		if r.Capacity, err = w.capacity(o.Book); err != nil {
			return nil, err
		}
	}
	if err := w.until(began); err != nil {
		return nil, err
	}
	w.began, w.sent, w.prompts = began, nil, storyPrompts
	return r, w.perform(r)
}

// simulated returns an error with the reason where a story is not simulated.
func simulated(p *story.Play, book *story.Book) error {
	for _, name := range p.Stories {
		for i := range book.Stories {
			if s := &book.Stories[i]; s.Name == name && s.NotSimulated != "" {
				return fmt.Errorf("story %s is not simulated: %s", name, s.NotSimulated)
			}
		}
	}
	if not := p.Server.Simulated.Not; not != "" {
		return fmt.Errorf("story %s is not simulated: %s", strings.Join(p.Stories, ", "), not)
	}
	return nil
}

// capacity measures how many requests of the book's lengths the server answers in a second, as
// package real does.
func (w *world) capacity(book *story.Book) (float64, error) {
	for _, length := range []time.Duration{prepares, measured} {
		phase := story.Phase{Prompt: book.Prompt, Output: book.Output, For: length, Clients: 32, KeepAlive: true}
		play := &story.Play{Phases: []story.Phase{phase}}
		w.sent, w.prompts = nil, 0
		to := w.now + length
		w.begin(&play.Phases[0], play.Source(0, 0, 1))
		if err := w.until(to); err != nil {
			return 0, err
		}
		w.cutOff()
	}
	served := 0.0
	for i := range w.sent {
		if w.sent[i].How == judge.Answered {
			served++
		}
	}
	if served == 0 {
		return 0, errors.New("the server answered nothing while its capacity was measured")
	}
	return served / measured.Seconds(), nil
}

// perform plays the phases.
func (w *world) perform(r *run.Run) error {
	w.run = r
	w.at(w.now, w.look)
	for i := range r.Play.Phases {
		phase := &r.Play.Phases[i]
		from := w.now
		if f := phase.Fault; f != nil && f.Do == "stop" && kind(f.Of) == "api" {
			w.held = from + phase.For
			w.target.HoldFrontEnd(phase.For.Seconds())
		}
		w.begin(phase, r.Play.Source(i, r.Capacity, r.Seed))
		if err := w.until(from + phase.For); err != nil {
			return err
		}
		r.Spans = append(r.Spans, run.Span{From: (from - w.began).Seconds(), To: (w.now - w.began).Seconds()})
	}
	w.run = nil // Nobody looks any more.
	for end := w.now + linger; len(w.underway) > 0 && w.now < end; {
		if err := w.until(w.now + step); err != nil {
			return err
		}
	}
	w.cutOff()
	r.Sent = w.sent
	return nil
}
