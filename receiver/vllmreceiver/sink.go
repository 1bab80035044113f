package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// sink is the next consumer, with a way to end a call that blocks. The scrape
// helper sends with a context that never ends, so that without it a consumer
// that hangs would hang Shutdown as well.
type sink struct {
	consumer.Metrics
	closed context.Context
	close  context.CancelFunc
}

func newSink(next consumer.Metrics) *sink {
	closed, closeSink := context.WithCancel(context.Background())
	return &sink{Metrics: next, closed: closed, close: closeSink}
}

// ConsumeMetrics passes a batch on. An empty one, which the helper sends when a
// scrape was given up, is no observation and is kept back.
func (s *sink) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if metrics.DataPointCount() == 0 {
		return nil
	}
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
