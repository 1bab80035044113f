// Package delivery keeps what was written for the newest batches of a server until a
// consumer has accepted it: a batch that is sent again gets the same values, and the
// end of a series is repeated until it has arrived.
package delivery

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
)

// Call is one call of the next consumer. A nil Call counts as accepted.
type Call struct{ outcome atomic.Int32 }

// The outcomes.
const (
	underway int32 = iota
	accepted
	refused
)

func (c *Call) is(outcome int32) bool {
	if c == nil {
		return outcome == accepted
	}
	return c.outcome.Load() == outcome
}

// Done records the outcome.
func (c *Call) Done(err error) {
	if err != nil {
		c.outcome.Store(refused)
	} else {
		c.outcome.Store(accepted)
	}
}

type callKey struct{}

// CallOf returns the call that a context belongs to; nil where its outcome is not
// known.
func CallOf(ctx context.Context) *Call {
	call, _ := ctx.Value(callKey{}).(*Call)
	return call
}

// Reporting is a processor that records whether the next consumer accepted the metrics.
// The processor finds the call by CallOf. No lock is held meanwhile.
type Reporting struct{ processor.Metrics }

// ConsumeMetrics processes metrics and passes them on.
func (p Reporting) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	call := &Call{}
	err := p.Metrics.ConsumeMetrics(context.WithValue(ctx, callKey{}, call), metrics)
	call.Done(err)
	return err
}
