// Program run soaks the built collector; "make soak" starts it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/soak"
)

func main() {
	o := soak.Options{Out: os.Stdout, Root: "."}
	flag.StringVar(&o.Collector, "collector", "bin/otelcol-vllm", "the collector `program`")
	flag.StringVar(&o.Dir, "dir", "build/soak", "the `folder` of the results")
	flag.DurationVar(&o.For, "for", time.Hour, "how long to soak")
	flag.DurationVar(&o.Interval, "interval", 5*time.Second, "the time between two scrapes of a server")
	flag.IntVar(&o.Targets, "targets", 200, "how many servers there are at a time")
	flag.Uint64Var(&o.Seed, "seed", 1, "the seed of what is drawn")
	flag.DurationVar(&o.Patience, "patience", 20*time.Second, "how long the collector may take to be ready, and to end")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it what the defer would undo
	}
}

func run(ctx context.Context, o soak.Options) error {
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return err
	}
	if o.Collector, err = filepath.Abs(o.Collector); err != nil {
		return err
	}
	if o.Targets < 2 || o.For < 20*time.Second || o.Interval < time.Second {
		return fmt.Errorf("give at least 2 targets, 20 s and an interval of 1 s; not %d, %s and %s", o.Targets, o.For, o.Interval)
	}
	result, err := soak.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Printf("\n%s has the table, the numbers (soak.json), the picture (soak.svg) and the collector's log\n", o.Dir)
	if len(result.Failures) == 0 {
		fmt.Println("the soak has passed")
		return nil
	}
	for _, failure := range result.Failures {
		fmt.Fprintln(os.Stderr, "  -", failure)
	}
	for _, example := range result.Balance.Examples {
		fmt.Fprintln(os.Stderr, "    for example:", example)
	}
	return fmt.Errorf("%d checks failed", len(result.Failures))
}
