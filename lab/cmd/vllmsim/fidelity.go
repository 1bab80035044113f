package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/fidelity"
)

// fidelityPart is the part of the page that has the summary.
const fidelityPart = "fidelity"

// compareWithReal prints how close the simulated engine is to real ones.
func compareWithReal(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := newFlags("fidelity", "", "Compares the simulated engine with measurements of real ones, and prints a table. It reads the measurements\n"+
		"in profiles below --shared; without them it changes nothing, and the status is 0.", stderr)
	shared := flags.String("shared", "../shared", "folder of shared data, with profiles")
	page := flags.String("page", "", "page to put the summary into, between its marks")
	rest, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usagef("unexpected argument %q", rest[0])
	}
	var lines []fidelity.Line
	for _, s := range fidelity.Sections() {
		fmt.Fprintf(stderr, "vllmsim fidelity: %s\n", s.Name)
		got, err := s.Lines(ctx, *shared)
		if errors.Is(err, fidelity.ErrAbsent) {
			fmt.Fprintf(stderr, "vllmsim fidelity: skipped, and no page is changed: %v; -shared names the folder\n", err)
			return nil
		}
		if err != nil {
			return err
		}
		lines = append(lines, got...)
	}
	if *page != "" {
		if err := pageparts.Rewrite(*page, map[string]string{fidelityPart: fidelity.Summary(lines)}); err != nil {
			return err
		}
	}
	_, err = io.WriteString(stdout, fidelity.Table(lines))
	return err
}
