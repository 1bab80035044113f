//go:build linux

// Program vllm plays the stories of story/stories.yaml on a real vLLM or on the simulator, and
// says what users felt beside what the collector would have reported. "make real" starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/conform"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/page"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/real"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := work(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "vllm:", err)
		os.Exit(1)
	}
}

const usage = `usage:
  vllm play -story NAME[,NAME...]   play stories that share a server on a real vLLM, and judge them
  vllm judge FILE...                judge runs that were kept, again
  vllm conform                      compare the collector's values and samples of a real vLLM with the truth
  vllm list                         list the stories`

// rules are the alerts that are judged.
const rules = "content/rules/suffixed/vllm.yaml"

func work(ctx context.Context) error {
	if len(os.Args) < 2 {
		return errors.New(usage)
	}
	book, err := story.Shipped()
	if err != nil {
		return err
	}
	switch args := os.Args[2:]; os.Args[1] {
	case "play":
		return play(ctx, book, args)
	case "judge":
		for _, path := range args {
			r, err := run.Read(path)
			if err != nil {
				return err
			}
			if err := tell(ctx, r, path); err != nil {
				return err
			}
		}
		return nil
	case "conform":
		return conformance(ctx, book, args)
	case "list":
		for _, s := range book.Stories {
			fmt.Printf("%-18s %-12s %s\n", s.Name, s.Server, s.About)
		}
		return nil
	default:
		return errors.New(usage)
	}
}

func play(ctx context.Context, book *story.Book, args []string) error {
	flags := flag.NewFlagSet("play", flag.ExitOnError)
	folder := flags.String("folder", "build/vllm", "the `folder` that install.sh made")
	version := flags.String("version", "0.32.0", "the `release` of vLLM")
	names := flags.String("story", "", "the `names` of stories that share a server, with commas")
	seed := flags.Uint64("seed", 7, "the `number` that makes the requests")
	collector := flags.String("collector", "bin/otelcol-vllm", "the collector's `program`, which runs beside the story; empty for none")
	out := flags.String("out", "", "the `file` for the run (FOLDER/runs/STORIES-VERSION"+ending+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := book.Play(strings.Split(*names, ",")...)
	if err != nil {
		return err
	}
	path := *out
	if path == "" {
		path = filepath.Join(*folder, "runs", strings.ReplaceAll(*names, ",", "+")+"-"+*version+ending)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r, err := real.Play(ctx, chosen, &real.Options{
		Folder: *folder, Version: *version, Logs: strings.TrimSuffix(path, ending), Seed: *seed, Collector: *collector,
		Lengths: story.Phase{Prompt: book.Prompt, Output: book.Output}, Say: os.Stdout,
	})
	if r == nil || len(r.Scrapes) == 0 {
		return err
	}
	if err := errors.Join(err, r.Write(path)); err != nil {
		return err
	}
	return tell(ctx, r, path)
}

func conformance(ctx context.Context, book *story.Book, args []string) error {
	flags := flag.NewFlagSet("conform", flag.ExitOnError)
	folder := flags.String("folder", "build/vllm", "the `folder` that install.sh made")
	version := flags.String("version", "0.32.0", "the `release` of vLLM")
	steady := flags.Duration("for", conform.Steady, "how `long` clients send requests")
	collector := flags.String("collector", "bin/otelcol-vllm", "the collector's `program`")
	prometheus := flags.String("prometheus", "bin/tools/prometheus/usr/bin/prometheus", "the `program` of a Prometheus server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	play, err := book.Play("steady")
	if err != nil {
		return err
	}
	play.Phases = play.Phases[:1]
	play.Phases[0].For = *steady
	logs := filepath.Join(*folder, "conformance", *version)
	release, err := conform.Measure(ctx, &real.Options{
		Folder: *folder, Version: *version, Logs: logs, Seed: 1,
		Lengths: story.Phase{Prompt: book.Prompt, Output: book.Output}, Say: os.Stdout,
	}, play, conform.Programs{Collector: *collector, Prometheus: *prometheus}, rules, filepath.Dir(logs))
	if err != nil {
		return err
	}
	fmt.Print(page.Conformance([]*conform.Release{release}))
	return nil
}

// ending is that of the files of runs.
const ending = ".tar.zst"

// tell judges a run, prints the lines and writes its page.
func tell(ctx context.Context, r *run.Run, path string) error {
	var all []*said.All
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
		one, err := said.Replay(ctx, r, said.Options{Interval: interval, Rules: rules})
		if err != nil {
			return err
		}
		all = append(all, one)
	}
	fmt.Printf("%s on vLLM %s\n%s", strings.Join(r.Play.Stories, ", "), r.Version, page.Lines(r, all))
	file, err := os.Create(strings.TrimSuffix(path, ending) + ".html")
	if err != nil {
		return err
	}
	if err := errors.Join(page.HTML(file, r, all), file.Close()); err != nil {
		return err
	}
	fmt.Println("the page is", file.Name())
	return nil
}
