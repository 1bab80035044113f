//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	comparison "github.com/otelcol-vllm/otelcol-vllm/lab/vllm/compare"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/sim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// simulate plays stories on the simulator.
func simulate(ctx context.Context, book *story.Book, args []string) error {
	o := sim.Options{Book: book}
	flags := flag.NewFlagSet("simulate", flag.ExitOnError)
	names := flags.String("story", "", "the `names` of stories that share a server, with commas")
	flags.StringVar(&o.Version, "version", "0.32.0", "the `release` of vLLM that is imitated")
	flags.Uint64Var(&o.Seed, "seed", 7, "the `number` that makes the requests")
	flags.Float64Var(&o.Capacity, "capacity", 0, "how many `requests` the server answers in a second; 0 measures it")
	flags.Float64Var(&o.Pace, "pace", 1, "how many `times` as long it takes for everything, as on a machine that others use")
	like := flags.String("like", "", "a `file` with a run whose stories are played, with its seed and its capacity; in place of -story")
	folder := flags.String("folder", "build/vllm", "the `folder` for the run")
	out := flags.String("out", "", "the `file` for the run (FOLDER/runs/STORIES-sim"+ending+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := strings.Split(*names, ",")
	var p *story.Play
	if *like != "" {
		r, err := run.Read(*like)
		if err != nil {
			return err
		}
		p, o.Version, o.Seed, o.Capacity, chosen = &r.Play, r.Version, r.Seed, r.Capacity, r.Play.Stories
	} else {
		var err error
		if p, err = book.Play(chosen...); err != nil {
			return err
		}
	}
	path := *out
	if path == "" {
		path = filepath.Join(*folder, "runs", strings.Join(chosen, "+")+"-sim"+ending)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r, err := sim.Play(ctx, p, o)
	if err != nil {
		return err
	}
	if err := r.Write(path); err != nil {
		return err
	}
	return tell(ctx, r, path)
}

// compare prints how a run of the simulator differs from one of a real vLLM.
func compare(ctx context.Context, args []string) error {
	if len(args) != 2 {
		return errors.New(usage)
	}
	var runs [2]*run.Run
	var heard [2][]judge.Heard
	for i, path := range args {
		r, err := run.Read(path)
		if err != nil {
			return err
		}
		one, err := said.Replay(ctx, r, 5*time.Second, rules)
		if err != nil {
			return err
		}
		runs[i], heard[i] = r, one.Heard
	}
	if runs[0].Simulated || !runs[1].Simulated || !slices.Equal(runs[0].Play.Stories, runs[1].Play.Stories) {
		return fmt.Errorf("%s and %s are not a run of a real vLLM and one of the simulator, of the same stories", args[0], args[1])
	}
	fmt.Print(comparison.Table(runs[0], runs[1], heard))
	return nil
}
