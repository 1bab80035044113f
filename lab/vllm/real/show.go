//go:build linux

package real

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/client"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/serve"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// Shown is what happens while a server is shown. All times count from the moment at which it
// is ready.
type Shown struct {
	// Clients send one request after another, so that the load fits any machine.
	Clients int
	// WarmUp is how long they do so before the server is said to be ready: its first steps are slow.
	WarmUp time.Duration
	// The fault begins After so long, and goes on For so long.
	After, For time.Duration
	Fault      story.Fault
}

// MakeRun is what "make run VLLM=1" shows: steps take three times as long for a while.
var MakeRun = Shown{
	Clients: 5, WarmUp: 8 * time.Second, After: 55 * time.Second, For: 45 * time.Second,
	Fault: story.Fault{Do: "slow", Of: "worker", Share: 1.0 / 3},
}

// Show serves a vLLM at a port of the loopback, with clients, until ctx ends, and does to it
// once what is to be shown. What it says is read by lab/cmd/demo: "ready", "the fault begins" and
// "the fault ends" are lines of their own, and all before "ready" is for people.
func Show(ctx context.Context, o *Options, port int, shown *Shown) (err error) {
	if err := os.MkdirAll(o.Logs, 0o755); err != nil {
		return err
	}
	log := filepath.Join(o.Logs, "server.log")
	if err := os.Remove(log); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Fprintf(o.Say, "Starting vLLM %s on the processor cores of this machine, which takes a minute or two. Its log is %s\n", o.Version, log)
	server := &serve.Server{Folder: o.Folder, Version: o.Version, Log: log}
	server.ListenOn(port)
	if err := server.Start(ctx); err != nil {
		return unlessAsked(ctx, err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()

	phase := o.Lengths
	phase.For, phase.Clients, phase.KeepAlive = 365*24*time.Hour, shown.Clients, true
	play := &story.Play{Phases: []story.Phase{phase}}
	clients := client.New(server.URL(), serve.Model, serve.Adapter, time.Now())
	loading, unload := context.WithCancel(ctx)
	loaded := make(chan struct{})
	go func() {
		clients.Phase(loading, &play.Phases[0], play.Source(0, 0, o.Seed))
		close(loaded)
	}()
	defer func() {
		unload()
		<-loaded // Until then the phase may still begin requests.
		clients.Wait()
	}()

	if err := lasts(ctx, server, shown.WarmUp); err != nil {
		return unlessAsked(ctx, err)
	}
	fmt.Fprintln(o.Say, "ready")
	if err := lasts(ctx, server, shown.After); err != nil {
		return unlessAsked(ctx, err)
	}
	end, err := server.Begin(ctx, &shown.Fault)
	if err != nil {
		return err
	}
	fmt.Fprintln(o.Say, "the fault begins")
	err = errors.Join(lasts(ctx, server, shown.For), end())
	if err != nil {
		return unlessAsked(ctx, err)
	}
	fmt.Fprintln(o.Say, "the fault ends")
	return unlessAsked(ctx, lasts(ctx, server, phase.For))
}

// unlessAsked returns no error where the program was asked to end.
func unlessAsked(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// lasts waits for a time, and not longer than the server runs.
func lasts(ctx context.Context, server *serve.Server, d time.Duration) error {
	over := time.After(d)
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-over:
			return nil
		case <-look.C:
			if !server.Running() {
				return fmt.Errorf("vLLM %s ended by itself; its log is %s", server.Version, server.Log)
			}
		}
	}
}
