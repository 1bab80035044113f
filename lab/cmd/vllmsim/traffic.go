package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/traffic"
)

// generate writes generated traffic as a trace, or compares it with one.
func generate(_ context.Context, args []string, stdout, stderr io.Writer) error {
	var about strings.Builder
	about.WriteString("Writes generated traffic as a trace in CSV, for the key trace of a scenario.\nNAME is one of:\n")
	for _, name := range traffic.Names() {
		fmt.Fprintf(&about, "\n  %-14s%s", name, traffic.About(name))
	}
	flags := newFlags("traffic", "NAME", about.String(), stderr)
	rate := flags.Float64("rate", 0, "mean requests per second (default: that of the trace to which NAME is fitted)")
	seconds := flags.Float64("seconds", 3600, "length of the traffic")
	seed := flags.Uint64("seed", 1, "seed; another one makes other tenants of the same family")
	against := flags.String("against", "", "compare the statistics with those of the trace in this `FILE` instead; the rate and the length are then its own where they are not given")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usagef("want one kind of traffic, got %d: one of %s", len(rest), strings.Join(traffic.Names(), ", "))
	}
	if *against != "" {
		given := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
		trace, err := traffic.Read(*against)
		if err != nil {
			return err
		}
		if len(trace.Arrivals) > 0 {
			if !given["rate"] {
				*rate = float64(len(trace.Arrivals)) / trace.Span
			}
			if !given["seconds"] {
				*seconds = trace.Span
			}
		}
		generated, err := traffic.Generate(rest[0], *seed, *rate, *seconds)
		if err != nil {
			return usageError{err}
		}
		return compare(stdout, trace, generated)
	}
	generated, err := traffic.Generate(rest[0], *seed, *rate, *seconds)
	if err != nil {
		return usageError{err}
	}
	return traffic.Write(stdout, generated)
}

// compare prints the statistics that one of both has.
func compare(stdout io.Writer, trace, generated *engine.Traffic) error {
	read, made := traffic.Measure(trace), traffic.Measure(generated)
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\t%s\t%s\t\n", trace.Name, generated.Name)
	other := made.All()
	for i, statistic := range read.All() {
		left, right := traffic.Number(statistic.Value), traffic.Number(other[i].Value)
		if left != "" || right != "" {
			fmt.Fprintf(table, "%s\t%s\t%s\t\n", statistic.Name, left, right)
		}
	}
	return table.Flush()
}
