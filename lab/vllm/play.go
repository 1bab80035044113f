//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/agree"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/real"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/story"
)

// installed are the flags that say which vLLM runs.
type installed struct{ folder, version string }

func (i *installed) flags(flags *flag.FlagSet) {
	flags.StringVar(&i.folder, "folder", "build/vllm", "the `folder` that install.sh made")
	flags.StringVar(&i.version, "version", "0.32.0", "the `release` of vLLM, or newest for the one that install.sh found last")
}

// resolve replaces newest by the release that it is.
func (i *installed) resolve() error {
	if i.version != "newest" {
		return nil
	}
	to, err := os.Readlink(filepath.Join(i.folder, i.version))
	i.version = filepath.Base(to)
	return err
}

// longest is how long stories on one server may take in all.
const longest = 50 * time.Minute

type player struct {
	installed
	book  *story.Book
	seed  uint64
	check bool
	// collector is the program that runs beside the stories; empty for none.
	collector string
}

func play(ctx context.Context, book *story.Book, args []string) error {
	p := &player{book: book}
	flags := flag.NewFlagSet("play", flag.ExitOnError)
	p.flags(flags)
	names := flags.String("story", "", "the `names` of stories that share a server, with commas; or all")
	part := flags.String("part", "1/1", "of all stories, play one `part` of several that take about as long")
	flags.Uint64Var(&p.seed, "seed", 7, "the `number` that makes the requests")
	flags.StringVar(&p.collector, "collector", "bin/otelcol-vllm", "the collector's `program`, which runs beside the stories; empty for none")
	own := flags.String("book", "", "a `file` with stories of your own, in the form of story/stories.yaml")
	flags.BoolVar(&p.check, "check", false, "fail where what clients saw and what is derived do not agree")
	out := flags.String("out", "", "the `file` for the run (FOLDER/runs/STORIES-VERSION"+ending+")")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := p.resolve(); err != nil {
		return err
	}
	if *own != "" {
		raw, err := os.ReadFile(*own)
		if err != nil {
			return err
		}
		if p.book, err = story.Read(raw); err != nil {
			return fmt.Errorf("%s: %w", *own, err)
		}
	}
	if *names != "all" {
		return p.play(ctx, strings.Split(*names, ","), *out)
	}
	var number, of int
	if _, err := fmt.Sscanf(*part, "%d/%d", &number, &of); err != nil || number < 1 || number > of {
		return fmt.Errorf("-part %s: want a number of several, for example 1/3", *part)
	}
	groups, err := p.book.Part(p.book.Groups(longest), number, of)
	if err != nil {
		return err
	}
	var all error
	for i, group := range groups {
		fmt.Printf("==> %d of %d: %s\n", i+1, len(groups), strings.Join(group, ", "))
		// What one server does to its stories is not a reason to leave out those of others.
		all = errors.Join(all, p.play(ctx, group, ""))
		if ctx.Err() != nil {
			return fmt.Errorf("ended before all was played: %w", errors.Join(ctx.Err(), all))
		}
	}
	return all
}

func (p *player) play(ctx context.Context, names []string, path string) error {
	chosen, err := p.book.Play(names...)
	if err != nil {
		return err
	}
	if path == "" {
		path = filepath.Join(p.folder, "runs", strings.Join(names, "+")+"-"+p.version+ending)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	r, err := real.Play(ctx, chosen, &real.Options{
		Folder: p.folder, Version: p.version, Logs: strings.TrimSuffix(path, ending), Seed: p.seed, Collector: p.collector,
		Lengths: lengths(p.book), Say: os.Stdout,
	})
	if r == nil || len(r.Scrapes) == 0 {
		return err
	}
	if err := errors.Join(err, r.Write(path)); err != nil {
		return err
	}
	if err := tell(ctx, r, path); err != nil || !p.check {
		return err
	}
	return check(ctx, r)
}

func lengths(book *story.Book) story.Phase {
	return story.Phase{Prompt: book.Prompt, Output: book.Output}
}

func check(ctx context.Context, r *run.Run) error {
	wrong, err := agree.Check(ctx, r)
	if err != nil {
		return err
	}
	if len(wrong) > 0 {
		return fmt.Errorf("clients and collector do not agree:\n  %s", strings.Join(wrong, "\n  "))
	}
	fmt.Println("what the clients saw and what the collector derives agree")
	return nil
}

// demo serves what "make run VLLM=1" shows.
func demo(ctx context.Context, book *story.Book, args []string) error {
	var i installed
	flags := flag.NewFlagSet("demo", flag.ExitOnError)
	i.flags(flags)
	listen := flags.String("listen", "127.0.0.1:8000", "`host:port` of the server")
	logs := flags.String("logs", "build/run", "the `folder` for the log of the server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := i.resolve(); err != nil {
		return err
	}
	host, number, err := net.SplitHostPort(*listen)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(number)
	if err != nil || host != "127.0.0.1" {
		return fmt.Errorf("-listen %s: a real server listens on 127.0.0.1 and a port", *listen)
	}
	return real.Show(ctx, &real.Options{
		Folder: i.folder, Version: i.version, Logs: *logs, Seed: 7, Lengths: lengths(book), Say: os.Stdout,
	}, port, &real.MakeRun)
}
