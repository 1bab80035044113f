package derive

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// gatewayRows are the derived metrics of an inference gateway's endpoint picker, and of other
// gateways.
func gatewayRows() []Row {
	all := []Row{
		{Metric: "inference_gateway.epp.request_rate", Additive: pickerRate},
		{Metric: "inference_gateway.epp.request.error_ratio", Quotient: pickerErrors},
		{Metric: "inference_gateway.epp.request.shed_ratio", Quotient: pickerShed},
		{Metric: "inference_gateway.epp.request.input_tokens_mean", Quotient: mean(input.PickerInputTokens)},
		{Metric: "inference_gateway.epp.request.output_tokens_mean", Quotient: mean(input.PickerOutputTokens)},
		{Metric: "inference_gateway.request_rate", Additive: gatewayRate},
		{Metric: "inference_gateway.request.error_ratio", Quotient: gatewayErrors},
	}
	for _, of := range []struct {
		in                    input.Metric
		keep                  func(*window.View) func(input.Label) bool
		mean, quantile, bound string
	}{
		{
			input.PickerDuration, everything, "inference_gateway.epp.request.duration_mean",
			"inference_gateway.epp.request.duration_quantile", "inference_gateway.epp.request.duration_quantile_bound",
		},
		{
			input.PickerTimeToFirstToken, streams, "inference_gateway.epp.request.time_to_first_token_mean",
			"inference_gateway.epp.request.time_to_first_token_quantile", "inference_gateway.epp.request.time_to_first_token_quantile_bound",
		},
		{
			input.PickerQueueTime, dispatched, "inference_gateway.epp.flow_control.queue.duration_mean",
			"inference_gateway.epp.flow_control.queue.duration_quantile", "inference_gateway.epp.flow_control.queue.duration_quantile_bound",
		},
		{
			input.GatewayDuration, succeeded, "inference_gateway.request.duration_mean",
			"inference_gateway.request.duration_quantile", "inference_gateway.request.duration_quantile_bound",
		},
		{
			input.GatewayTimeToFirstToken, succeeded, "inference_gateway.request.time_to_first_token_mean",
			"inference_gateway.request.time_to_first_token_quantile", "inference_gateway.request.time_to_first_token_quantile_bound",
		},
	} {
		read := func(m *Member, dst *window.Histogram) Reason {
			return Because(m.Now.AddToWhere(dst, of.in, of.keep(&m.Now)))
		}
		average := func(_ *Settings, m *Member) Parts {
			return meanOf(m.Now.MomentsWhere(of.in, of.keep(&m.Now)))
		}
		all = append(all, Row{Metric: of.mean, Quotient: average})
		all = append(all, quantileRows(read, of.quantile, of.bound, false)...)
	}
	for i := range all {
		all[i].gateway = true
	}
	return all
}

// This is the place of the first own attribute of a gateway's inputs: error_code, streaming,
// outcome or failed.
const gatewayLabel = 0

func everything(*window.View) func(input.Label) bool { return nil }

// streams are the streamed responses, where the picker distinguishes them. Of the others
// the first byte is sent together with the last.
func streams(v *window.View) func(input.Label) bool {
	for label := range v.Labels(input.PickerTimeToFirstToken) {
		if label.Value(gatewayLabel) != "" {
			return func(l input.Label) bool { return l.Value(gatewayLabel) == "true" }
		}
	}
	return nil
}

// dispatched are the requests that left the picker's queue for a server. Those that were
// refused or evicted waited for something else.
func dispatched(*window.View) func(input.Label) bool {
	return func(l input.Label) bool { return l.Value(gatewayLabel) == "Dispatched" }
}

// succeeded are the requests that the gateway does not mark as failed.
func succeeded(*window.View) func(input.Label) bool {
	return func(l input.Label) bool { return l.Value(gatewayLabel) == "" }
}

// modelServerError is the error_code of requests that were scheduled before they failed.
const modelServerError = "ModelServerError"

// shedCodes are the values of error_code for a pool without room, the second up to release
// 1.0.
var shedCodes = []string{"ResourceExhausted", "InferencePoolResourceExhausted"}

// handled is what a picker did with the requests of a model.
type handled struct {
	// all includes those that were refused before they were scheduled.
	all, errors, shed float64
}

// pickerRequests counts the requests of a picker. A picker creates a counter at its first
// event: without errors it has no counter of errors, and where every request was refused it
// has none of requests. So one of the two is enough.
func pickerRequests(v *window.View) (handled, Reason) {
	var h handled
	_, scheduled := v.Increase(input.PickerRequests)
	_, failed := v.Increase(input.PickerErrors)
	switch {
	case scheduled == window.Pending || failed == window.Pending:
		return h, Pending
	case scheduled == window.First || failed == window.First:
		return h, First
	case scheduled != window.Present && failed != window.Present:
		return h, worst(scheduled)
	}
	for _, n := range v.Increases(input.PickerRequests) {
		h.all += n
	}
	for label, n := range v.Increases(input.PickerErrors) {
		h.errors += n
		code := label.Value(gatewayLabel)
		if code != modelServerError {
			h.all += n
		}
		if slices.Contains(shedCodes, code) {
			h.shed += n
		}
	}
	// A server's error counts at its response, and its request when it was scheduled, which
	// can be before the window.
	h.all = max(h.all, h.errors)
	return h, OK
}

func pickerRate(_ *Settings, m *Member) (float64, Reason) {
	h, reason := pickerRequests(&m.Now)
	return perSecond(h.all, m.Now.Elapsed, reason)
}

func pickerErrors(_ *Settings, m *Member) Parts {
	h, reason := pickerRequests(&m.Now)
	return Parts{Numerator: h.errors, Denominator: h.all, Reason: reason}
}

func pickerShed(_ *Settings, m *Member) Parts {
	h, reason := pickerRequests(&m.Now)
	return Parts{Numerator: h.shed, Denominator: h.all, Reason: reason}
}
