//go:build linux

// Package real plays stories on a real vLLM.
package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/client"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/live"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Options are where and how to play.
type Options struct {
	// Folder is that of install.sh, Version the release of vLLM.
	Folder, Version string
	// Logs is the folder for the log of the server.
	Logs string
	Seed uint64
	// Lengths are those of the requests by which the capacity is measured.
	Lengths story.Phase
	// Say receives a line for each phase.
	Say io.Writer
	// Collector is the program of the collector that runs beside the story; empty for none.
	Collector string
}

// measured is how long the capacity is measured, once the server has prepared what it has never done: what it
// compiles for its first batches takes up to a minute. It has, when it answers prepared requests in a round.
const (
	measured  = 25 * time.Second
	round     = 10 * time.Second
	prepared  = 16
	mostRound = 9
)

// start starts a server, with a new log.
func start(ctx context.Context, s *story.Server, o *Options) (*serve.Server, error) {
	if err := os.MkdirAll(o.Logs, 0o755); err != nil {
		return nil, err
	}
	log := filepath.Join(o.Logs, "server.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	server := &serve.Server{Folder: o.Folder, Version: o.Version, Story: *s, Log: log}
	o.say("starting vLLM %s (%s)", o.Version, s.Name)
	err := server.Start(ctx)
	return server, err
}

// Play plays a story, and returns what was seen. The server has ended when it returns.
func Play(ctx context.Context, p *story.Play, o *Options) (r *run.Run, err error) {
	server, err := start(ctx, &p.Server, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	r = &run.Run{Play: *p, Version: o.Version, Seed: o.Seed}
	if p.Loaded() {
		if r.Capacity, err = capacity(ctx, server, o); err != nil {
			return nil, err
		}
		o.say("it serves %.2f requests/s", r.Capacity)
	}
	return r, perform(ctx, server, o, r)
}

func (o *Options) say(format string, values ...any) {
	fmt.Fprintf(o.Say, time.Now().Format("15:04:05 ")+format+"\n", values...)
}

// capacity measures how many requests of the book's lengths a server answers in a second.
func capacity(ctx context.Context, server *serve.Server, o *Options) (float64, error) {
	for range mostRound {
		if answered(ctx, server, o, round) >= prepared {
			break
		}
	}
	served := answered(ctx, server, o, measured)
	if served == 0 {
		return 0, errors.New("the server answered nothing while its capacity was measured")
	}
	return float64(served) / measured.Seconds(), nil
}

// answered is how many requests 32 clients have answered in a time.
func answered(ctx context.Context, server *serve.Server, o *Options, length time.Duration) (n int) {
	phase := o.Lengths
	phase.For, phase.Load, phase.Clients, phase.KeepAlive = length, 0, 32, true
	play := &story.Play{Phases: []story.Phase{phase}}
	clients := client.New(server.URL(), serve.Model, serve.Adapter, time.Now())
	limited, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	clients.Phase(limited, &phase, play.Source(0, 0, 1))
	cancel()
	clients.Wait()
	for _, s := range clients.Sent() {
		if s.How == judge.Answered {
			n++
		}
	}
	return n
}

// linger is how long requests may take that are under way when the story ends.
const linger = 30 * time.Second

func perform(ctx context.Context, server *serve.Server, o *Options, r *run.Run) (failed error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r.Began = time.Now()
	clients := client.New(server.URL(), serve.Model, serve.Adapter, r.Began)
	recording, stop := context.WithCancel(ctx)
	recorded := make(chan []run.Scrape, 1)
	go func() { recorded <- run.Watch(recording, server.URL(), r.Began) }()
	defer stop()
	if o.Collector != "" {
		collected, err := live.Start(o.Collector, server.URL(), o.Logs, r.Began)
		if err != nil {
			return err
		}
		defer func() {
			var err error
			r.Live, err = collected()
			failed = errors.Join(failed, err)
		}()
	}
	for i := range r.Play.Phases {
		phase := &r.Play.Phases[i]
		from := time.Since(r.Began).Seconds()
		o.say("%s for %s", phase.Name, phase.For)
		end := func() error { return nil }
		if phase.Fault != nil {
			if end, failed = server.Begin(ctx, phase.Fault); failed != nil {
				break
			}
		}
		clients.Phase(ctx, phase, r.Play.Source(i, r.Capacity, r.Seed))
		failed = end()
		r.Spans = append(r.Spans, run.Span{From: from, To: time.Since(r.Began).Seconds()})
		if failed = errors.Join(failed, ctx.Err()); failed != nil {
			break
		}
	}
	stop()
	r.Scrapes = <-recorded
	late := time.AfterFunc(linger, cancel)
	clients.Wait()
	late.Stop()
	r.Sent = clients.Sent()
	return failed
}
