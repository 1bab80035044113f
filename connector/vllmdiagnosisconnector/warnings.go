package vllmdiagnosisconnector

import (
	"context"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
)

// warnings are the sentences that are logged once, and what they rest on.
type warnings struct {
	// looked is true once a diagnosis has arrived, or the log has said that none does.
	looked bool
	// undiagnosed counts the batches of vLLM servers without one.
	undiagnosed int

	future, early, engines, incomplete, pending bool
	// refused is true from the first refusal until the next success.
	refused bool
}

// patience is the number of batches without a diagnosis before the log says so: the
// processor writes one with each batch of a server, but some batches may be of other
// servers.
const patience = 10

// look says once that there is nothing to read here.
func (c *diagnosisConnector) look(metrics pmetric.Metrics) {
	if c.warned.looked {
		return
	}
	switch collect.Look(metrics) {
	case collect.Diagnosed:
		c.warned.looked = true
	case collect.Translated:
		c.warnOnce(&c.warned.looked, "the metrics have Prometheus's names (vllm_diagnosis_severity), and this connector reads only those of OTLP "+
			"(vllm.diagnosis.severity); put it directly after the vllm processor, before anything that renames metrics")
	case collect.Undiagnosed:
		c.warned.undiagnosed++
		if c.warned.undiagnosed >= patience {
			c.warnOnce(&c.warned.looked, "metrics of vLLM servers arrive without vllm.diagnosis.severity, so no events can be emitted; put the vllm "+
				"processor before this connector; if it is there, remove diagnosis::enabled: false, switch vllm.diagnosis.severity on, "+
				"and let no filter drop it")
		}
	case collect.Foreign:
	}
}

// incomplete counts the points of a diagnosis that were given up.
func (c *diagnosisConnector) incomplete(ctx context.Context, points int) {
	if points == 0 {
		return
	}
	c.telemetry.ignore(ctx, incomplete, points)
	c.warnOnce(&c.warned.incomplete, "points of a diagnosis arrived without its severity or its present condition, and no events are emitted from them; "+
		"switch vllm.diagnosis.severity and vllm.diagnosis.condition on in the vllm processor, and let no filter drop them")
}

func (c *diagnosisConnector) warnOnce(done *bool, sentence string) {
	if !*done {
		*done = true
		c.logger.Warn(sentence)
	}
}
