package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// serverCost measures what a scrape costs the server: one Python process with the real
// prometheus_client is scraped by each program in turns.
type serverCost struct {
	// bin has the collectors; python runs script.
	bin, python, script string
	// work is the folder for configurations, logs and results.
	work   string
	rounds int
	// warm and window are how long a collector runs before and while it is measured.
	warm, window time.Duration
}

// costInterval is the time between two scrapes, and costIdle how long the server is watched
// without any.
const (
	costInterval = 200 * time.Millisecond
	costIdle     = 20 * time.Second
)

// The forms in which vLLM serves /metrics; server.py has what they are.
const (
	mountForm = "mount"
	routeForm = "route"
)

// costVariant is a program with a setting for compression.
type costVariant struct {
	name    string
	variant variant
	gzip    bool
}

func (c serverCost) variants(form string) []costVariant {
	byName := map[string]variant{}
	for _, v := range variants(c.bin) {
		byName[v.Name] = v
	}
	all := []costVariant{
		{"ours, default", byName[oursName], false},
		{"ours, compression: gzip", byName[oursName], true},
		{"peer, default (gzip)", byName[peerName], true},
		{"peer, enable_compression: false", byName[peerName], false},
	}
	if form == routeForm {
		// This form never compresses.
		return []costVariant{all[0], all[2]}
	}
	return all
}

// costRow is one program in one round.
type costRow struct {
	Variant string
	Form    string
	Engines int
	Round   int
	// Kinds has the answers by their content type and encoding.
	Kinds   map[string]int
	Scrapes int
	// Milliseconds is the processor time of the server for each scrape, from /proc, without
	// what it uses when it is not scraped. Own is the same by the clock of the process.
	Milliseconds, Own float64
	// Bytes is the size of a body as sent.
	Bytes float64
	// Up is the value of up or vllm.up in a run before.
	Up float64
}

// costCounts is what the server says of itself.
type costCounts struct {
	Scrapes    int            `json:"scrapes"`
	Bytes      int            `json:"bytes"`
	Kinds      map[string]int `json:"kinds"`
	CPUSeconds float64        `json:"cpu_seconds"`
	Versions   map[string]any `json:"versions"`
}

// costParts is what prometheus_client and gzip take, measured in Python.
type costParts struct {
	Engines int
	Parts   map[string]costPart `json:"parts"`
}

type costPart struct {
	Median float64 `json:"median_ms"`
	Min    float64 `json:"min_ms"`
	Max    float64 `json:"max_ms"`
	Bytes  int     `json:"bytes"`
}

// costReport is what is written.
type costReport struct {
	Versions map[string]any
	// Idle is the processor time in milliseconds that the server uses in one interval when
	// it is not scraped, by form and engines.
	Idle  map[string]float64
	Rows  []costRow
	Parts []costParts
}

// run measures everything, prints tables and writes server.json.
func (c serverCost) run(ctx context.Context, text []byte) error {
	report := costReport{Idle: map[string]float64{}}
	if err := os.MkdirAll(filepath.Join(c.work, "server"), 0o700); err != nil {
		return err
	}
	for _, kind := range []struct {
		form    string
		engines int
	}{{mountForm, 1}, {mountForm, 8}, {routeForm, 1}} {
		body, err := fleet.Growing(string(text), perStep)
		if err != nil {
			return err
		}
		file := filepath.Join(c.work, "server", fmt.Sprintf("body-%d", kind.engines))
		if err := os.WriteFile(file, body.Append(nil, fleet.State{Engines: kind.engines}), 0o600); err != nil {
			return err
		}
		if kind.form == mountForm {
			if err := c.direct(ctx, file, kind.engines, &report); err != nil {
				return err
			}
		}
		if err := c.serve(ctx, file, kind.form, kind.engines, &report); err != nil {
			return fmt.Errorf("%s with %d engines: %w", kind.form, kind.engines, err)
		}
	}
	report.print()
	return fleet.Save(c.work, "server.json", report, nil)
}

// direct measures the parts of an answer in Python.
func (c serverCost) direct(ctx context.Context, body string, engines int, report *costReport) error {
	command := exec.CommandContext(ctx, c.python, c.script, "--body", body, "--direct") //nolint:gosec // the developer names the program
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", c.script, err)
	}
	parts := costParts{Engines: engines}
	report.Parts = append(report.Parts, parts)
	return json.Unmarshal(out, &report.Parts[len(report.Parts)-1])
}

// serve starts the server and lets each program scrape it.
func (c serverCost) serve(ctx context.Context, body, form string, engines int, report *costReport) (err error) {
	address, err := fleet.FreeAddress()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	server, err := fleet.Start(ctx, filepath.Join(c.work, "server", "log-python"), nil, c.python, c.script, "--body", body, "--form", form, "--port", port)
	if err != nil {
		return err
	}
	// uvicorn ends with the signal that it got, so its error says nothing.
	defer func() { _, _ = server.Stop(fleet.StopLimit) }()
	starting, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := until(starting, server, func() bool { _, err := counts(starting, address); return err == nil }); err != nil {
		return err
	}
	idle, _, err := c.watch(ctx, server, address, costIdle)
	if err != nil {
		return err
	}
	perSecond, ownPerSecond := idle.Milliseconds/costIdle.Seconds(), idle.Own/costIdle.Seconds()
	report.Idle[fmt.Sprintf("%s, %d engines", form, engines)] = perSecond * costInterval.Seconds()
	up := map[string]float64{}
	for round := 1; round <= c.rounds; round++ {
		for _, v := range c.variants(form) {
			if round == 1 {
				if up[v.name], err = c.checked(ctx, v, address); err != nil {
					return fmt.Errorf("%s: %w", v.name, err)
				}
			}
			row, versions, err := c.scraped(ctx, v, server, address)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			row.Milliseconds = (row.Milliseconds - perSecond*c.window.Seconds()) / float64(row.Scrapes)
			row.Own = (row.Own - ownPerSecond*c.window.Seconds()) / float64(row.Scrapes)
			row.Variant, row.Form, row.Engines, row.Round, row.Up = v.name, form, engines, round, up[v.name]
			report.Versions = versions
			report.Rows = append(report.Rows, row)
			fmt.Printf("%s, %d engines  %-32s %d  %6.3f ms (%.3f by the process) %8.0f bytes  %4d scrapes  %v\n",
				form, engines, v.name, round, row.Milliseconds, row.Own, row.Bytes, row.Scrapes, row.Kinds)
		}
	}
	return nil
}

// collector starts a program that scrapes the server; with a sink it exports.
func (c serverCost) collector(ctx context.Context, v costVariant, address, sink string) (*fleet.Process, error) {
	own, err := fleet.FreeAddress()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(c.work, "server")
	arguments, err := v.variant.arguments(dir, setting{addresses: []string{address}, interval: costInterval, own: own, sink: sink, gzip: v.gzip})
	if err != nil {
		return nil, err
	}
	return fleet.Start(ctx, filepath.Join(dir, "log"), nil, v.variant.program, arguments...)
}

// checked runs a program with an exporter and fails unless the scrapes succeed.
func (c serverCost) checked(ctx context.Context, v costVariant, address string) (float64, error) {
	to, err := newSink(ctx, func(string) (time.Time, bool) { return time.Time{}, false })
	if err != nil {
		return 0, err
	}
	defer to.Close()
	process, err := c.collector(ctx, v, address, to.Address)
	if err != nil {
		return 0, err
	}
	defer func() { _, _ = process.Stop(fleet.StopLimit) }()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = until(ctx, process, func() bool { _, ok := to.scraped(); return ok })
	up, _ := to.scraped()
	if err != nil {
		return up, fmt.Errorf("no successful scrape arrived (up %v): %w", up, err)
	}
	return up, nil
}

// scraped measures the server while one program scrapes it.
func (c serverCost) scraped(ctx context.Context, v costVariant, server *fleet.Process, address string) (row costRow, versions map[string]any, err error) {
	process, err := c.collector(ctx, v, address, "")
	if err != nil {
		return row, nil, err
	}
	defer func() {
		if _, stopErr := process.Stop(fleet.StopLimit); err == nil {
			err = stopErr
		}
	}()
	begin, err := counts(ctx, address)
	if err != nil {
		return row, nil, err
	}
	starting, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	err = until(starting, process, func() bool { now, err := counts(starting, address); return err == nil && now.Scrapes > begin.Scrapes })
	if err != nil {
		return row, nil, fmt.Errorf("it did not scrape: %w", err)
	}
	if err := fleet.Sleep(ctx, c.warm); err != nil {
		return row, nil, err
	}
	row, versions, err = c.watch(ctx, server, address, c.window)
	if err == nil && row.Scrapes == 0 {
		err = fmt.Errorf("no scrape in %s", c.window)
	}
	return row, versions, err
}

// watch returns what the server used and answered in a time; the processor time is the whole,
// in milliseconds.
func (c serverCost) watch(ctx context.Context, server *fleet.Process, address string, length time.Duration) (row costRow, versions map[string]any, err error) {
	before, err := counts(ctx, address)
	if err != nil {
		return row, nil, err
	}
	first, err := server.Use()
	if err != nil {
		return row, nil, err
	}
	if err := fleet.Sleep(ctx, length); err != nil {
		return row, nil, err
	}
	last, err := server.Use()
	if err != nil {
		return row, nil, err
	}
	after, err := counts(ctx, address)
	if err != nil {
		return row, nil, err
	}
	row = costRow{
		Scrapes: after.Scrapes - before.Scrapes, Kinds: map[string]int{},
		Milliseconds: 1000 * (last.CPU - first.CPU).Seconds(), Own: 1000 * (after.CPUSeconds - before.CPUSeconds),
	}
	for kind, n := range after.Kinds {
		if n > before.Kinds[kind] {
			row.Kinds[kind] = n - before.Kinds[kind]
		}
	}
	if row.Scrapes > 0 {
		row.Bytes = float64(after.Bytes-before.Bytes) / float64(row.Scrapes)
	}
	return row, after.Versions, nil
}

// counts asks the server what it has answered so far.
func counts(ctx context.Context, address string) (out costCounts, err error) {
	content, err := fleet.Get(ctx, "http://"+address+"/counts")
	if err != nil {
		return out, err
	}
	err = json.Unmarshal(content, &out)
	return out, err
}

// print shows the median of the rounds with their range, and the parts.
func (r costReport) print() {
	fmt.Printf("\nThe server: %v\n\n| form | engines | scraped by | answered as | up | ms of the server per scrape | bytes per scrape |\n|---|---|---|---|---|---|---|\n", r.Versions)
	var done []string
	for _, row := range r.Rows {
		id := fmt.Sprint(row.Form, row.Engines, row.Variant)
		if slices.Contains(done, id) {
			continue
		}
		done = append(done, id)
		var all, bytes []float64
		for _, other := range r.Rows {
			if fmt.Sprint(other.Form, other.Engines, other.Variant) == id {
				all, bytes = append(all, other.Milliseconds), append(bytes, other.Bytes)
			}
		}
		slices.Sort(all)
		slices.Sort(bytes)
		var kinds []string
		for kind := range row.Kinds {
			kinds = append(kinds, kind)
		}
		slices.Sort(kinds)
		fmt.Printf("| %s | %d | %s | %s | %v | %.2f (%.2f to %.2f) | %.0f |\n", row.Form, row.Engines, row.Variant,
			strings.Join(kinds, "; "), row.Up, all[len(all)/2], all[0], all[len(all)-1], bytes[len(bytes)/2])
	}
	fmt.Println("\nSubtracted: what the server uses in one interval without a scrape, in ms:", r.Idle)
	fmt.Print("\n| engines | in Python alone | ms | bytes |\n|---|---|---|---|\n")
	for _, p := range r.Parts {
		for _, name := range []string{"text", "text_gzip", "openmetrics", "openmetrics_gzip"} {
			fmt.Printf("| %d | %s | %.2f (%.2f to %.2f) | %d |\n", p.Engines, name, p.Parts[name].Median, p.Parts[name].Min, p.Parts[name].Max, p.Parts[name].Bytes)
		}
	}
}
