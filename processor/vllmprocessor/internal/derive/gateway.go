package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// gatewayRequests counts the requests of a gateway that is not a picker, by its counter, or else by
// the durations.
func gatewayRequests(v *window.View) (h handled, reason Reason) {
	total, status := v.Increase(input.GatewayRequests)
	h.all = total
	if status == window.Missing {
		h.all, _, _, status = v.Moments(input.GatewayDuration)
		good, _, _, _ := v.MomentsWhere(input.GatewayDuration, succeeded(v))
		h.errors = h.all - good
		return h, Because(status)
	}
	for label, n := range v.Increases(input.GatewayRequests) {
		if label.Value(gatewayLabel) != "" {
			h.errors += n
		}
	}
	return h, Because(status)
}

func gatewayRate(_ *Settings, m *Member) (float64, Reason) {
	h, reason := gatewayRequests(&m.Now)
	return perSecond(h.all, m.Now.Elapsed, reason)
}

// gatewayErrors has no value for a gateway that has never marked a request as failed: some do not
// mark any.
func gatewayErrors(_ *Settings, m *Member) Parts {
	h, reason := gatewayRequests(&m.Now)
	if reason == OK && !m.Now.MarksErrors() {
		reason = Missing
	}
	return Parts{Numerator: h.errors, Denominator: h.all, Reason: reason}
}

// Until is the end of a time that begins when a request arrives.
type Until uint8

// The ends of times.
const (
	FirstToken Until = iota
	End

	NumUntil
)

// String is the end as the attribute until spells it.
func (u Until) String() string { return [NumUntil]string{"first_token", "end"}[u] }

// Gateway is a kind of gateway. One may stand behind the other, and both see each request.
type Gateway uint8

// The kinds of gateways.
const (
	Picker Gateway = iota
	OtherGateway

	NumGateways
)

// Times returns the times that a gateway measured of the requests for a model, if they did not fail:
// per second of the window their sum and their number.
func (g Gateway) Times(v *window.View, until Until) Parts {
	of := [NumGateways][NumUntil]struct {
		in   input.Metric
		keep func(*window.View) func(input.Label) bool
	}{
		Picker:       {{input.PickerTimeToFirstToken, streams}, {input.PickerDuration, everything}},
		OtherGateway: {{input.GatewayTimeToFirstToken, succeeded}, {input.GatewayDuration, succeeded}},
	}[g][until]
	return PerSecond(meanOf(v.MomentsWhere(of.in, of.keep(v))), v.Elapsed)
}

// PerSecond divides both parts by the length of the window, so that those of different windows can be
// added up and compared.
func PerSecond(p Parts, elapsed float64) Parts {
	if p.Reason == OK && elapsed <= 0 {
		return Parts{Reason: First}
	}
	p.Numerator /= elapsed
	p.Denominator /= elapsed
	return p
}
