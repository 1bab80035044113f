// Command peers compares the collector with its peers on this machine: it serves bodies of
// vLLM servers on loopback addresses, runs each program in turns under the same load, and
// measures what the program uses. "make bench-peers" runs it.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-peers:", err)
		os.Exit(1)
	}
}

// options are those of the command line.
type options struct {
	bin, work           string
	rounds              int
	scenarios, variants string
	short, write        bool
	least               float64
	warm                time.Duration
}

func run() error {
	var o options
	flag.StringVar(&o.bin, "bin", "bin", "folder with the programs")
	flag.StringVar(&o.work, "work", "build/bench-peers", "folder for configurations, logs and results")
	flag.IntVar(&o.rounds, "rounds", 0, "how often each program runs under each load; 0 is twice under the first two loads and once under the others")
	flag.StringVar(&o.scenarios, "scenarios", "", "names of the loads, separated by semicolons, with * for any end; all if empty")
	flag.StringVar(&o.variants, "variants", "", "names of the programs, in the same way")
	flag.BoolVar(&o.short, "short", false, "one round of the first load, in five minutes")
	flag.BoolVar(&o.write, "write", false, "write the results of this and earlier runs to docs/why/performance.md")
	flag.DurationVar(&o.warm, "warm", 3*time.Minute, "how long a program with windows runs before it is measured: the window and two minutes")
	flag.Float64Var(&o.least, "least", 0, "fail where the Prometheus receiver takes less than this times the processor time of our receiver with the processor; 0 is not a bar")
	server := flag.Bool("server", false, "measure what a scrape costs the server, with prometheus_client in Python")
	python := flag.String("python", "/usr/bin/python3", "Python for -server; PYTHONPATH has the packages")
	warm := flag.Duration("server-warm", 3*time.Second, "how long each program scrapes before it is measured with -server")
	window := flag.Duration("server-window", 20*time.Second, "how long is measured with -server")
	flag.Parse()
	text, err := body()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *server {
		cost := serverCost{
			bin: o.bin, python: *python, script: "lab/test/peers/server.py", work: o.work,
			rounds: cmp.Or(o.rounds, 3), warm: *warm, window: *window,
		}
		return cost.run(ctx, text)
	}
	all, err := readResults(filepath.Join(o.work, resultsFile))
	if err != nil {
		return err
	}
	if o.short {
		o.scenarios, o.rounds, o.variants = often, 1, oursName+";"+oursProcessorName+";"+peerName
	}
	for _, c := range scenarios() {
		if o.scenarios != "" && !chosen(o.scenarios, c.Name) {
			continue
		}
		results, err := o.runAll(ctx, c, text)
		if err != nil {
			return err
		}
		all = all.replace(results)
		if err := fleet.Save(o.work, resultsFile, all, nil); err != nil {
			return err
		}
	}
	if err := all.bar(o.least); err != nil || !o.write {
		return err
	}
	return all.writePage("docs/why/performance.md", o.bin)
}

// body is the body of a busy server of today: of the version and with the features that show the most series.
func body() ([]byte, error) {
	server := vllmsim.Scenario{Name: "peers", Config: vllmsim.Config{
		Dialect: "v1", Version: "0.32.0", Engines: 2, LoRA: true, SpecDecode: true, FlopsCounters: true, Seed: 1,
	}}
	files, err := server.Files()
	return files["metrics.txt"], err
}

const resultsFile = "results.json"

// settles is how long a program without windows runs before it is measured, and fullWindow the processor under the loads
// that run once.
const settles, fullWindow = 10 * time.Second, 70 * time.Second

// runAll runs all programs in turns under one load.
func (o *options) runAll(ctx context.Context, c scenario, text []byte) (out results, err error) {
	for round := 1; round <= cmp.Or(o.rounds, c.Rounds); round++ {
		for _, v := range variants(o.bin) {
			if o.variants != "" && !chosen(o.variants, v.Name) || slices.Contains(c.Without, v.Name) {
				continue
			}
			warm := settles
			switch {
			case v.Name != oursProcessorName || c.Export:
			case c.Rounds > 1:
				warm = o.warm
			default:
				warm = min(o.warm, fullWindow)
			}
			r, err := measure(ctx, v, c, text, filepath.Join(o.work, "run"), warm)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", c.Name, v.Name, err)
			}
			r.Round = round
			out = append(out, r)
			fmt.Println(r.line(c.Export))
		}
	}
	return out, nil
}

func (r *result) line(export bool) string {
	out := fmt.Sprintf("%-36s %-22s %d  %6.3f ms  %4.1f sleeps  %6.1f MB  %5.0f KB/scrape  %5d scrapes  first %6s  all %6s",
		r.Scenario, r.Variant, r.Round, float64(r.CPU)/1e6, r.Switches, float64(r.Peak)/1e6, r.Allocated/1e3, r.Scrapes,
		r.FirstAnswer.Round(time.Millisecond), r.AllAnswered.Round(time.Millisecond))
	if export {
		out += fmt.Sprintf("  export %s, p50 %s, p99 %s of %d", r.FirstExport.Round(time.Millisecond),
			r.P50.Round(10*time.Microsecond), r.P99.Round(10*time.Microsecond), r.Batches)
	}
	return out
}
