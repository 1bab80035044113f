package collect

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

const (
	pickerRequests = "inference_gateway.epp.requests"
	pickerDuration = "inference_gateway.epp.request.duration"
)

// Clients choose the fairness_id. However many there are, there is one sample for each model.
func TestTheClientsOfAPickerAreAddedUp(t *testing.T) {
	in := newInput()
	for i := range 300 {
		id := strconv.Itoa(i)
		in.counter(pickerRequests, 2, "model_name", "m", "target_model_name", "m", "fairness_id", id).SetStartTimestamp(pcommon.Timestamp(1000 - i))
		in.histogram(pickerDuration, []float64{1, 2}, []uint64{1, 0, 2}, "model_name", "m", "target_model_name", "m", "fairness_id", id)
	}
	// Without the attribute it is one more client.
	in.counter(pickerRequests, 5, "model_name", "m", "target_model_name", "m").SetStartTimestamp(2000)
	batches, report := Read(in.metrics)
	assert.Equal(t, Report{}, report)
	assert.Len(t, batches[0].Groups, 1)
	assert.Len(t, batches[0].Samples, 2)
	requests, durations := batches[0].Samples[0], batches[0].Samples[1]
	assert.InDelta(t, 605, requests.Value, 0)
	assert.Equal(t, int64(701), requests.Start, "the oldest")
	assert.Equal(t, []float64{300, 0, 600}, durations.Counts)
	assert.InDelta(t, 900, durations.Count, 0)
}

// The end of one client's series is not the end of the sum.
func TestTheEndOfOneClientIsNotTheEndOfThePicker(t *testing.T) {
	for _, first := range []bool{true, false} {
		in := newInput()
		one := in.counter(pickerRequests, 3, "fairness_id", "a")
		two := in.counter(pickerRequests, 4, "fairness_id", "b")
		gone, left := two, 3.0
		if first {
			gone, left = one, 4.0
		}
		gone.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		batches, _ := Read(in.metrics)
		if assert.Len(t, batches[0].Samples, 1) {
			assert.False(t, batches[0].Samples[0].Gone)
			assert.InDelta(t, left, batches[0].Samples[0].Value, 0)
		}
	}
}

func TestClientsWithOtherBucketsAreNotAddedUp(t *testing.T) {
	in := newInput()
	in.histogram(pickerDuration, []float64{1, 2}, []uint64{1, 0, 2}, "fairness_id", "a")
	in.histogram(pickerDuration, []float64{1, 4}, []uint64{1, 0, 2}, "fairness_id", "b")
	batches, report := Read(in.metrics)
	assert.Empty(t, batches[0].Samples, "a part of the sum would look like a restart")
	assert.Equal(t, 1, report[BadHistogram])
}

// A newer picker writes two generations of names, and only the newer has a priority: they
// are the same requests, in whatever order they come.
func TestTwoGenerationsOfAPickerCountOnce(t *testing.T) {
	older := func(in *request) {
		in.counter("inference_objective_request_total", 7, "model_name", "m", "target_model_name", "m")
	}
	newer := func(in *request) {
		in.counter("llm_d_epp_request_total", 4, "model_name", "m", "target_model_name", "m", "priority", "0", "fairness_id", "a")
		in.counter("llm_d_epp_request_total", 3, "model_name", "m", "target_model_name", "m", "priority", "9", "fairness_id", "a")
	}
	for name, write := range map[string][]func(*request){"older first": {older, newer}, "newer first": {newer, older}} {
		in := newInput()
		for _, w := range write {
			w(in)
		}
		batches, report := Read(in.metrics)
		total := 0.0
		for _, s := range batches[0].Samples {
			total += s.Value
		}
		assert.InDelta(t, 7, total, 0, name)
		assert.Equal(t, 1, report[OlderName], name)
	}
	// Alone, the older one counts.
	in := newInput()
	older(in)
	batches, report := Read(in.metrics)
	assert.Len(t, batches[0].Samples, 1)
	assert.Equal(t, Report{}, report)
}
