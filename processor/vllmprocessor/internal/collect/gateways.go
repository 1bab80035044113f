package collect

import (
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// kindOf is what our receiver says about a resource that is not a vLLM server.
func kindOf(resource pcommon.Map) string {
	if kind, has := resource.Get("vllm.server.kind"); has {
		return kind.AsString()
	}
	return ""
}

// passes reports whether a metric of a gateway is left alone because it is not about a gateway:
// the copies that our receiver makes of vLLM's own times, and what an application measures, which
// has the same name as that of a gateway.
func (c *Reader) passes(m *meaning) bool {
	return m.input.Summed() && c.kind != "gateway" && c.kind != "router" && (c.ours || m.ofClients)
}

// isCopy reports whether a point is a copy that our receiver made and that has lost its scope:
// it has the attributes of the engine. No gateway knows the engine.
func isCopy(attributes pcommon.Map) bool {
	_, has := attributes.Get("engine")
	return has
}

// modelNames are the attributes with the model, the best first. What a server answers with is
// what vLLM calls the model; a request may have an alias that the gateway resolves.
var modelNames = [...]string{
	"gen_ai.response.model", "gen_ai_response_model", "gen_ai.request.model", "gen_ai_request_model", "model_name", "model",
}

// readGateway reads the attributes of a point of a gateway: the model, and whether the requests
// failed. It leaves out all others: routes, backends, operations, tokens and clients, which would
// be as many groups.
func (c *Reader) readGateway(attributes pcommon.Map, sample *input.Sample) {
	c.rest, c.origin.summed = c.rest[:0], true
	for _, name := range modelNames {
		// Gateways write unknown where they have not read it.
		if v, has := attributes.Get(name); has && v.AsString() != "" && v.AsString() != "unknown" {
			c.rest = append(c.rest, input.Attribute{Name: "model_name", Value: v.AsString()})
			break
		}
	}
	sample.Label = input.NewLabel("")
	fails, marks := outcome(attributes)
	if marks {
		c.evidence.Signs |= input.MarksErrors
	}
	if fails {
		sample.Label = input.NewLabel("true")
	}
	c.key = input.AppendKey(c.key[:0], c.rest)
}

// outcome reports whether the requests of a point failed, and whether the gateway is known to mark
// those that do. By the conventions an attribute stands only at those, so that one that never failed
// and one that does not mark look the same.
func outcome(attributes pcommon.Map) (fails, marks bool) {
	for _, name := range [...]string{"error.type", "error_type"} {
		if v, has := attributes.Get(name); has && v.AsString() != "" {
			return true, true
		}
	}
	v, has := attributes.Get("status")
	if !has || v.AsString() == "" {
		return false, false
	}
	if code, err := strconv.Atoi(v.AsString()); err == nil {
		return code >= 400, true
	}
	return v.AsString() != "success" && v.AsString() != "ok", true
}
