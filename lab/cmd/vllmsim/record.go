package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/recording"
)

func record(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	options := recording.Options{Report: func(message string) { fmt.Fprintf(stderr, "vllmsim record: %s\n", message) }}
	flags := newFlags("record", "URL DIR", "Records a server's /metrics, one file per scrape and an index.json, for replay.", stderr)
	flags.DurationVar(&options.For, "for", 10*time.Minute, "length of the recording")
	flags.DurationVar(&options.Every, "every", 5*time.Second, "distance between scrapes")
	flags.DurationVar(&options.Wait, "wait", 0, "how long to wait for a server that does not answer yet")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return usagef("want URL and DIR, got %d arguments", len(rest))
	}
	options.URL, options.Dir = rest[0], rest[1]
	bodies, err := recording.Record(ctx, options)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "vllmsim record: %d bodies in %s\n", bodies, options.Dir)
	return nil
}
