package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

// sink is the next consumer of one target. Its close cancels a call that blocks, so a consumer
// that hangs does not block Shutdown. It also stores the ends that were refused. One goroutine
// at a time uses it.
type sink struct {
	next   consumer.Metrics
	closed context.Context
	close  context.CancelFunc

	// owed are the ends of the last batch if it was refused.
	owed emit.Owed
	// room returns how many bytes of ends may be stored; dropped is called with the
	// number of ends that are lost.
	room    func() int
	dropped func(ends int)
}

func newSink(next consumer.Metrics, room func() int, dropped func(int)) *sink {
	closed, closeSink := context.WithCancel(context.Background())
	return &sink{next: next, closed: closed, close: closeSink, room: room, dropped: dropped}
}

// appendOwed adds the refused ends to the next batch. It must be called for every batch
// before the batch is sent.
func (s *sink) appendOwed(metrics pmetric.Metrics) { s.owed.AppendTo(metrics) }

// send sends a batch to the next consumer. ctx must end when the sink is closed.
func (s *sink) send(ctx context.Context, metrics pmetric.Metrics) error {
	// Before sending, because the consumer may modify the batch.
	ends, lost := emit.EndsOf(metrics, s.room())
	err := errNotRunning
	if s.closed.Err() == nil {
		err = s.next.ConsumeMetrics(ctx, metrics)
	}
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
