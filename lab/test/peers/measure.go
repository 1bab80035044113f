package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/peers/served"
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
	// Peak is the highest resident memory since the start, and Anonymous what is not of files at the end, in bytes.
	Peak, Anonymous int64
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
func (c scenario) fleet(ctx context.Context, text []byte) (*served.Fleet, error) {
	body, err := fleet.Growing(string(text), perStep)
	if err != nil {
		return nil, err
	}
	model := func(i int) string {
		if c.Differ {
			return fmt.Sprintf("organisation/model-%d", i)
		}
		return ""
	}
	return served.NewFleet(ctx, c.Targets, func(i int) *served.Body { return &served.Body{Template: body, Engines: c.Engines, Model: model(i)} })
}

// perStep is the part of the counters at the beginning that a scrape adds. With the 3600 requests of
// the body that is about 100 requests.
const perStep = 1.0 / 36

// measure runs one program under one load, and measures it after it has run for warm.
func measure(ctx context.Context, v variant, c scenario, text []byte, dir string, warm time.Duration) (out result, err error) {
	out = result{Variant: v.Name, Scenario: c.Name}
	servers, err := c.fleet(ctx, text)
	if err != nil {
		return out, err
	}
	defer servers.Close()
	own, err := fleet.FreeAddress()
	if err != nil {
		return out, err
	}
	s := setting{interval: max(c.Interval, time.Second), own: own}
	if c.Targets == 0 {
		s.delay = time.Hour
	}
	byAddress := map[string]*served.Server{}
	for _, server := range servers.Servers {
		s.addresses = append(s.addresses, server.Address)
		byAddress[server.Address] = server
	}
	var to *sink
	if c.Export {
		to, err = newSink(ctx, func(address string) (time.Time, bool) {
			server, has := byAddress[address]
			if !has {
				return time.Time{}, false
			}
			return server.Last(), true
		})
		if err != nil {
			return out, err
		}
		defer to.Close()
		s.sink = to.Address
	}
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o700)); err != nil {
		return out, err
	}
	arguments, err := v.arguments(dir, s)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, 4*c.Interval+warm+c.Window+2*time.Minute)
	defer cancel()
	process, err := fleet.Start(ctx, filepath.Join(dir, "log"), nil, v.program, arguments...)
	if err != nil {
		return out, err
	}
	defer func() {
		if _, stopErr := process.Stop(fleet.StopLimit); err == nil {
			err = stopErr
		}
	}()
	// From the second answer on, what is remembered of a target is there.
	if err := until(ctx, process, func() bool { return servers.Asked(2) == c.Targets }); err != nil {
		return out, fmt.Errorf("%d of %d targets were scraped twice: %w", servers.Asked(2), c.Targets, err)
	}
	if first, last := servers.FirstAnswers(); !first.IsZero() {
		out.FirstAnswer, out.AllAnswered = first.Sub(process.Began), last.Sub(process.Began)
	}
	if to != nil {
		out.FirstExport = to.begin().Sub(process.Began)
	}
	if err := fleet.Sleep(ctx, warm); err != nil {
		return out, err
	}
	if err := window(ctx, process, own, c.Window, servers, &out); err != nil {
		return out, err
	}
	if to != nil {
		out.P50, out.Batches = to.latency(0.5)
		out.P99, _ = to.latency(0.99)
	}
	return out, nil
}

// window measures a running program.
func window(ctx context.Context, p *fleet.Process, own string, length time.Duration, servers *served.Fleet, out *result) error {
	allocatedBefore, err := allocated(ctx, own)
	if err != nil {
		return err
	}
	before, err := p.Use()
	if err != nil {
		return err
	}
	requests := servers.Requests()
	if err := fleet.Sleep(ctx, length); err != nil {
		return err
	}
	after, err := p.Use()
	if err != nil {
		return err
	}
	out.Scrapes = servers.Requests() - requests
	allocatedAfter, err := allocated(ctx, own)
	if err != nil {
		return err
	}
	out.Peak, out.Anonymous = after.Peak, after.Anonymous
	if len(servers.Servers) == 0 {
		return nil
	}
	if out.Scrapes == 0 {
		return fmt.Errorf("no target was scraped in %s", length)
	}
	out.CPU = (after.CPU - before.CPU) / time.Duration(out.Scrapes)
	out.System = (after.System - before.System) / time.Duration(out.Scrapes)
	out.Switches = float64(after.Switches-before.Switches) / float64(out.Scrapes)
	out.Allocated = (allocatedAfter - allocatedBefore) / float64(out.Scrapes)
	return nil
}

// until waits for something, as long as the program runs and ctx does not end.
func until(ctx context.Context, p *fleet.Process, done func() bool) error {
	return fleet.Wait(ctx, time.Hour, p.Name(), func() (bool, error) { return done(), p.Ended() })
}

// allocated is how many bytes a program has allocated since its start, by its own metrics.
func allocated(ctx context.Context, address string) (float64, error) {
	own, err := fleet.Own(ctx, address)
	if err != nil {
		return 0, err
	}
	for name, value := range own {
		if strings.HasPrefix(name, "otelcol_process_runtime_total_alloc_bytes") {
			return value, nil
		}
	}
	return 0, errors.New("the program does not report what it has allocated")
}
