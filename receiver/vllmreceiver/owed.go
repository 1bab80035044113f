package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

const (
	// maxOwed is how many bytes of ends that were refused are kept for all targets, each
	// of which has an equal share within these bounds.
	maxOwed                    = 32 << 20
	minOwedShare, maxOwedShare = 64 << 10, 1 << 20
	// maxOwedRemoved is how many bytes are kept of targets that were removed.
	maxOwedRemoved = 8 << 20
)

// owedShare is how many bytes of ends may be kept for one target.
func (r *vllmReceiver) owedShare() int {
	return min(maxOwedShare, max(minOwedShare, maxOwed/max(1, int(r.targets.Load()))))
}

// lost counts ends that were refused and found no room, and logs the first time.
func (r *vllmReceiver) lost(ends int) {
	r.shared.telemetry.ReceiverVllmDroppedEnds.Add(context.Background(), int64(ends))
	if r.loses.CompareAndSwap(false, true) {
		r.shared.settings.Logger.Warn("The pipeline refuses points, and there are too many series that ended meanwhile to report all of their ends again; "+
			"the backend shows the last values of the others until it drops them by itself. Look for what refuses points: "+
			"an exporter whose queue is full, or the memory limiter", zap.Int("ends", ends))
	}
}

// keep keeps the ends of a target that was removed.
func (r *vllmReceiver) keep(address string, owed emit.Owed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(owed) == 0 || r.stopped {
		return
	}
	kept := len(owed)
	for _, other := range r.owed {
		kept += len(other)
	}
	if kept > maxOwedRemoved {
		r.lost(owed.Count())
		return
	}
	r.owed[address] = owed
}

// takeOwed returns the ends of one removed target and keeps them no more.
func (r *vllmReceiver) takeOwed(address string) emit.Owed {
	owed := r.owed[address]
	delete(r.owed, address)
	return owed
}

// owes reports whether ends of removed targets were refused.
func (r *vllmReceiver) owes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.owed) > 0
}

// resend sends the ends of removed targets that were refused, until one is refused
// again.
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
		out := pmetric.NewMetrics()
		owed.AppendAt(at, out)
		if err := r.send(ctx, r.newSink(), out); err != nil {
			r.keep(address, owed)
			return
		}
	}
}

// newSink returns the next consumer of one target.
func (r *vllmReceiver) newSink() *sink { return newSink(r.next, r.owedShare, r.lost) }
