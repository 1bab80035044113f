package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of the draw")
	flag.IntVar(&o.count, "count", 150, "how many mutations to draw")
	flag.IntVar(&o.workers, "workers", runtime.NumCPU(), "how many mutations to test at a time")
	flag.StringVar(&o.gremlins, "gremlins", "gremlins", "the gremlins program")
	flag.StringVar(&o.page, "o", "", "the file that the table is written to")
	flag.Parse()
	o.patterns = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1) //nolint:gocritic // the process ends, and with it what the defer would undo
	}
}

type options struct {
	seed           uint64
	count, workers int
	gremlins, page string
	patterns       []string
}

// result is a mutation and what the tests did with it.
type result struct {
	mutation mutation
	verdict  verdict
	late     bool // the tests did not end in time
	took     time.Duration
}

// words is the verdict in words.
func (r result) words() string {
	if r.late {
		return r.verdict.String() + ", out of time"
	}
	return r.verdict.String()
}

func run(ctx context.Context, o options) error {
	if o.count < 1 || o.workers < 1 || o.page == "" || len(o.patterns) == 0 {
		return errors.New("give -count and -workers above 0, -o and the packages of the product")
	}
	gremlins, err := filepath.Abs(o.gremlins)
	if err != nil {
		return err
	}
	packages, root, err := product(o.patterns)
	if err != nil {
		return err
	}
	all, err := list(gremlins, packages, root)
	if err != nil {
		return err
	}
	fmt.Printf("%d mutations are possible in %d packages\n", len(all), len(packages))

	r := &runner{root: root, allowed: map[suite]time.Duration{}}
	drawn, discarded, err := draw(ctx, r, all, o)
	if err != nil {
		return err
	}
	fmt.Printf("%d are drawn by seed %d; %d more do not compile\n", len(drawn), o.seed, discarded)
	for _, m := range drawn {
		for _, s := range suites(m.file) {
			if _, measured := r.allowed[s]; measured {
				continue
			}
			if err := r.measure(ctx, s); err != nil {
				return err
			}
		}
	}
	fmt.Printf("the tests of %d packages pass without a mutation\n", len(r.allowed))

	results, err := judgeAll(ctx, r, drawn, o.workers)
	if err != nil {
		return err
	}
	text := table(results, o.seed, len(all), discarded)
	if err := os.WriteFile(o.page, []byte(text), 0o644); err != nil {
		return err
	}
	fmt.Print("\n", summary(results))
	return nil
}

// draw takes the first mutations that compile.
func draw(ctx context.Context, r *runner, all []mutation, o options) (drawn []mutation, discarded int, err error) {
	shuffle(all, o.seed)
	for _, m := range all {
		if len(drawn) == o.count {
			break
		}
		ok, err := r.compiles(ctx, m)
		if err != nil {
			return nil, 0, err
		}
		if ok {
			drawn = append(drawn, m)
		} else {
			discarded++
		}
	}
	if len(drawn) < o.count {
		return nil, 0, fmt.Errorf("only %d mutations compile, %d are wanted", len(drawn), o.count)
	}
	return drawn, discarded, nil
}

// judgeAll tests several mutations at a time. The results are in the order of the draw.
func judgeAll(ctx context.Context, r *runner, drawn []mutation, workers int) ([]result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]result, len(drawn))
	next := make(chan int)
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for i := range next {
				began := time.Now()
				v, late, err := r.judge(ctx, drawn[i])
				if err != nil {
					cancel(err)
					continue
				}
				results[i] = result{drawn[i], v, late, time.Since(began)}
				fmt.Printf("%4d/%d %-38s %5.1fs  %s\n", i+1, len(drawn), results[i].words(), results[i].took.Seconds(), drawn[i])
			}
		})
	}
	for i := range drawn {
		next <- i
	}
	close(next)
	wait.Wait()
	return results, context.Cause(ctx)
}
