package normalize

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// page is what a Go program with these metrics serves.
func page(t *testing.T, metrics ...prometheus.Collector) string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics...)
	families, err := registry.Gather()
	require.NoError(t, err)
	var text strings.Builder
	for _, family := range families {
		_, err := expfmt.MetricFamilyToText(&text, family)
		require.NoError(t, err)
	}
	return text.String()
}

// What llm-d-router has had since August 2026, by the labels of its source.
func TestNewMetricsOfLLMDRouter(t *testing.T) {
	var metrics []prometheus.Collector
	tokens := func(name string, value float64, labels prometheus.Labels) {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "llm_d_epp", Subsystem: "prefix", Name: name, Buckets: []float64{1, 8, 16}, ConstLabels: labels,
		})
		for range int(value) {
			h.Observe(12)
		}
		metrics = append(metrics, h)
	}
	counts := func(name string, value float64, labels prometheus.Labels) {
		c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "llm_d_epp", Name: name, ConstLabels: labels})
		c.Add(value)
		metrics = append(metrics, c)
	}
	is := func(name string, value float64, labels prometheus.Labels) {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "llm_d_epp", Name: name, ConstLabels: labels})
		g.Set(value)
		metrics = append(metrics, g)
	}
	plugin := prometheus.Labels{"plugin_name": "n", "plugin_type": "t"}
	role := prometheus.Labels{"endpoint_role": "prefill", "plugin_name": "n", "plugin_type": "t"}
	kinds := prometheus.Labels{"endpoint_role": "decode", "modality": "audio,image", "plugin_name": "n", "plugin_type": "t"}
	tokens("predicted_cached_tokens", 1, role)
	tokens("best_predicted_cached_tokens", 2, kinds)
	tokens("best_available_cached_tokens", 3, kinds)
	tokens("prompt_tokens", 4, role)
	tokens("mm_predicted_cached_tokens", 5, role)
	tokens("mm_prompt_tokens", 6, role)
	is("flow_control_detector_saturation", 1.5, prometheus.Labels{"detector": "d", "stage": "prefill"})
	counts("prefix_cache_affinity_filter_decisions_total", 8, prometheus.Labels{"outcome": "load_override", "plugin_name": "n"})
	counts("disaggregatedset_strict_revision_no_match_total", 9, plugin)
	counts("disagg_decision_total", 10, prometheus.Labels{"decision_type": "aggregated-fallback", "model_name": "m", "plugin_name": "n", "plugin_type": "t"})
	counts("config_reload_total", 11, prometheus.Labels{"result": "success"})
	is("config_active_generation", 12, nil)
	is("config_last_reload_success_timestamp_seconds", 1.7e9, nil)
	counts("tool_calling_field_status_total", 14, prometheus.Labels{"component": "epp", "direction": "request", "field": "tools", "status": "changed"})
	runPlanCases(t, []planCase{{
		body: page(t, metrics...),
		want: []string{
			"inference_gateway.epp.prefix_predicted_cached_tokens histogram {token} {endpoint_role=prefill,plugin_name=n,plugin_type=t} = 1",
			"inference_gateway.epp.prefix_best_predicted_cached_tokens histogram {token} {endpoint_role=decode,modality=audio,image,plugin_name=n,plugin_type=t} = 2",
			"inference_gateway.epp.prefix_best_available_cached_tokens histogram {token} {endpoint_role=decode,modality=audio,image,plugin_name=n,plugin_type=t} = 3",
			"inference_gateway.epp.prefix_prompt_tokens histogram {token} {endpoint_role=prefill,plugin_name=n,plugin_type=t} = 4",
			"inference_gateway.epp.prefix_mm_predicted_cached_tokens histogram {token} {endpoint_role=prefill,plugin_name=n,plugin_type=t} = 5",
			"inference_gateway.epp.prefix_mm_prompt_tokens histogram {token} {endpoint_role=prefill,plugin_name=n,plugin_type=t} = 6",
			"inference_gateway.epp.flow_control.detector.saturation gauge 1 {detector=d,stage=prefill} = 1.5",
			"inference_gateway.epp.prefix_cache_affinity_filter_decisions sum {decision} {outcome=load_override,plugin_name=n} = 8",
			"inference_gateway.epp.disaggregatedset_strict_revision_no_match sum {request} {plugin_name=n,plugin_type=t} = 9",
			"inference_gateway.epp.disaggregation.decisions sum {decision} {decision_type=aggregated-fallback,model_name=m,plugin_name=n,plugin_type=t} = 10",
			"inference_gateway.epp.config_reload sum {reload} {result=success} = 11",
			"inference_gateway.epp.config_active_generation gauge {generation} {} = 12",
			"inference_gateway.epp.config_last_reload_success_timestamp gauge s {} = 1.7e+09",
			"inference_gateway.epp.tool_calling_field_status sum {field} {component=epp,direction=request,field=tools,status=changed} = 14",
			isEPP, isLLMD,
		},
	}})
}

// The proxy next to a prefill or decode server has a page of its own, and its names have no prefix of the router.
func TestTheSidecarOfLLMDRouter(t *testing.T) {
	var metrics []prometheus.Collector
	for i, name := range []string{"reresolve_total", "ip_changed_total", "lookup_failures_total"} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Subsystem: "moriio_dns", Name: name})
		c.Add(float64(i + 1))
		metrics = append(metrics, c)
	}
	want := []string{
		"inference_gateway.sidecar.moriio_dns_reresolve sum {lookup} {} = 1",
		"inference_gateway.sidecar.moriio_dns_ip_changed sum {change} {} = 2",
		"inference_gateway.sidecar.moriio_dns_lookup_failures sum {lookup} {} = 3",
		isEPP,
	}
	runPlanCases(t, []planCase{{body: page(t, metrics...), want: want}})
	snapshot := snapshotOf(page(t, append(metrics, collectors.NewGoCollector())...))
	got := describe(Make(snapshot.Layout, Options{}), snapshot.Values)
	assert.Subset(t, got, want)
	assert.Len(t, got, len(want)+1, "of the Go program only that it is off: %v", got)
}
