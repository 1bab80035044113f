package main

import (
	"context"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/plot"
)

// plots draws the curves into a folder.
func plots(_ context.Context, args []string, _, stderr io.Writer) error {
	flags := newFlags("plots", "DIR", "Draws, as SVG, what \"vllmsim curves\" prints.", stderr)
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usagef("want one DIR, not %d", len(rest))
	}
	pictures, err := plot.Curves(1)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(pictures)) {
		if err := os.WriteFile(filepath.Join(rest[0], name), pictures[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
