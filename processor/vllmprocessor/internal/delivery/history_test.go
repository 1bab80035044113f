package delivery

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
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
	series     emit.Memory
	attributes pcommon.Map
	at         int64
}

func newServer() *server {
	attributes := pcommon.NewMap()
	attributes.PutStr("service.instance.id", "vllm-0:8000")
	return &server{attributes: attributes}
}

// write writes a batch 15 s later, whose call ends in err.
func (s *server) write(err error, engines ...int) *Output {
	s.at += int64(15 * time.Second)
	call := &Call{}
	out := NewOutput(s.at, uint64(s.at), call)
	out.Append(&s.series, values(engines...), s.at)
	s.history.Repeat(out, s.attributes)
	s.history.Keep(out)
	call.Done(err)
	return out
}

var errRefused = errors.New("the queue is full")

func TestAnEndIsRepeatedUntilItIsAccepted(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	counts := func(o *Output) [2]int {
		values, ends := o.Counts()
		return [2]int{values, ends}
	}
	assert.Equal(t, [2]int{1, 1}, counts(s.write(errRefused, 0)))
	assert.Equal(t, 1, s.history.Pending())
	assert.Equal(t, [2]int{1, 1}, counts(s.write(errRefused, 0)), "repeated")
	assert.Equal(t, [2]int{1, 1}, counts(s.write(nil, 0)), "repeated and accepted")
	assert.Zero(t, s.history.Pending())
	assert.Equal(t, [2]int{1, 0}, counts(s.write(nil, 0)))
}

func TestAnEndIsNotRepeatedOnceItsSeriesHasAValueAgain(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0, 1)
	s.write(errRefused, 0)
	_, ends := s.write(nil, 0, 1).Counts()
	assert.Zero(t, ends)
	assert.Zero(t, s.history.Pending())
}

func TestARefusedBatchIsFoundAndAnAcceptedOneForTwoTimes(t *testing.T) {
	t.Parallel()
	s := newServer()
	first := s.write(errRefused, 0)
	assert.Equal(t, []*Output{first}, s.history.Refused(first.time))
	assert.Same(t, first, s.history.Find(first.time, first.print))
	assert.Nil(t, s.history.Find(first.time, first.print+1), "another batch of the same time")
	second, third, fourth := s.write(nil, 0), s.write(nil, 0), s.write(nil, 0)
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
	out := s.write(errRefused, 0)
	again := &Call{}
	out.Resend(again)
	again.Done(nil)
	assert.Empty(t, s.history.Refused(out.time))
	assert.Zero(t, s.history.Pending())
}

// A consumer refuses for 25 minutes while engines come and go.
func TestTheHistoryIsBounded(t *testing.T) {
	t.Parallel()
	s := newServer()
	dropped := 0
	for i := range 100 {
		var engines []int
		for engine := range 200 {
			engines = append(engines, 200*i+engine)
		}
		s.at += int64(15 * time.Second)
		call := &Call{}
		out := NewOutput(s.at, 0, call)
		out.Append(&s.series, values(engines...), s.at)
		dropped += s.history.Repeat(out, s.attributes)
		s.history.Keep(out)
		call.Done(errRefused)
	}
	assert.Equal(t, 10_000, s.history.Pending())
	assert.Equal(t, 99*200, s.history.Pending()+dropped, "each end is pending or counted as dropped")
	assert.LessOrEqual(t, len(s.history.outputs), 12)
	points := 0
	for _, o := range s.history.outputs {
		for _, section := range o.sections {
			points += len(section.points)
		}
	}
	assert.LessOrEqual(t, points, 2*(10_000+400)+1000)
}

func TestOldOutputsAreDroppedAfterFiveMinutes(t *testing.T) {
	t.Parallel()
	s := newServer()
	first := s.write(errRefused, 0)
	s.at = first.time + int64(5*time.Minute) - int64(15*time.Second)
	s.write(errRefused, 0)
	s.write(errRefused, 0)
	assert.Nil(t, s.history.Find(first.time, first.print), "it is older than five minutes, and two newer ones are kept")
	s = newServer()
	first = s.write(errRefused, 0)
	s.at = first.time + int64(5*time.Minute) - int64(30*time.Second)
	s.write(errRefused, 0)
	s.write(errRefused, 0)
	assert.NotNil(t, s.history.Find(first.time, first.print))
}

func TestEndsOfAFormerResourceAreWrittenUnderItsAttributes(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.write(nil, 0)
	former := s.attributes
	s.attributes = pcommon.NewMap()
	s.attributes.PutStr("service.version", "2")
	s.at += int64(15 * time.Second)
	out := NewOutput(s.at, 1, &Call{})
	out.End(&s.series, former)
	out.Append(&s.series, values(0), s.at)
	metrics := pmetric.NewMetrics()
	s.attributes.CopyTo(metrics.ResourceMetrics().AppendEmpty().Resource().Attributes())
	out.Put(metrics, &input.Batch{Ends: -1}, "1.2.3")
	assert.Equal(t, 2, metrics.ResourceMetrics().Len())
	for i, want := range []pcommon.Map{s.attributes, former} {
		rm := metrics.ResourceMetrics().At(i)
		assert.Equal(t, want.AsRaw(), rm.Resource().Attributes().AsRaw())
		scope := rm.ScopeMetrics().At(0)
		assert.Equal(t, "1.2.3", scope.Scope().Version())
		assert.Equal(t, i == 1, scope.Metrics().At(0).Gauge().DataPoints().At(0).Flags().NoRecordedValue())
	}
	s.history.Repeat(out, s.attributes)
	assert.Equal(t, 1, s.history.Pending())
	s.history.Revive(former)
	assert.Zero(t, s.history.Pending(), "the former attributes are there again")
}
