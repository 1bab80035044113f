package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
)

const (
	// maxOwed is how many bytes of refused ends are stored for all targets. Each target
	// has an equal share of it, between minOwedShare and maxOwedShare.
	maxOwed                    = 32 << 20
	minOwedShare, maxOwedShare = 64 << 10, 1 << 20
	// maxOwedRemoved is how many bytes are stored for removed targets.
	maxOwedRemoved = 8 << 20
)

// owedShare returns how many bytes of refused ends may be stored for one target.
func (r *vllmReceiver) owedShare() int {
	return min(maxOwedShare, max(minOwedShare, maxOwed/max(1, int(r.targets.Load()))))
}

// lost counts refused ends for which there was no room. It logs the first time.
func (r *vllmReceiver) lost(ends int) {
	r.shared.telemetry.ReceiverVllmDroppedEnds.Add(context.Background(), int64(ends))
	if r.loses.CompareAndSwap(false, true) {
		r.shared.settings.Logger.Warn("The pipeline refuses points, and too many series have ended meanwhile to store all of their ends; "+
			"for the others the backend shows the last values until it drops them by itself. Find out what refuses points: "+
			"an exporter whose queue is full, or the memory limiter", zap.Int("ends", ends))
	}
}

// storeOwed stores the refused ends of a target that was removed.
func (r *vllmReceiver) storeOwed(address string, owed emit.Owed) {
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
func (r *vllmReceiver) takeOwed(address string) emit.Owed {
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
		out := pmetric.NewMetrics()
		owed.AppendAt(at, out)
		to := r.newSink()
		release := context.AfterFunc(ctx, to.close)
		err := r.send(to, out)
		release()
		to.close()
		if err != nil {
			r.storeOwed(address, owed)
			return
		}
	}
}

// newSink returns the next consumer of one target.
func (r *vllmReceiver) newSink() *sink { return newSink(r.next, r.owedShare, r.lost) }
