// Command peers compares the collector with its peers on this machine: it serves bodies of
// vLLM servers on loopback addresses, runs each program in turns under the same load, and
// measures what the program uses. "make bench-peers" runs it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/peers/served"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}

func scenarios() []scenario {
	return []scenario{
		{Name: "profile low", Targets: 100, Engines: 1, Interval: 1000 * time.Millisecond, Form: served.Length, Window: 65 * time.Second},
		{Name: "profile", Targets: 400, Engines: 1, Interval: 500 * time.Millisecond, Form: served.Length, Window: 15 * time.Second},
		{Name: "100x1s", Targets: 100, Engines: 1, Interval: time.Second, Form: served.Length, Window: 15 * time.Second},
		{Name: "1000x10s", Targets: 1000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Window: 20 * time.Second},
		{Name: "3000x30s", Targets: 3000, Engines: 1, Interval: 30 * time.Second, Form: served.Length, Window: 30 * time.Second},
		{Name: "1x20ms", Targets: 1, Engines: 1, Interval: 20 * time.Millisecond, Form: served.Length, Window: 10 * time.Second},
		{Name: "100x5s small chunks", Targets: 100, Engines: 1, Interval: 5 * time.Second, Form: served.Small, Window: 20 * time.Second},
		{Name: "100x2s, 8 engines", Targets: 100, Engines: 8, Interval: 4 * time.Second, Form: served.Length, Window: 16 * time.Second},
		{Name: "1000x10s, layouts differ", Targets: 1000, Engines: 1, Interval: 10 * time.Second, Form: served.Length, Differ: true, Window: 20 * time.Second},
		{Name: "100x1s gzip", Targets: 100, Engines: 1, Interval: time.Second, Form: served.Chunked, Gzip: true, Window: 15 * time.Second},
	}
}

func run() error {
	bin := flag.String("bin", "bin", "folder with the programs")
	body := flag.String("body", "testdata/v1-0.20.0/metrics.txt", "body of the servers")
	work := flag.String("work", "build/bench-peers", "folder for configurations, logs and results")
	rounds := flag.Int("rounds", 3, "how often each program runs under each load")
	only := flag.String("scenarios", "", "names of the loads to run, separated by semicolons, with * at the end for the begin of names; all if empty")
	some := flag.String("variants", "", "names of the programs to run, in the same way")
	export := flag.Bool("export", false, "measure the time to the export")
	server := flag.Bool("server", false, "measure what a scrape costs the server, with prometheus_client in Python")
	python := flag.String("python", "/usr/bin/python3", "Python for -server; PYTHONPATH has the packages")
	warm := flag.Duration("server-warm", 3*time.Second, "how long each program scrapes before it is measured with -server")
	window := flag.Duration("server-window", 20*time.Second, "how long is measured with -server")
	flag.Parse()
	text, err := os.ReadFile(*body)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *server {
		cost := serverCost{
			bin: *bin, python: *python, script: "internal/test/peers/server.py", work: *work,
			rounds: *rounds, warm: *warm, window: *window,
		}
		return cost.run(ctx, text)
	}
	var results []result
	for _, c := range scenarios() {
		if !named(*only, c.Name) {
			continue
		}
		for round := 1; round <= *rounds; round++ {
			for _, v := range variants(*bin) {
				if !named(*some, v.Name) || *export && v.config == nil {
					continue
				}
				r, err := measure(ctx, v, c, text, filepath.Join(*work, "run"), *export)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.Name, v.Name, err)
				}
				r.Round = round
				results = append(results, r)
				fmt.Printf("%-26s %-22s %d  %6.3f ms (%.3f in the kernel, %.1f sleeps)  %5.1f MB  %7.0f KB/scrape  %6d scrapes  first %s all %s", c.Name, v.Name, round,
					float64(r.CPU)/1e6, float64(r.System)/1e6, r.Switches, float64(r.Peak)/1e6, r.Allocated/1e3, r.Scrapes, r.FirstAnswer.Round(time.Millisecond), r.AllAnswered.Round(time.Millisecond))
				if *export {
					fmt.Printf("  export %s p50 %s p99 %s of %d", r.FirstExport.Round(time.Millisecond), r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond), r.Batches)
				}
				fmt.Println()
			}
		}
	}
	out, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(*work, "results.json"), out, 0o600)
}

func named(choice, name string) bool {
	if choice == "" {
		return true
	}
	for part := range strings.SplitSeq(choice, ";") {
		if part == name || strings.HasSuffix(part, "*") && strings.HasPrefix(name, part[:len(part)-1]) {
			return true
		}
	}
	return false
}
