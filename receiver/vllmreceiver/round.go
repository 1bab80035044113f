package vllmreceiver

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/trace"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// rounds are the scrapes under way, by the time at which they are due. Targets that are due at the same time are asked
// at the same time. Their answers are taken one after the other and sent in one request: the second answer finds the
// code of all steps, up to the exporter, in the cache of the processor. docs/why/performance.md says what that brings.
type rounds struct {
	mu   sync.Mutex
	open map[time.Time]*round
}

// round is the scrapes that are due at one time.
type round struct {
	due time.Time
	// asking is how many targets have not answered.
	asking int
	// answered are the answers that wait for others, bytes is their size, and waiting ends the wait.
	answered []*answer
	bytes    int
	waiting  *time.Timer
}

const (
	// linger is how long an answer waits for others at most: a fast target must not wait for a slow one.
	linger = 2 * time.Millisecond
	// mostTogether and mostBytes bound the answers that are taken together: their points are sent in one
	// request, and each waits until the last one is taken.
	mostTogether = 8
	mostBytes    = 1 << 20
)

// answer is the answer of a target in a round.
type answer struct {
	*runningTarget
	// ctx is that of the scrape.
	ctx   context.Context
	span  trace.Span
	asked *scrape.Asked
	// taken is closed when the target is not used any more, sent when its points were sent.
	taken, sent chan struct{}
	// alone is true where the answer must be taken alone. It is set before taken is closed.
	alone bool
}

// join adds a scrape to the round of a time.
func (all *rounds) join(due time.Time) *round {
	all.mu.Lock()
	defer all.mu.Unlock()
	r := all.open[due]
	if r == nil {
		r = &round{due: due}
		all.open[due] = r
	}
	r.asking++
	return r
}

// leave takes a scrape out of its round, and returns what need not wait for it any more.
func (all *rounds) leave(r *round) []*answer {
	all.mu.Lock()
	defer all.mu.Unlock()
	r.asking--
	return all.ready(r)
}

// add adds an answer to its round, and returns those that need not wait any more. take is called with those that have
// waited long enough.
func (all *rounds) add(r *round, a *answer, take func([]*answer)) []*answer {
	all.mu.Lock()
	defer all.mu.Unlock()
	r.asking--
	r.answered = append(r.answered, a)
	r.bytes += a.asked.Bytes()
	ready := all.ready(r)
	if ready == nil && r.waiting == nil {
		r.waiting = time.AfterFunc(linger, func() {
			all.mu.Lock()
			ready := r.take()
			all.mu.Unlock()
			take(ready)
		})
	}
	return ready
}

// ready returns the answers of a round that need not wait; nil where there are none. It needs mu.
func (all *rounds) ready(r *round) []*answer {
	if r.asking == 0 {
		delete(all.open, r.due)
	}
	if r.asking > 0 && len(r.answered) < mostTogether && r.bytes < mostBytes {
		return nil
	}
	return r.take()
}

// take returns the answers and ends the wait.
func (r *round) take() []*answer {
	ready := r.answered
	r.answered, r.bytes = nil, 0
	if r.waiting != nil {
		r.waiting.Stop()
		r.waiting = nil
	}
	return ready
}

// scrape scrapes a target that is due at a time, and returns when its points were sent.
func (r *vllmReceiver) scrape(t *runningTarget, due time.Time) {
	round := r.rounds.join(due)
	ctx, span := r.tracer.Start(t.scraper.Context(), scrapeSpan)
	a := &answer{runningTarget: t, ctx: ctx, span: span, asked: t.scraper.Ask(ctx)}
	if a.asked.Alone() || t.refused || !t.sink.ends.Idle() {
		r.takeAll(r.rounds.leave(round))
		r.takeAlone(a)
		return
	}
	a.taken, a.sent = make(chan struct{}), make(chan struct{})
	r.takeAll(r.rounds.add(round, a, r.takeAll))
	<-a.taken
	if a.alone {
		r.takeAlone(a)
		return
	}
	select {
	case <-a.sent:
	case <-t.sink.closed.Done():
		// The target has left. Its points may still be on their way with those of others.
	}
}

// takeAlone takes the answer of a target that others do not wait for, and sends it.
func (r *vllmReceiver) takeAlone(a *answer) {
	found, failure := a.scraper.Take(a.ctx, a.asked, false)
	if out := r.count(a, found, failure); out.points.DataPointCount() > 0 {
		a.refused = consumererror.IsPermanent(r.send(out))
	}
}

// takeAll takes answers one after the other, and sends their points in one request.
func (r *vllmReceiver) takeAll(all []*answer) {
	if len(all) == 0 {
		return
	}
	r.sending.Go(func() {
		ready := make([]outgoing, 0, len(all))
		for _, a := range all {
			found, failure := a.scraper.Take(a.ctx, a.asked, true)
			if errors.Is(failure, scrape.ErrAlone) {
				a.alone = true
			} else if out := r.count(a, found, failure); out.points.DataPointCount() > 0 {
				ready = append(ready, out)
			}
		}
		for _, a := range all {
			close(a.taken)
		}
		// The pipeline counts the points that the next consumer refuses.
		err := r.send(ready...)
		for _, a := range all {
			// Those of one target may be the reason. An answer that is taken alone belongs to its own scrape since taken was closed.
			if !a.alone && len(ready) > 1 && consumererror.IsPermanent(err) {
				a.refused = true
			}
			close(a.sent)
		}
	})
}

// count counts what a scrape has found, and returns what is to be sent of it.
func (r *vllmReceiver) count(a *answer, found *scrape.Scraped, failure error) outgoing {
	a.scraper.Done()
	out := found.Metrics
	if found.Body != nil {
		a.metrics = out.MetricCount()
	}
	scraped, errored := 0, 0
	if failure != nil {
		errored = max(1, a.metrics)
		if !a.scraper.Draining() {
			r.status.failed(a.key, a.scraper.Name(), failure)
		}
	} else {
		scraped = out.MetricCount()
		// A scrape that was canceled reports nothing.
		if a.scraper.Context().Err() == nil {
			r.status.succeeded(a.key)
		}
	}
	r.points.scraped.Add(a.ctx, int64(scraped), r.points.of)
	r.points.errored.Add(a.ctx, int64(errored), r.points.of)
	endSpan(a.span, scraped, errored, failure)
	return outgoing{a.sink, pcommon.NewTimestampFromTime(found.At), out}
}

// whileOneIsOpen returns a context that ends when the last of some sinks is closed.
func whileOneIsOpen(all []outgoing) (context.Context, context.CancelFunc) {
	open := slices.DeleteFunc(slices.Clone(all), func(d outgoing) bool { return d.to.closed.Err() != nil })
	if len(open) <= 1 {
		// Of several closed ones, any.
		return append(open, all...)[0].to.closed, func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var closed atomic.Int64
	stops := make([]func() bool, len(open))
	for i, d := range open {
		stops[i] = context.AfterFunc(d.to.closed, func() {
			if closed.Add(1) == int64(len(open)) {
				cancel()
			}
		})
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
