package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// curves prints what the simulated engines are judged by.
func curves(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	models := engine.Models()
	names := slices.Sorted(maps.Keys(models))
	flags := newFlags("curves", "", "Prints, as CSV, latencies of the simulated engines against batch, prompt and load.", stderr)
	hardware := flags.String("hardware", "", "one of "+strings.Join(names, ", ")+" (default: all)")
	seed := flags.Uint64("seed", 1, "seed of the load")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("unexpected argument %q", rest[0])
	}
	if *hardware != "" {
		if _, known := models[*hardware]; !known {
			return usagef("unknown hardware %q: want one of %s", *hardware, strings.Join(names, ", "))
		}
		names = []string{*hardware}
	}
	out := csv.NewWriter(stdout)
	rows := [][]string{{"hardware", "curve", "x", "metric", "value"}}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		points, err := engine.Curves(models[name], *seed)
		if err != nil {
			return err
		}
		for _, p := range points {
			rows = append(rows, []string{
				name, p.Curve, strconv.FormatFloat(p.X, 'f', -1, 64), p.Metric, fmt.Sprintf("%.6f", p.Value),
			})
		}
	}
	return out.WriteAll(rows)
}
