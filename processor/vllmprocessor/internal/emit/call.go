package emit

import (
	"context"
	"errors"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
)

// Call is one call of the next consumer. A nil Call counts as accepted.
type Call struct {
	outcome atomic.Int32
	// sent are the ends in it.
	sent []*refused.Sent
}

// The outcomes.
const (
	underway int32 = iota
	accepted
	rejected
)

func (c *Call) is(outcome int32) bool {
	if c == nil {
		return outcome == accepted
	}
	return c.outcome.Load() == outcome
}

// Done records the outcome. Each server keeps up to room bytes of the ends if the call was
// refused; Done returns the number of ends that are dropped.
func (c *Call) Done(err error, room int) (dropped int) {
	outcome := accepted
	if err != nil {
		outcome = rejected
	}
	c.outcome.Store(outcome)
	for _, sent := range c.sent {
		dropped += sent.Done(err, room)
	}
	return dropped
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
type Reporting struct {
	processor.Metrics
	// Room returns how many bytes of refused ends each server may keep; Dropped is called with
	// the number of those that did not fit.
	Room    func() int
	Dropped func(ends int)
}

// ConsumeMetrics processes metrics and passes them on.
func (p Reporting) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	call := &Call{}
	err := errPanic
	defer func() {
		room := 0
		if err != nil {
			room = p.Room()
		}
		p.Dropped(call.Done(err, room))
	}()
	err = p.Metrics.ConsumeMetrics(context.WithValue(ctx, callKey{}, call), metrics)
	return err
}

// errPanic is the outcome of a call in which the next consumer panics: a server of HTTP goes on then.
var errPanic = errors.New("the next consumer panicked")
