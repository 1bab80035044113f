package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
)

// maxOwedRemoved is how many bytes of refused ends are stored for removed targets.
const maxOwedRemoved = 8 << 20

// sink is the way of one target to the next consumer. Its close cancels a call that blocks, so a
// consumer that hangs does not block Shutdown. One goroutine at a time uses it.
type sink struct {
	closed context.Context
	close  context.CancelFunc
	// ends are those that were refused.
	ends *refused.Ledger
}

// newSink returns a sink with ends that were refused before.
func newSink(owed refused.Ends) *sink {
	closed, closeSink := context.WithCancel(context.Background())
	return &sink{closed: closed, close: closeSink, ends: refused.NewLedger(owed)}
}

// outgoing is points of one target, all of the time at.
type outgoing struct {
	to     *sink
	at     pcommon.Timestamp
	points pmetric.Metrics
}

// send sends the points of some targets in one request, with the ends that were refused before, and counts them. It
// does not send an empty request.
func (r *vllmReceiver) send(all ...outgoing) error {
	out, sent := pmetric.NewMetrics(), make([]*refused.Sent, len(all))
	for i, d := range all {
		sent[i] = d.to.ends.Send(d.at, d.points)
		d.points.ResourceMetrics().MoveAndAppendTo(out.ResourceMetrics())
	}
	points := out.DataPointCount()
	if points == 0 {
		return nil
	}
	open, done := whileOneIsOpen(all)
	defer done()
	ctx := r.observed.StartMetricsOp(open)
	err := errNotRunning
	if open.Err() == nil {
		err = r.next.ConsumeMetrics(ctx, out)
	}
	share := refused.Share(int(r.targets.Load()))
	for _, s := range sent {
		if lost := s.Done(err, share); lost > 0 {
			r.lost(lost)
		}
	}
	r.observed.EndMetricsOp(ctx, "", points, err)
	return err
}

// lost counts refused ends for which there was no room. It logs the first time.
func (r *vllmReceiver) lost(ends int) {
	r.scrapes.Telemetry.ReceiverVllmDroppedEnds.Add(context.Background(), int64(ends))
	if r.loses.CompareAndSwap(false, true) {
		r.settings.Logger.Warn("The pipeline refuses points, and no more staleness markers can be kept for it. "+
			"Some removed series show their last value until the backend drops them. Find out what refuses points: "+
			"an exporter with a full queue, or the memory limiter", zap.Int("ends", ends))
	}
}

// storeOwed stores the refused ends of a target that was removed.
func (r *vllmReceiver) storeOwed(address string, owed refused.Ends) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(owed) == 0 || r.stopped {
		return
	}
	size := len(owed)
	for _, other := range r.owed {
		size += len(other)
	}
	if size > maxOwedRemoved {
		r.lost(owed.Count())
		return
	}
	r.owed[address] = owed
}

// takeOwed removes and returns the stored ends of one removed target. It needs mu.
func (r *vllmReceiver) takeOwed(address string) refused.Ends {
	owed := r.owed[address]
	delete(r.owed, address)
	return owed
}

// owes reports whether ends of removed targets are stored.
func (r *vllmReceiver) owes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.owed) > 0
}

// resend sends the stored ends of removed targets, until one of them is refused again.
func (r *vllmReceiver) resend(ctx context.Context, at pcommon.Timestamp) {
	r.resending.Lock()
	defer r.resending.Unlock()
	for {
		r.mu.Lock()
		var address string
		for address = range r.owed {
			break
		}
		owed, stopped := r.takeOwed(address), r.stopped
		r.mu.Unlock()
		if len(owed) == 0 || stopped || ctx.Err() != nil {
			return
		}
		to := newSink(owed)
		release := context.AfterFunc(ctx, to.close)
		err := r.send(outgoing{to, at, pmetric.NewMetrics()})
		release()
		to.close()
		if err != nil {
			r.storeOwed(address, to.ends.Close())
			return
		}
	}
}
