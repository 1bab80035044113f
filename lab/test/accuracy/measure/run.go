package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Player plays a story: judge.Play, and in tests something faster.
type Player func(context.Context, *judge.Story) (*judge.Played, error)

// Run plays stories.
type Run struct {
	Player  Player
	Journal *Journal
	Workers int
	// Log receives a line of progress now and then.
	Log io.Writer
	// Until ends the run early; zero is never. What has begun is finished.
	Until time.Time
	// Now is the time, and CPU the processor seconds that the calling thread has used.
	Now func() time.Time
	CPU func() float64
}

// every is how often progress is logged.
const every = 30 * time.Second

// Play plays the stories that the journal does not have, in their order, and returns the
// records of all that were played. A story that cannot be played does not end the run: it
// is an error at the end. Fewer records without an error mean that the run was ended.
func (r *Run) Play(ctx context.Context, plans []stories.Plan) ([]Record, error) {
	records := make([]*Record, len(plans))
	var todo []int
	for i := range plans {
		if old, there := r.Journal.Get(&plans[i].Meta); there {
			records[i] = &old
			continue
		}
		todo = append(todo, i)
	}
	r.logf("%d stories: %d are in the journal, %d are to be played (%d records there come from other sources)",
		len(plans), len(plans)-len(todo), len(todo), r.Journal.Stale)
	p := &progress{run: r, of: len(todo), begun: r.Now()}
	next := make(chan int)
	var errs []error
	var mu sync.Mutex
	lost := false // Without a journal, what is played is lost.
	var workers sync.WaitGroup
	for range max(1, r.Workers) {
		workers.Go(func() {
			runtime.LockOSThread() // The processor time is that of the thread.
			for i := range next {
				record, err := r.one(ctx, &plans[i])
				mu.Lock()
				switch {
				case err == nil:
					records[i] = record
				case errors.Is(err, errNotKept):
					lost = true
					errs = append(errs, err)
				case ctx.Err() == nil: // A story that was ended is said below, once.
					errs = append(errs, err)
				}
				p.done(record)
				mu.Unlock()
			}
		})
	}
	for _, i := range todo {
		mu.Lock()
		full := lost
		mu.Unlock()
		if full || ctx.Err() != nil || !r.Until.IsZero() && r.Now().After(r.Until) {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	var out []Record
	for _, record := range records {
		if record != nil {
			out = append(out, *record)
		}
	}
	if err := ctx.Err(); err != nil {
		errs = append(errs, fmt.Errorf("ended early: %w; the same command continues", err))
	}
	return out, errors.Join(errs...)
}

// one plays one story and keeps the result.
func (r *Run) one(ctx context.Context, plan *stories.Plan) (*Record, error) {
	began := r.CPU()
	story, err := plan.Make()
	if err != nil {
		return nil, fmt.Errorf("story %s cannot be made: %w", plan.Name, err)
	}
	played, err := r.Player(ctx, story)
	if err != nil {
		return nil, fmt.Errorf("story %s cannot be played: %w", plan.Name, err)
	}
	record := newRecord(plan.Meta, played)
	if want := max(1, plan.Servers) * int(plan.Seconds/window); record.Minutes < want {
		return nil, fmt.Errorf("story %s has %d minutes instead of %d", plan.Name, record.Minutes, want)
	}
	record.CPU = r.CPU() - began
	if err := r.Journal.Put(record); err != nil {
		return nil, err
	}
	return &record, nil
}

// progress logs how far the run is.
type progress struct {
	run         *Run
	n, of       int
	hours       float64
	begun, last time.Time
}

func (p *progress) done(r *Record) {
	p.n++
	if r != nil {
		p.hours += r.hours()
	}
	now := p.run.Now()
	if now.Sub(p.last) < every && p.n < p.of {
		return
	}
	p.last = now
	spent := now.Sub(p.begun)
	left := time.Duration(float64(spent) / float64(p.n) * float64(p.of-p.n))
	p.run.logf("%d of %d stories, %.0f engine-hours, %s gone, about %s to go", p.n, p.of, p.hours,
		spent.Round(time.Second), left.Round(time.Minute))
}

func (r *Run) logf(format string, args ...any) {
	if r.Log != nil {
		fmt.Fprintf(r.Log, format+"\n", args...)
	}
}
