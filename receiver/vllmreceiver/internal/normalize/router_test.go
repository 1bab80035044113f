package normalize

import (
	"fmt"
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
	var want []string
	// Each becomes one series whose value, or number of observations, is its place in the list.
	is := func(name, labels, become string) {
		constant, value := prometheus.Labels{}, float64(len(metrics)+1)
		for pair := range strings.FieldsSeq(labels) {
			key, value, _ := strings.Cut(pair, "=")
			constant[key] = value
		}
		switch {
		case strings.Contains(become, "histogram"):
			h := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "llm_d_epp", Name: name, Buckets: []float64{1, 8, 16}, ConstLabels: constant})
			for range int(value) {
				h.Observe(12)
			}
			metrics = append(metrics, h)
		case strings.Contains(become, "gauge"):
			g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "llm_d_epp", Name: name, ConstLabels: constant})
			g.Set(value)
			metrics = append(metrics, g)
		default:
			c := prometheus.NewCounter(prometheus.CounterOpts{Namespace: "llm_d_epp", Name: name, ConstLabels: constant})
			c.Add(value)
			metrics = append(metrics, c)
		}
		want = append(want, fmt.Sprintf("inference_gateway.epp.%s {%s} = %v", become, strings.ReplaceAll(labels, " ", ","), value))
	}
	const plugin = "plugin_name=n plugin_type=t"
	const role, kinds = "endpoint_role=prefill " + plugin, "endpoint_role=decode modality=audio,image " + plugin
	is("prefix_predicted_cached_tokens", role, "prefix_predicted_cached_tokens histogram {token}")
	is("prefix_best_predicted_cached_tokens", kinds, "prefix_best_predicted_cached_tokens histogram {token}")
	is("prefix_best_available_cached_tokens", kinds, "prefix_best_available_cached_tokens histogram {token}")
	is("prefix_prompt_tokens", role, "prefix_prompt_tokens histogram {token}")
	is("prefix_mm_predicted_cached_tokens", role, "prefix_mm_predicted_cached_tokens histogram {token}")
	is("prefix_mm_prompt_tokens", role, "prefix_mm_prompt_tokens histogram {token}")
	is("flow_control_detector_saturation", "detector=d stage=prefill", "flow_control.detector.saturation gauge 1")
	is("prefix_cache_affinity_filter_decisions_total", "outcome=load_override plugin_name=n", "prefix_cache_affinity_filter_decisions sum {decision}")
	is("disaggregatedset_strict_revision_no_match_total", plugin, "disaggregatedset_strict_revision_no_match sum {request}")
	is("disagg_decision_total", "decision_type=aggregated-fallback model_name=m "+plugin, "disaggregation.decisions sum {decision}")
	is("config_reload_total", "result=success", "config_reload sum {reload}")
	is("config_active_generation", "", "config_active_generation gauge {generation}")
	is("config_last_reload_success_timestamp_seconds", "", "config_last_reload_success_timestamp gauge s")
	is("tool_calling_field_status_total", "component=epp direction=request field=tools status=changed", "tool_calling_field_status sum {field}")
	runPlanCases(t, []planCase{{body: page(t, metrics...), want: append(want, isEPP, isLLMD)}})
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
