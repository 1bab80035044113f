// Program run runs a fleet of engines with shards of the built collector; "make scale" starts it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/scale"
)

func main() {
	o := scale.Options{Out: os.Stdout, Root: "."}
	page, from, longer := "", "", ""
	flag.StringVar(&o.Collector, "collector", "bin/otelcol-vllm", "the collector `program`")
	flag.StringVar(&o.Dir, "dir", "build/scale", "the `folder` of the results, which is emptied")
	flag.IntVar(&o.Engines, "engines", 10000, "how many engines the fleet has")
	flag.DurationVar(&o.Interval, "interval", 15*time.Second, "the time between two scrapes of an engine")
	flag.DurationVar(&o.Window, "window", time.Minute, "the window of the processor")
	flag.IntVar(&o.Targets, "targets", 1000, "limits::targets of the first start; the log names the number for the later ones")
	flag.IntVar(&o.Series, "series", 100000, "max_series of the first start")
	flag.DurationVar(&o.Rest, "rest", 4*time.Minute, "how long nothing is done at first")
	flag.DurationVar(&o.Settle, "settle", time.Minute, "how long nothing is done after each action")
	flag.DurationVar(&o.Away, "away", 5*time.Second, "the time from the end of a pod to the start of the next one")
	flag.DurationVar(&o.Patience, "patience", 5*time.Minute, "how long to wait for anything")
	flag.DurationVar(&o.Slack, "slack", 4*time.Second, "how much longer than two intervals a gap may be")
	flag.StringVar(&page, "page", "", "the `page` whose tables are written")
	flag.StringVar(&from, "from", "", "write the page from this `file` of an earlier run, and run nothing")
	flag.StringVar(&longer, "longer", "", "the scale.json of a run that has waited longer, for the page's second table of the diagnosis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case from != "":
		err = again(from, page, longer)
	default:
		err = run(ctx, o, page, longer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it what the defer would undo
	}
}

// again writes the page of an earlier run.
func again(from, page, longer string) error {
	result, err := read(from)
	if err != nil {
		return err
	}
	return write(result, page, longer)
}

// read reads the result of an earlier run.
func read(file string) (*scale.Result, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	result := &scale.Result{}
	return result, json.Unmarshal(content, result)
}

// write writes the page.
func write(result *scale.Result, page, longer string) error {
	var second *scale.Result
	if longer != "" {
		var err error
		if second, err = read(longer); err != nil {
			return err
		}
	}
	return result.WritePage(page, second)
}

func run(ctx context.Context, o scale.Options, page, longer string) (err error) {
	for _, path := range []*string{&o.Dir, &o.Collector, &o.Root} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if o.Engines < 30 || o.Interval < time.Second {
		return fmt.Errorf("give at least 30 engines and an interval of 1 s; not %d and %s", o.Engines, o.Interval)
	}
	result, err := scale.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s", result.Tables())
	fmt.Printf("%s has the numbers (scale.json), the picture and the logs\n", o.Dir)
	if page != "" {
		if err := write(result, page, longer); err != nil {
			return err
		}
	}
	for _, failure := range result.Failures {
		fmt.Fprintln(os.Stderr, "  -", failure)
	}
	if n := len(result.Failures); n > 0 {
		return errors.New(fmt.Sprint(n, " checks failed"))
	}
	fmt.Println("all checks have passed")
	return nil
}
