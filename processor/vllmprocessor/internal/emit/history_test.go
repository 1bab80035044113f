package emit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

var row = derive.Row{Metric: "vllm.generation_throughput"}

// values are one value for each of some engines.
func values(engines ...int) (all []derive.Value) {
	for _, engine := range engines {
		all = append(all, derive.Value{Row: &row, Group: engine, Attributes: []input.Attribute{{Name: "engine", Value: fmt.Sprint(engine)}}})
	}
	return all
}

// server is a server whose batches are written under its attributes.
type server struct {
	history    History
	series     Memory
	attributes pcommon.Map
	at         int64
}

func newServer() *server {
	attributes := pcommon.NewMap()
	attributes.PutStr("service.instance.id", "vllm-0:8000")
	return &server{attributes: attributes}
}

const plenty = 1 << 20

// begin writes a batch 15 s later, and returns it with its call, which is under way.
func (s *server) begin(engines ...int) (*Output, *Call, pmetric.Metrics) {
	s.at += int64(15 * time.Second)
	out := NewOutput(s.at, uint64(s.at))
	out.Append(&s.series, values(engines...), s.at)
	call := &Call{}
	metrics := s.put(out, call)
	s.history.Keep(out)
	return out, call, metrics
}

// put puts an output into a batch in which the server has points of its own.
func (s *server) put(out *Output, call *Call) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	s.attributes.CopyTo(rm.Resource().Attributes())
	rm.ScopeMetrics().AppendEmpty().Scope().SetName("of the server")
	s.history.Put(out, call, metrics, &input.Batch{Ends: -1})
	return metrics
}

// write writes a batch whose call ends in err, and returns its engines as enginesOf.
func (s *server) write(err error, engines ...int) []string {
	_, call, metrics := s.begin(engines...)
	call.Done(err, plenty)
	return enginesOf(metrics)
}

// enginesOf lists the points of a batch by the engine: "0" for a value, "-0" for an end. All
// have the scope of the processor.
func enginesOf(metrics pmetric.Metrics) (all []string) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for _, p := range m.Gauge().DataPoints().All() {
					engine, _ := p.Attributes().Get("engine")
					name := engine.Str()
					if p.Flags().NoRecordedValue() {
						name = "-" + name
					}
					if sm.Scope().Name() != metadata.ScopeName || sm.Scope().Version() != "" {
						name += " in the scope " + sm.Scope().Name()
					}
					all = append(all, name)
				}
			}
		}
	}
	return all
}

var errRefused = errors.New("the queue is full")

func TestAnEndIsRepeatedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	for _, err := range []error{errRefused, errRefused, nil} {
		assert.Equal(t, []string{"0", "-1"}, s.write(err, 0))
	}
	assert.Equal(t, []string{"0"}, s.write(nil, 0))
	assert.Zero(t, s.history.Close())
}

func TestAnEndIsNotRepeatedOnceItsSeriesHasAValueAgain(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	s.write(errRefused, 0)
	assert.Equal(t, []string{"0", "1"}, s.write(errRefused, 0, 1))
	assert.Equal(t, []string{"0", "1"}, s.write(nil, 0, 1))
	assert.Zero(t, s.history.Close())
}

// A call with ends is under way while later batches arrive, and is then refused.
func TestEndsThatAreRefusedLateComeWithTheNextBatch(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1, 2)
	_, call, _ := s.begin(0)
	assert.Equal(t, []string{"0", "1"}, s.write(nil, 0, 1), "the end of 2 is under way")
	call.Done(errRefused, plenty)
	assert.Equal(t, []string{"0", "1", "-2"}, s.write(nil, 0, 1), "1 lives")
	assert.Equal(t, []string{"0", "1"}, s.write(nil, 0, 1))
}

// One request has several batches of the server. What ends in the first one lives in the second.
func TestEndsOfASeriesThatLivesLaterInTheRequestAreNotKept(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1, 2)
	call := &Call{}
	for _, engines := range [][]int{{0}, {0, 1}} {
		s.at += int64(15 * time.Second)
		out := NewOutput(s.at, uint64(s.at))
		out.Append(&s.series, values(engines...), s.at)
		s.put(out, call)
		s.history.Keep(out)
	}
	call.Done(errRefused, plenty)
	assert.Equal(t, []string{"0", "1", "-2"}, s.write(nil, 0, 1))
}

func TestARefusedBatchIsFoundAndAnAcceptedOneForTwoTimes(t *testing.T) {
	t.Parallel()
	s := newServer()
	written := func(err error) *Output {
		out, call, _ := s.begin(0)
		call.Done(err, plenty)
		return out
	}
	first := written(errRefused)
	assert.Equal(t, []*Output{first}, s.history.Refused(first.time))
	assert.Same(t, first, s.history.Find(first.time, first.print))
	assert.Nil(t, s.history.Find(first.time, first.print+1), "another batch of the same time")
	second, third, fourth := written(nil), written(nil), written(nil)
	assert.Nil(t, s.history.Find(second.time, second.print))
	for _, kept := range []*Output{first, third, fourth} {
		assert.Same(t, kept, s.history.Find(kept.time, kept.print))
	}
	assert.Empty(t, s.history.Refused(fourth.time))
}

func TestABatchThatIsSentAgainIsAcceptedWithItsEnds(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	out, call, _ := s.begin(0)
	call.Done(errRefused, plenty)
	again := &Call{}
	assert.Equal(t, []string{"0", "-1"}, enginesOf(s.put(out, again)))
	again.Done(nil, 0)
	assert.Empty(t, s.history.Refused(out.time))
	assert.Zero(t, s.history.Close())
}

// A batch with a value is sent again after the series has ended, and one with an end after the
// series lives again. They are as the first time, and what is kept does not change.
func TestAnOlderBatchThatIsSentAgainIsAsBefore(t *testing.T) {
	t.Parallel()
	s := newServer()
	valued, call, _ := s.begin(0, 1)
	call.Done(nil, 0)
	s.write(errRefused, 0)
	assert.Equal(t, []string{"0", "1"}, enginesOf(s.put(valued, &Call{})))
	assert.Equal(t, []string{"0", "-1"}, s.write(nil, 0), "it has ended all the same")

	s.write(nil, 0, 1)
	ended, call, _ := s.begin(0)
	call.Done(nil, 0)
	s.write(nil, 0, 1)
	again := &Call{}
	assert.Equal(t, []string{"0", "-1"}, enginesOf(s.put(ended, again)))
	again.Done(errRefused, plenty)
	assert.Equal(t, []string{"0", "-1"}, s.write(nil, 0))
	assert.Zero(t, s.history.Close(), "the end of a series that lives is not kept")
}

// A consumer refuses for 25 minutes while engines come and go.
func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer()
	dropped := 0
	const room = 64 << 10
	for i := range 100 {
		var engines []int
		for engine := range 200 {
			engines = append(engines, 200*i+engine)
		}
		_, call, _ := s.begin(engines...)
		dropped += call.Done(errRefused, room)
	}
	assert.LessOrEqual(t, len(s.history.outputs), 12)
	points := 0
	for _, o := range s.history.outputs {
		for _, section := range o.sections {
			points += len(section.points)
		}
	}
	assert.LessOrEqual(t, points, 2*400+1000)
	kept := s.history.Close()
	assert.Greater(t, kept, 200)
	assert.Equal(t, 99*200, kept+dropped, "each end is kept or counted as dropped")
}

func TestOldOutputsAreDroppedAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	for later, kept := range map[time.Duration]bool{5*time.Minute + 15*time.Second: false, 5 * time.Minute: true} {
		s := newServer()
		first, call, _ := s.begin(0)
		call.Done(errRefused, plenty)
		s.at = first.time + int64(later-30*time.Second)
		s.write(errRefused, 0)
		s.write(errRefused, 0)
		assert.Equal(t, kept, s.history.Find(first.time, first.print) != nil, "two newer ones are kept, the last after %s", later)
	}
}

func TestEndsOfAFormerResourceAreWrittenUnderItsAttributes(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0)
	former := s.attributes
	s.attributes = pcommon.NewMap()
	s.attributes.PutStr("service.version", "2")
	s.at += int64(15 * time.Second)
	out := NewOutput(s.at, 1)
	out.End(&s.series, former)
	out.Append(&s.series, values(0), s.at)
	call := &Call{}
	metrics := s.put(out, call)
	s.history.Keep(out)
	call.Done(errRefused, plenty)
	_, _, again := s.begin(0)
	for _, metrics := range []pmetric.Metrics{metrics, again} {
		assert.Equal(t, []string{"0", "-0"}, enginesOf(metrics))
		assert.Equal(t, 2, metrics.ResourceMetrics().Len())
		for i, want := range []pcommon.Map{s.attributes, former} {
			assert.Equal(t, want.AsRaw(), metrics.ResourceMetrics().At(i).Resource().Attributes().AsRaw())
		}
	}
}

// The server has its former attributes again before the ends were accepted.
func TestSeriesOfAFormerResourceThatIsBackAreNotEnded(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	former := s.attributes
	move := func(to pcommon.Map, engines ...int) []string {
		s.at += int64(15 * time.Second)
		out := NewOutput(s.at, 1)
		out.End(&s.series, s.attributes)
		out.Append(&s.series, values(engines...), s.at)
		s.attributes = to
		call := &Call{}
		metrics := s.put(out, call)
		s.history.Keep(out)
		call.Done(errRefused, plenty)
		return enginesOf(metrics)
	}
	other := pcommon.NewMap()
	other.PutStr("service.version", "2")
	assert.Equal(t, []string{"0", "1", "-0", "-1"}, move(other, 0, 1))
	assert.Equal(t, []string{"0", "-1", "-0", "-1"}, move(former, 0), "0 lives under the former attributes, 1 under none")
	assert.Equal(t, []string{"0", "-1", "-0", "-1"}, s.write(nil, 0))
	assert.Equal(t, []string{"0"}, s.write(nil, 0))
}

// panicking is a processor whose next consumer panics after it got ends.
type panicking struct {
	processor.Metrics
	ends *refused.Ledger
}

func (p panicking) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	call := CallOf(ctx)
	call.sent = append(call.sent, p.ends.Send(1, metrics))
	panic("the next consumer")
}

// A server of HTTP goes on after a panic. The ends are not lost, and the ledger does not wait for them.
func TestEndsOfACallThatPanicsAreSentAgain(t *testing.T) {
	t.Parallel()
	metrics := pmetric.NewMetrics()
	point := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	ends := &refused.Ledger{}
	reporting := Reporting{Metrics: panicking{ends: ends}, Room: func() int { return plenty }, Dropped: func(ends int) { assert.Zero(t, ends) }}
	assert.Panics(t, func() { _ = reporting.ConsumeMetrics(t.Context(), metrics) })
	next := pmetric.NewMetrics()
	ends.Send(2, next).Done(nil, plenty)
	assert.Equal(t, 1, next.DataPointCount())
	assert.True(t, ends.Idle())
}
