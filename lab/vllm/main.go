//go:build linux

// Program vllm plays the stories of story/stories.yaml on a real vLLM or on the simulator, and
// says what users felt beside what the collector would have reported. "make real" starts it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/page"
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
  vllm play -story NAME[,NAME...]   play stories that share a server on a real vLLM, and judge them;
                                    -story all plays all of them, those of a server together
  vllm simulate -story NAME[,...]   play stories that share a server on the simulator, and judge them
  vllm compare REAL SIMULATED       compare a run of a real vLLM with one of the simulator
  vllm judge FILE...                judge runs that were kept, again
  vllm conform                      compare the derived values of a real vLLM with what its clients saw
  vllm check FILE...                compare in runs that were kept what clients saw with what is derived
  vllm gateway                      compare what a gateway before a real vLLM adds with what its clients felt
  vllm scraped                      measure what clients of a real vLLM feel of scrapes
  vllm defects                      show on a real vLLM what docs/what-vllm-gets-wrong.md says of it
  vllm demo -listen 127.0.0.1:PORT  serve a real vLLM to lab/cmd/demo, with an incident
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
	case "simulate":
		return simulate(ctx, book, args)
	case "compare":
		return compare(ctx, args)
	case "judge":
		return each(args, func(r *run.Run, path string) error { return tell(ctx, r, path) })
	case "check":
		return each(args, func(r *run.Run, _ string) error { return check(ctx, r) })
	case "demo":
		return demo(ctx, book, args)
	case "defects":
		return showDefects(ctx, args)
	case "gateway":
		return showGateway(ctx, book, args)
	case "scraped":
		return scraped(ctx, book, args)
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

// each calls a function with runs that were kept.
func each(paths []string, do func(r *run.Run, path string) error) error {
	for _, path := range paths {
		r, err := run.Read(path)
		if err != nil {
			return err
		}
		if err := do(r, path); err != nil {
			return err
		}
	}
	return nil
}

// ending is that of the files of runs.
const ending = ".tar.zst"

// tell judges a run, prints the lines and writes its page.
func tell(ctx context.Context, r *run.Run, path string) error {
	var all []*said.All
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second} {
		one, err := said.Replay(ctx, r, interval, rules)
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
