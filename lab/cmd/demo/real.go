package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"
)

// The lines of the program that runs a real server. What it prints before it is ready is
// shown as it is.
const (
	saidReady  = "ready"
	saidBegins = "the fault begins"
	saidEnds   = "the fault ends"
)

// slowWorker is the incident of a real server. lab/vllm brings it about.
var slowWorker = incident{
	server: "A vLLM server (a small model without trained weights, no GPU needed)",
	within: "two minutes",
	done:   "the process that runs the model gets a third of its time",
	undone: "the process that runs the model gets all of its time again",
	cause:  "slow_steps",

	// On two processor cores the end was seen after 17 s.
	epilogue: 25 * time.Second,
}

// serve starts the server.
func serve(opts options) (*program, error) {
	if opts.real == "" {
		return start(opts.logs, "vllmsim", nil, opts.vllmsim,
			"serve", "--listen", opts.simAddr, "--scenario", opts.incident.file, "--uptime", uptime.String())
	}
	args := slices.Concat(opts.realArgs, []string{"-listen", opts.simAddr})
	return startListening(make(chan string, 16), opts.logs, "vllm", nil, opts.real, args...)
}

// stillEvery is the time between two lines while a server starts.
const stillEvery = 15 * time.Second

// ready waits until a real server is ready; a simulated one is at once. It is false where
// the program is to end: with an error, or because ctx has ended.
func (p *program) ready(ctx context.Context, out io.Writer) (bool, error) {
	if p.said == nil {
		return true, nil
	}
	began, still := time.Now(), time.NewTicker(stillEvery)
	defer still.Stop()
	for {
		select {
		case line := <-p.said:
			if line == saidReady {
				fmt.Fprintf(out, "The server is ready after %.0f s.\n", time.Since(began).Seconds())
				return true, nil
			}
			fmt.Fprintln(out, line)
		case <-still.C:
			fmt.Fprintf(out, "It is still starting, since %.0f s.\n", time.Since(began).Seconds())
		case <-p.ended:
			return false, fmt.Errorf("the server ended by itself: %w", p.explain(p.err))
		case <-ctx.Done():
			fmt.Fprintln(out, "\nStopping.")
			return false, nil
		}
	}
}

// hear takes from a real server when its incident begins and ends.
func (n *narrator) hear(line string, at time.Time) {
	switch line {
	case saidBegins:
		n.incident.from = at.Sub(n.began)
	case saidEnds:
		n.incident.until = at.Sub(n.began)
	}
}
