package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

// sink is the next consumer of one target, with a way to end a call that blocks. The
// scrape helper sends with a context that never ends, so that without it a consumer
// that hangs would hang Shutdown as well. It remembers the ends that were refused.
// One goroutine at a time uses it.
type sink struct {
	consumer.Metrics
	closed context.Context
	close  context.CancelFunc

	// owed are the ends of the last batch, if it was refused.
	owed emit.Owed
	// room is how many bytes of ends may be kept; dropped is called with the number of
	// those that are lost.
	room    func() int
	dropped func(ends int)
}

func newSink(next consumer.Metrics, room func() int, dropped func(int)) *sink {
	closed, closeSink := context.WithCancel(context.Background())
	return &sink{Metrics: next, closed: closed, close: closeSink, room: room, dropped: dropped}
}

// repeat adds the ends that were refused to the next batch. A batch that is sent
// must have been here before.
func (s *sink) repeat(metrics pmetric.Metrics) { s.owed.AppendTo(metrics) }

// ConsumeMetrics passes a batch on. An empty one, which the helper sends when a
// scrape was given up, is no observation and is kept back.
func (s *sink) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if metrics.DataPointCount() == 0 {
		return nil
	}
	// Now, because the batch may be changed by whom it is passed to.
	ends, lost := emit.EndsOf(metrics, s.room())
	err := s.pass(ctx, metrics)
	if err == nil {
		s.owed = nil
		return nil
	}
	s.owed = ends
	if lost > 0 {
		s.dropped(lost)
	}
	return err
}

func (s *sink) pass(ctx context.Context, metrics pmetric.Metrics) error {
	if s.closed.Err() != nil {
		return errNotRunning
	}
	ctx, cancel := either(ctx, s.closed)
	defer cancel()
	return s.Metrics.ConsumeMetrics(ctx, metrics)
}

// either is a context that ends when one of two does.
func either(ctx, other context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	detach := context.AfterFunc(other, cancel)
	return ctx, func() { detach(); cancel() }
}
