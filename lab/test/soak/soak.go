package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// Options are what a soak can be asked for.
type Options struct {
	// Collector is the program, Root the folder of the project, Dir where the results go.
	Collector, Root, Dir string
	For, Interval        time.Duration
	Targets              int
	Seed                 uint64
	// Patience is how long the process may take to be ready, and to end after SIGTERM.
	Patience time.Duration
	// Out gets the progress.
	Out io.Writer
}

const (
	sampleEvery   = 2 * time.Second
	progressEvery = 10 * time.Second
	// shortSoak is a soak in which what the collector remembers of ended servers would grow
	// until its end, because the examples keep it for five minutes.
	shortSoak = 25 * time.Minute
)

// soak is a running soak.
type soak struct {
	Options
	began   time.Time
	plan    schedule
	ledger  *ledger
	servers *servers
	backend *fleet.Backend
	trace   *trace
	book    *logbook
	config  string
	own     string
	tails   []*tail
	process *fleet.Process
	// interrupted is a soak that was ended before its time.
	interrupted bool
	result      Result
	queue       float64
}

// Run soaks the collector. The error is a failure of the soak itself; what the collector did
// wrong is in Result.Failures.
func Run(ctx context.Context, o Options) (*Result, error) {
	s := &soak{Options: o, began: time.Now(), plan: newSchedule(o.For), ledger: newLedger(), trace: newTrace(), book: newLogbook()}
	s.result = Result{
		Began: s.began, Collector: o.Collector, Targets: o.Targets, Interval: o.Interval.String(), Seed: o.Seed,
		WarmUp: s.plan.warm.Seconds(), Active: s.plan.active.Seconds(), Events: map[string]int{},
	}
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	defer s.servers.close()
	defer s.backend.Close()
	if err := s.startCollector(ctx); err != nil {
		return nil, err
	}
	defer func() { s.process.Kill() }()
	err := s.soak(ctx)
	if err != nil && !errors.Is(err, context.Canceled) {
		return nil, err
	}
	// An interrupted soak still ends in order, and reports.
	if err := s.finish(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	if err := s.result.write(o.Dir); err != nil {
		return nil, err
	}
	fmt.Fprint(o.Out, "\n", s.result.table())
	return &s.result, nil
}

func (s *soak) prepare(ctx context.Context) error {
	for _, name := range []string{"queue", "collector.log", "runtime.txt"} {
		if err := os.RemoveAll(filepath.Join(s.Dir, name)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	var err error
	if s.servers, err = newServers(filepath.Join(s.Root, "testdata"), s.Dir, s.Seed, s.ledger); err != nil {
		return err
	}
	if err := s.servers.start(ctx, s.Targets); err != nil {
		return err
	}
	if s.backend, err = fleet.NewBackend(ctx, s.ledger.take); err != nil {
		return err
	}
	if s.own, err = fleet.FreeAddress(); err != nil {
		return err
	}
	logFile := filepath.Join(s.Dir, "collector.log")
	of := setup{
		example: filepath.Join(s.Root, "examples", "diagnosis.yaml"), dir: s.Dir, interval: s.Interval, backend: "http://" + s.backend.Address,
		listFile: s.servers.file(), list: s.servers.listURL, telemetry: s.own, logFile: logFile,
	}
	if s.For < shortSoak {
		of.staleness = time.Minute
	}
	content, err := config(of)
	if err != nil {
		return err
	}
	s.config = filepath.Join(s.Dir, "collector.yaml")
	if err := os.WriteFile(s.config, content, 0o600); err != nil {
		return err
	}
	for _, name := range []string{logFile, s.output()} {
		t, err := newTail(name)
		if err != nil {
			return err
		}
		s.tails = append(s.tails, t)
	}
	return nil
}

// output is where the collector's standard output and error go.
func (s *soak) output() string { return filepath.Join(s.Dir, "runtime.txt") }

// startCollector starts the process and waits until all components have started.
func (s *soak) startCollector(ctx context.Context) error {
	starts := s.book.starts()
	s.trace.restarted()
	p, err := fleet.Start(context.WithoutCancel(ctx), s.output(), []string{"HOME=" + s.Dir, "GODEBUG=" + runtimeTraces}, s.Collector, "--config", s.config)
	if err != nil {
		return err
	}
	s.process = p
	return s.waitForStart(ctx, starts)
}

// waitForStart waits until the log has a further line of a complete start.
func (s *soak) waitForStart(ctx context.Context, starts int) error {
	err := fleet.Wait(ctx, s.Patience, "the start of the collector; see "+s.Dir, func() (bool, error) {
		s.readOutput()
		return s.book.starts() > starts, s.process.Ended()
	})
	if err != nil {
		return err
	}
	return fleet.Sleep(ctx, fleet.Listening)
}

func (s *soak) readOutput() {
	s.tails[0].read(s.book.line)
	s.tails[1].read(s.trace.line)
}

// soak does what the plan says until the end of its time.
func (s *soak) soak(ctx context.Context) error {
	samples, progress := time.Now(), time.Now()
	steps := s.plan.steps
	for {
		now := time.Since(s.began)
		if now >= s.plan.total {
			return nil
		}
		for len(steps) > 0 && steps[0].at <= now {
			if err := s.do(ctx, steps[0]); err != nil {
				return err
			}
			steps = steps[1:]
		}
		if err := s.process.Ended(); err != nil {
			s.fail("%v", err)
			return nil
		}
		if !time.Now().Before(samples) {
			samples = samples.Add(sampleEvery)
			s.sample(ctx)
		}
		if !time.Now().Before(progress) {
			progress = progress.Add(progressEvery)
			s.progress()
		}
		if err := fleet.Sleep(ctx, 100*time.Millisecond); err != nil {
			s.interrupted = true
			s.fail("the soak was interrupted after %s", now.Round(time.Second))
			return err
		}
	}
}

func (s *soak) do(ctx context.Context, next step) error {
	switch next.what {
	case churn:
		return s.servers.churn(ctx)
	case disturb:
		s.servers.disturb(ctx, next.mode, next.lasts)
	case changeEngines, changeModel:
		s.servers.change(next.what == changeEngines)
	case fail:
		s.servers.count("the backend " + string(next.outage))
		s.say("the backend %s", next.outage)
		return s.backend.Become(ctx, next.outage)
	case restore:
		s.say("the backend works again")
		return s.backend.Become(ctx, fleet.Working)
	case reload:
		return s.again("the collector reloaded", func() error {
			starts := s.book.starts()
			if err := s.process.Signal(syscall.SIGHUP); err != nil {
				return err
			}
			return s.waitForStart(ctx, starts)
		})
	case restart:
		return s.again("the collector was restarted", func() error {
			s.stop()
			return s.startCollector(ctx)
		})
	}
	return nil
}

// again starts the collector anew in one of two ways. What it was reading is lost.
func (s *soak) again(what string, start func() error) error {
	s.say("%s", what)
	s.servers.count(what)
	from := time.Now().Add(-sendTime)
	err := start()
	s.ledger.excuse(window{from: from, to: time.Now(), why: what + " while it read"})
	s.servers.unsettle()
	return err
}

// stop ends the process and checks how.
func (s *soak) stop() {
	took, err := s.process.Stop(s.Patience)
	s.result.Stops = append(s.result.Stops, took.Seconds())
	s.result.CPU += s.process.CPU().Seconds()
	if err != nil {
		s.fail("after SIGTERM the collector ended with %v", err)
	}
	s.readOutput()
}

func (s *soak) sample(ctx context.Context) {
	s.readOutput()
	used, err := s.process.Use()
	if err != nil {
		return // It has ended, which is noticed elsewhere.
	}
	one := sample{
		At: time.Since(s.began).Seconds(), RSS: float64(used.Resident), Anonymous: float64(used.Anonymous), Files: float64(used.Files),
	}
	heap, goroutines := s.trace.numbers()
	one.Heap, one.Goroutines = float64(heap)*mebi, float64(goroutines)
	if heap < 0 {
		one.Heap = -1
	}
	if own, err := fleet.Own(ctx, s.own); err == nil {
		s.queue = own["otelcol_exporter_queue_size"]
	}
	one.Queue = s.queue
	s.result.MostQueue = max(s.result.MostQueue, s.queue)
	s.result.Samples = append(s.result.Samples, one)
}

func (s *soak) progress() {
	if len(s.result.Samples) == 0 {
		return
	}
	last := s.result.Samples[len(s.result.Samples)-1]
	served, received := s.ledger.counts()
	s.say("%s; %d answers served, %d received; queue %.1f MiB; goroutines %.0f, heap %.0f MiB, resident %.0f MiB (%.0f without files), %.0f files",
		s.servers.state(), served, received, last.Queue/mebi, last.Goroutines, last.Heap/mebi, last.RSS/mebi, last.Anonymous/mebi, last.Files)
}

func (s *soak) say(format string, args ...any) {
	fmt.Fprintf(s.Out, "%7s  %s\n", time.Since(s.began).Round(time.Second), fmt.Sprintf(format, args...))
}

func (s *soak) fail(format string, args ...any) {
	s.result.Failures = append(s.result.Failures, fmt.Sprintf(format, args...))
}
