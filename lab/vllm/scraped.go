//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/real"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// scraped measures what clients feel of scrapes.
func scraped(ctx context.Context, book *story.Book, args []string) error {
	o := &real.Options{Seed: 7, Lengths: lengths(book), Say: os.Stdout}
	var i installed
	flags := flag.NewFlagSet("scraped", flag.ExitOnError)
	i.flags(flags)
	flags.StringVar(&o.Collector, "bin", "bin/collector-ours", "the collector's `program`, with the receiver and the processor")
	phase := flags.Duration("phase", 150*time.Second, "how `long` each phase sends requests; the first 10 s are not counted")
	page := flags.String("page", "", "the `file` that receives the table; empty prints it only")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := i.resolve(); err != nil {
		return err
	}
	if *phase <= real.Unsettled {
		return fmt.Errorf("-phase %s: want more than the %s that are not counted", *phase, real.Unsettled)
	}
	o.Folder, o.Version, o.Logs = i.folder, i.version, filepath.Join(i.folder, "scraped")
	play, err := book.Play("steady")
	if err != nil {
		return err
	}
	play.Phases = play.Phases[:1]
	// Short answers: there are more requests, and their first tokens, in the same time.
	o.Lengths.Output = story.Lengths{Mean: 16, Sigma: 0.5, Most: 100}
	play.Phases[0].For, play.Phases[0].Output = *phase, o.Lengths.Output
	felt, err := real.Scraped(ctx, play, o)
	table := real.FeltTable(felt)
	fmt.Print(table)
	if err != nil || *page == "" {
		return err
	}
	return pageparts.Rewrite(*page, map[string]string{"server: felt": table})
}
