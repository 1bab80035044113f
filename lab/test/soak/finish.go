package soak

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const (
	// drainLimit is how long the queue may take to drain. drainStall is how long nothing may
	// arrive meanwhile; the exporter waits for half a minute at most before it tries again.
	drainLimit = 5 * time.Minute
	drainStall = 45 * time.Second
	// drainAlone is how long the last process, which has no targets, sends what is left.
	drainAlone = 12 * time.Second
	// mostRepeated is how often one line with the same fields may be in the log. A line whose
	// fields and numbers differ may be there once for each thing that the soak did to the
	// collector, its servers or its backend, and once more for each server.
	mostRepeated = 100
)

// finish lets the queue drain, ends the process, lets a process without targets send what was
// left on the disk, and judges.
func (s *soak) finish(ctx context.Context) error {
	if err := s.backend.Become(ctx, fleet.Working); err != nil {
		return err
	}
	if s.process.Ended() == nil {
		s.drain(ctx)
		s.say("the collector is stopped")
		from := time.Now()
		s.stop()
		s.ledger.excuse(window{from: from.Add(-sendTime), to: time.Now(), why: "the collector was stopped while it read"})
	}
	if err := s.servers.clear(); err != nil {
		return err
	}
	s.say("a process without targets sends what is left in the queue")
	if err := s.startCollector(ctx); err != nil {
		s.fail("the collector does not start again: %v", err)
	} else {
		_ = fleet.Sleep(ctx, drainAlone)
		s.stop()
	}
	s.result.Seconds = time.Since(s.began).Seconds()
	s.judge()
	return nil
}

// drain waits until everything that was served before has arrived, while the servers are still
// read: each scrape passes through the queue, so that it is empty only for moments.
func (s *soak) drain(ctx context.Context) {
	began := time.Now()
	least, changed := s.ledger.missing(began), began
	for least > 0 {
		if fleet.Sleep(ctx, time.Second) != nil {
			return
		}
		s.sample(ctx)
		if missing := s.ledger.missing(began); missing < least {
			least, changed = missing, time.Now()
		}
		if time.Since(changed) > drainStall || time.Since(began) > drainLimit {
			s.fail("the queue did not drain: %s after the backend works, %d answers that were served before have not arrived; the queue has %.1f MiB",
				time.Since(began).Round(time.Second), least, s.queue/mebi)
			break
		}
	}
	s.result.Drained = time.Since(began).Seconds()
}

// judge turns what was seen into failures.
func (s *soak) judge() {
	r := &s.result
	r.Balance = s.ledger.balance()
	r.Trends = trends(r.Samples, s.plan.warm, s.plan.active)
	r.Taken = s.backend.Taken()
	s.servers.mu.Lock()
	maps.Copy(r.Events, s.servers.events)
	s.servers.mu.Unlock()

	// An interrupted soak has failed already.
	if s.For >= judgedFrom && !s.interrupted {
		for _, t := range r.Trends {
			switch {
			case !t.Known:
				s.fail("there are too few samples of %s to say whether it grows", t.Name)
			case !t.Flat:
				s.fail("growth of %s: %.1f %s in the first third after the warm-up, %.1f in the last; %.1f more is allowed", t.Name, t.First, t.Unit, t.Last, t.Allowed)
			}
		}
	}
	for _, one := range []struct {
		count int
		what  string
	}{
		{r.Balance.Lost, "answers of servers never arrived at the backend"},
		{r.Balance.Incomplete, "answers arrived without some of their engines, or with wrong numbers"},
		{r.Balance.Short, "answers arrived with fewer points than others of the same shape"},
		{r.Balance.Unknown, "answers arrived that the servers have not given as a whole"},
	} {
		if one.count > 0 {
			s.fail("%d %s", one.count, one.what)
		}
	}
	if r.Balance.Received == 0 {
		s.fail("nothing arrived at the backend")
	}
	if r.Taken.LogRecords == 0 {
		s.fail("no record of the diagnosis arrived at the backend")
	}
	s.judgeLog()
}

func (s *soak) judgeLog() {
	r := &s.result
	r.LogLevels = s.book.levels
	r.Repetitions = most(s.book.kinds, 30)
	for _, line := range append(s.trace.alarms, s.book.alarms...) {
		s.fail("the collector wrote %q; see %s", line, s.Dir)
	}
	did := 0
	for _, n := range r.Events {
		did += n
	}
	allowed := did + s.Targets
	for kind, n := range s.book.kinds {
		if n > allowed {
			s.fail("a line is in the log %d times, more than %d: %s", n, allowed, kind)
		}
	}
	for line, n := range s.book.exact {
		if n > mostRepeated && !strings.HasPrefix(line, "debug") {
			s.fail("the same line is in the log %d times, more than %d: %s", n, mostRepeated, shortened(line))
		}
	}
}

func shortened(line string) string { return fmt.Sprintf("%.300s", line) }
