package collect

import (
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// input is metrics of one resource.
type input struct {
	pmetric.Metrics
	list pmetric.MetricSlice
}

func newInput() input {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	return input{metrics, rm.ScopeMetrics().AppendEmpty().Metrics()}
}

// add adds a gauge with one point of engine 0 at a time.
func (in input) add(name string, time int, value float64, attributes ...string) pmetric.NumberDataPoint {
	metric := in.list.AppendEmpty()
	metric.SetName(name)
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.Timestamp(time))
	point.SetDoubleValue(value)
	point.Attributes().PutStr("engine", "0")
	for i := 0; i < len(attributes); i += 2 {
		point.Attributes().PutStr(attributes[i], attributes[i+1])
	}
	return point
}

// What is read is what the catalogue has, so that a renamed metric is not missed.
func TestTheMetricsAreThoseOfTheCatalogue(t *testing.T) {
	read := 0
	for _, metric := range catalog.All() {
		is, known := diagnosed[metric.Name]
		if !known {
			continue
		}
		read++
		for _, attribute := range own[is.which] {
			assert.Contains(t, metric.Attributes, attribute, metric.Name)
		}
	}
	assert.Equal(t, 6, read)
}

// What the processor says goes to the engine and the time that it is about, in whatever part it arrives, and keeps
// nothing of the metrics.
func TestReadJoinsWhatIsSaid(t *testing.T) {
	in := newInput()
	said := in.add("vllm.diagnosis.severity", 10, 3, "model_name", "m").Attributes()
	in.add("vllm.diagnosis.severity", 20, 3, "model_name", "m")
	in.add("vllm.diagnosis.severity", 10, 3, "model_name", "other")
	in.add("vllm.pool.diagnosis.severity", 10, 3, "engine", "0", "model_name", "m")
	message.Write(in.list.At(0).Metadata(), 10, []message.Message{{Attributes: said, Words: wording.Words{Sentence: "Slow."}}})
	message.Write(in.list.At(2).Metadata(), 11, []message.Message{{Attributes: in.list.At(2).Gauge().DataPoints().At(0).Attributes(), Words: wording.Words{Sentence: "Another time."}}})
	frames, report := Read(in.Metrics)
	assert.Zero(t, report)
	require.Len(t, frames, 4)
	frames = slices.DeleteFunc(frames, func(f *Frame) bool { return f.Message == nil })
	require.Len(t, frames, 1)
	f := frames[0]
	assert.Equal(t, &message.Message{At: 10, Words: wording.Words{Sentence: "Slow."}}, f.Message)
	assert.False(t, f.Key.Pool)
	assert.EqualValues(t, 10, f.Time)
	part := Frame{Severity: NoSeverity}
	part.Merge(f)
	assert.Equal(t, f.Message, part.Message)
}

func TestReadJoinsThePointsOfOneEngineAtOneTime(t *testing.T) {
	in := newInput()
	in.add("vllm.diagnosis.severity", 20, 0)
	in.add("vllm.diagnosis.severity", 10, 2, "model_name", "m")
	in.add("vllm.diagnosis.condition", 10, 1, "model_name", "m", "condition", "degraded")
	in.add("vllm.diagnosis.condition", 10, 0, "condition", "healthy", "model_name", "m")
	in.add("vllm.diagnosis.cause", 10, 1, "cause", "prefill_heavy", "role", "primary", "detail", "reuse_fell", "model_name", "m")
	in.add("vllm.diagnosis.cause", 10, 0, "cause", "slow_steps", "role", "contributing", "model_name", "m")
	in.add("vllm.pool.diagnosis.severity", 10, 3, "model_name", "m")
	in.add("vllm.num_requests.running", 10, 3, "model_name", "m")

	frames, report := Read(in.Metrics)

	assert.Zero(t, report)
	require.Len(t, frames, 3)
	first := frames[0]
	assert.Equal(t, []Attribute{{"engine", "0"}, {"model_name", "m"}}, first.Attributes)
	assert.False(t, first.Key.Pool)
	assert.EqualValues(t, 10, first.Time)
	assert.Equal(t, 2, first.Severity)
	assert.Equal(t, map[string]bool{"degraded": true, "healthy": false}, first.Conditions)
	assert.Equal(t, map[Cause]bool{{"prefill_heavy", Primary, "reuse_fell"}: true, {"slow_steps", Contributing, ""}: false}, first.Causes)
	assert.Equal(t, 5, first.Points)
	assert.True(t, frames[1].Key.Pool)
	assert.Equal(t, 3, frames[1].Severity)
	assert.EqualValues(t, 20, frames[2].Time, "the older before the newer")
}

func TestReadCountsWhatItCannotUse(t *testing.T) {
	for name, test := range map[string]struct {
		add  func(in input)
		want Reason
	}{
		"no gauge": {func(in input) {
			metric := in.list.AppendEmpty()
			metric.SetName("vllm.diagnosis.severity")
			metric.SetEmptySum().DataPoints().AppendEmpty().SetTimestamp(1)
		}, TypeConflict},
		"no time":              {func(in input) { in.add("vllm.diagnosis.severity", 0, 1) }, NoTimestamp},
		"severity of 4":        {func(in input) { in.add("vllm.diagnosis.severity", 1, 4) }, BadValue},
		"severity of 1.5":      {func(in input) { in.add("vllm.diagnosis.severity", 1, 1.5) }, BadValue},
		"severity NaN":         {func(in input) { in.add("vllm.diagnosis.severity", 1, math.NaN()) }, BadValue},
		"state of 2":           {func(in input) { in.add("vllm.diagnosis.condition", 1, 2, "condition", "idle") }, BadValue},
		"unnamed condition":    {func(in input) { in.add("vllm.diagnosis.condition", 1, 1) }, BadAttribute},
		"unnamed cause":        {func(in input) { in.add("vllm.diagnosis.cause", 1, 1, "role", "primary") }, BadAttribute},
		"cause without a role": {func(in input) { in.add("vllm.diagnosis.cause", 1, 1, "cause", "erroring") }, BadAttribute},
		"long name":            {func(in input) { in.add("vllm.diagnosis.condition", 1, 1, "condition", strings.Repeat("x", 129)) }, TooLong},
		"long detail": {func(in input) {
			in.add("vllm.diagnosis.cause", 1, 1, "cause", "erroring", "role", "primary", "detail", strings.Repeat("x", 200))
		}, TooLong},
		"long attribute": {func(in input) { in.add("vllm.diagnosis.severity", 1, 1, "model_name", strings.Repeat("x", 3000)) }, TooLong},
		"many attributes": {func(in input) {
			point := in.add("vllm.diagnosis.severity", 1, 1)
			for i := range 500 {
				point.Attributes().PutStr(fmt.Sprint("attribute", i), "")
			}
		}, TooLong},
		"role that is not one": {func(in input) { in.add("vllm.diagnosis.cause", 1, 1, "cause", "erroring", "role", "main") }, BadAttribute},
	} {
		t.Run(name, func(t *testing.T) {
			in := newInput()
			test.add(in)
			frames, report := Read(in.Metrics)
			assert.Empty(t, frames)
			var want Report
			want[test.want] = 1
			assert.Equal(t, want, report, "%s", test.want)
		})
	}
}

func TestReadKeepsNoMoreSeriesThanADiagnosisHas(t *testing.T) {
	in := newInput()
	for i := range maxSeries + 3 {
		in.add("vllm.diagnosis.cause", 1, 1, "cause", fmt.Sprint("c", i), "role", "notice")
	}
	frames, report := Read(in.Metrics)
	require.Len(t, frames, 1)
	assert.Len(t, frames[0].Causes, maxSeries)
	assert.Equal(t, 3, report[TooMany])
}

// A server that was updated in place ends its series under the old attributes and
// begins them under the new ones, at one time.
func TestAValueWinsOverAnEnd(t *testing.T) {
	for _, endFirst := range []bool{true, false} {
		in := newInput()
		end := func() {
			flag := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
			in.add("vllm.diagnosis.severity", 1, 0).SetFlags(flag)
			in.add("vllm.diagnosis.condition", 1, 0, "condition", "stalled").SetFlags(flag)
		}
		if endFirst {
			end()
		}
		in.add("vllm.diagnosis.severity", 1, 3)
		in.add("vllm.diagnosis.condition", 1, 1, "condition", "stalled")
		if !endFirst {
			end()
		}
		frames, _ := Read(in.Metrics)
		require.Len(t, frames, 1)
		assert.Equal(t, 3, frames[0].Severity)
		assert.Equal(t, map[string]bool{"stalled": true}, frames[0].Conditions)
	}
}

func TestLookReportsWhetherThereIsADiagnosis(t *testing.T) {
	for name, want := range map[string]Kind{
		"process.cpu.time": Foreign, "vllm.num_requests.running": Undiagnosed, "vllm:num_requests_running": Undiagnosed,
		"vllm.diagnosis.condition": Undiagnosed, "vllm_diagnosis_severity": Translated,
		"vllm.diagnosis.severity": Diagnosed, "vllm.pool.diagnosis.severity": Diagnosed,
	} {
		in := newInput()
		in.add("other", 1, 1)
		in.add(name, 1, 1)
		assert.Equal(t, want, Look(in.Metrics), name)
	}
}

// The parts of a frame may arrive in either order, and the end may be in one of them only.
func TestAPartThatEndsTheDiagnosisEndsTheFrame(t *testing.T) {
	for _, first := range []bool{true, false} {
		f, part := Frame{Severity: 2, Ended: first, Points: 3}, Frame{Severity: 1, Ended: !first, Points: 4}
		f.Merge(&part)
		assert.True(t, f.Ended)
		assert.Equal(t, 2, f.Severity)
		assert.Equal(t, 7, f.Points)
	}
	var f Frame
	f.Merge(&Frame{Severity: 3})
	assert.False(t, f.Ended)
	assert.Equal(t, 3, f.Severity)
}

// Nothing renders a nested value, wherever a sender puts it.
func TestNestedValuesAreNotRendered(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(32 << 20))
	nested := func(to pcommon.Value) {
		for range 300_000 {
			to = to.SetEmptySlice().AppendEmpty()
		}
	}
	for _, attribute := range []string{"condition", "model_name"} {
		in := newInput()
		in.add("vllm.diagnosis.severity", 1, 1)
		nested(in.add("vllm.diagnosis.condition", 1, 1).Attributes().PutEmpty(attribute))
		nested(in.list.At(0).Metadata().PutEmpty(message.Key))
		frames, report := Read(in.Metrics)
		assert.Len(t, frames, 1)
		assert.Equal(t, 1, report[TooLong])
	}
	in, of := newInput(), newInput()
	in.add("vllm.diagnosis.severity", 1, 1)
	of.add("vllm.diagnosis.severity", 1, 1)
	nested(of.ResourceMetrics().At(0).Resource().Attributes().PutEmpty("note"))
	of.ResourceMetrics().MoveAndAppendTo(in.ResourceMetrics())
	frames, report := Read(in.Metrics)
	assert.Len(t, frames, 1)
	assert.Equal(t, 1, report[TooLong])
}
