package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Causes have their shares, and stand in the order of them within a role. Shares of other
// engines, and of causes that are not present, are left out.
func TestCausesAreRankedByTheirShares(t *testing.T) {
	metrics := pmetric.NewMetrics()
	scope := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	add := func(name string, value float64, attributes map[string]any) {
		m := scope.Metrics().AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(value)
		assert.NoError(t, p.Attributes().FromRaw(attributes))
	}
	for _, engine := range []string{"0", "1"} {
		share := map[string]float64{"slow_steps": 0.4, "decode_load": 0.15, "prefill_heavy": 0.3, "kv_pressure": 0.12}
		if engine == "0" {
			share = map[string]float64{"decode_load": 0.9}
		}
		for cause, s := range share {
			add("vllm.diagnosis.cause_share", s, map[string]any{"engine": engine, "cause": cause})
		}
	}
	add("vllm.diagnosis.severity", 1, map[string]any{"engine": "0"})
	add("vllm.diagnosis.severity", 2, map[string]any{"engine": "1"})
	for cause, role := range map[string]string{"slow_steps": "primary", "decode_load": "contributing", "prefill_heavy": "contributing", "erroring": "contributing"} {
		add("vllm.diagnosis.cause", 1, map[string]any{"engine": "1", "cause": cause, "role": role})
	}
	add("vllm.diagnosis.cause", 0, map[string]any{"engine": "1", "cause": "kv_pressure", "role": "contributing"})
	assert.Equal(t, []Cause{
		{Name: "slow_steps", Role: "primary", Share: 0.4},
		{Name: "prefill_heavy", Role: "contributing", Share: 0.3},
		{Name: "decode_load", Role: "contributing", Share: 0.15},
		{Name: "erroring", Role: "contributing"},
	}, readReport(metrics, serverPrefix).causes)
}
