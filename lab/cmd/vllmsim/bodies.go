package main

import (
	"context"
	"fmt"
	"io"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// bodies writes the generated part of testdata/.
func bodies(_ context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("bodies", "[DIR]", "Writes the generated test bodies, one folder per dialect and version.", stderr)
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	dir := "testdata"
	switch len(rest) {
	case 0:
	case 1:
		dir = rest[0]
	default:
		return usagef("want at most one DIR, got %d arguments", len(rest))
	}
	n, err := vllmsim.WriteBodies(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "vllmsim bodies: %d files in %s\n", n, dir)
	return nil
}
