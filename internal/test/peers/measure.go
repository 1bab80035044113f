package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/peers/load"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/peers/served"
)

// result is one program under one load.
type result struct {
	Variant  string
	Scenario string
	Round    int
	// Scrapes is how many answers were given in the window.
	Scrapes int64
	// CPU is the processor time for each of them; Allocated is in bytes.
	CPU, System time.Duration
	Allocated   float64
	// Switches is how often a thread went to sleep for each scrape.
	Switches float64
	// Peak is the highest resident memory since the start, in bytes.
	Peak int64
	// FirstAnswer and AllAnswered are from the start of the program to the first answer of
	// the first and of the last server. Both are about what the program asks for.
	FirstAnswer, AllAnswered time.Duration
	// P50 and P99 are from the written answer to the arrival of its batch, and FirstExport
	// is from the start of the program to the arrival of the first. They are measured in
	// runs with an exporter.
	P50, P99, FirstExport time.Duration
	Batches               int
}

// fleet makes the servers of a scenario.
func (c scenario) fleet(text []byte) (*served.Fleet, error) {
	shared, err := served.NewBody(text, c.Engines, "")
	if err != nil {
		return nil, err
	}
	bodies := make([]*served.Body, c.Targets)
	for i := range bodies {
		bodies[i] = shared
		if c.Differ {
			if bodies[i], err = served.NewBody(text, c.Engines, fmt.Sprintf("organisation/model-%d", i)); err != nil {
				return nil, err
			}
		}
	}
	return served.NewFleet(c.Targets, func(i int) *served.Body { return bodies[i] }, c.Form, c.Gzip)
}

// measure runs one program under one load. With export, it sends its batches to a sink.
func measure(ctx context.Context, v variant, c scenario, text []byte, dir string, export bool) (out result, err error) {
	out = result{Variant: v.Name, Scenario: c.Name}
	fleet, err := c.fleet(text)
	if err != nil {
		return out, err
	}
	defer fleet.Close()
	own, err := freeAddress()
	if err != nil {
		return out, err
	}
	s := setting{interval: c.Interval, own: own, gzip: c.Gzip}
	byAddress := map[string]*served.Server{}
	for _, server := range fleet.Servers {
		s.addresses = append(s.addresses, server.Address())
		byAddress[server.Address()] = server
	}
	var sink *load.Sink
	if export {
		sink, err = load.NewSink(func(address string) (time.Time, bool) {
			server, has := byAddress[address]
			if !has {
				return time.Time{}, false
			}
			return server.Last(), true
		})
		if err != nil {
			return out, err
		}
		defer sink.Close()
		s.sink = sink.Address()
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return out, err
	}
	arguments, err := v.arguments(dir, s)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*c.Interval+c.Window+2*time.Minute)
	defer cancel()
	process, err := load.NewProcess(ctx, filepath.Join(dir, "log"), v.program, arguments...)
	if err != nil {
		return out, err
	}
	defer func() {
		if stopErr := process.Stop(); err == nil && v.config != nil {
			err = stopErr
		}
	}()
	// From the second answer on, what is remembered of a target is there.
	if err := until(ctx, process, func() bool { return fleet.Asked(2) == c.Targets }); err != nil {
		return out, fmt.Errorf("%d of %d targets were scraped twice: %w", fleet.Asked(2), c.Targets, err)
	}
	first, last := fleet.FirstAnswers()
	out.FirstAnswer, out.AllAnswered = first.Sub(process.Began), last.Sub(process.Began)
	if sink != nil {
		at, _, _ := sink.First()
		out.FirstExport = at.Sub(process.Began)
		sink.Forget()
	}
	if err := window(ctx, process, own, c.Window, fleet, &out); err != nil {
		return out, err
	}
	if sink != nil {
		out.P50, out.Batches = sink.Latency(0.5)
		out.P99, _ = sink.Latency(0.99)
	}
	return out, nil
}

// window measures a running program.
func window(ctx context.Context, p *load.Process, own string, length time.Duration, fleet *served.Fleet, out *result) error {
	allocatedBefore, err := load.Allocated(ctx, own)
	if err != nil {
		return err
	}
	before, err := p.Use()
	if err != nil {
		return err
	}
	requests := fleet.Requests()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(length):
	}
	after, err := p.Use()
	if err != nil {
		return err
	}
	out.Scrapes = fleet.Requests() - requests
	allocated, err := load.Allocated(ctx, own)
	if err != nil {
		return err
	}
	if out.Scrapes == 0 {
		return fmt.Errorf("no target was scraped in %s", length)
	}
	out.CPU = (after.CPU - before.CPU) / time.Duration(out.Scrapes)
	out.System = (after.System - before.System) / time.Duration(out.Scrapes)
	out.Switches = float64(after.Switches-before.Switches) / float64(out.Scrapes)
	out.Allocated = (allocated - allocatedBefore) / float64(out.Scrapes)
	out.Peak = after.Peak
	return nil
}

// until waits for something, as long as the program runs.
func until(ctx context.Context, p *load.Process, done func() bool) error {
	for !done() {
		if err := p.Ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// freeAddress is a loopback address on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
