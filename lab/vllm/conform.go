//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/conform"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/page"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/real"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// results is where the conformance of releases is kept.
const results = "lab/vllm/conform/results"

func conformance(ctx context.Context, book *story.Book, args []string) error {
	var i installed
	flags := flag.NewFlagSet("conform", flag.ExitOnError)
	i.flags(flags)
	steady := flags.Duration("for", conform.Steady, "how `long` clients send requests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := i.resolve(); err != nil {
		return err
	}
	play, err := book.Play("steady")
	if err != nil {
		return err
	}
	// A closed loop fits any machine and any release: 0.16 gives some tokens a second.
	play.Phases = play.Phases[:1]
	play.Phases[0].For, play.Phases[0].Load, play.Phases[0].Clients, play.Phases[0].KeepAlive = *steady, 0, 5, true
	release, err := conform.Measure(ctx, &real.Options{
		Folder: i.folder, Version: i.version, Logs: filepath.Join(i.folder, "conformance", i.version), Seed: 1,
		Lengths: lengths(book), Say: os.Stdout,
	}, play, results)
	if err != nil {
		return err
	}
	fmt.Print(page.Conformance([]*conform.Release{release}, true))
	return nil
}
