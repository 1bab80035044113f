package spelling_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Each name is what Prometheus's documentation of its translation strategies says; the
// tests of lab/test/backends prove the default one on a real server.
func TestAnExpressionIsTranslatedAsPrometheusTranslatesTheNames(t *testing.T) {
	for _, c := range []struct{ name, expr, unsuffixed, dotted string }{
		{
			"a gauge without a unit", `vllm_up == 0`,
			`vllm_up == 0`, `{"vllm.up"} == 0`,
		},
		{
			"a counter and a label of the resource",
			`sum by (k8s_namespace_name, model_name) (rate(vllm_slo_valid_total[5m]))`,
			`sum by (k8s_namespace_name, model_name) (rate(vllm_slo_valid[5m]))`,
			`sum by ("k8s.namespace.name", model_name) (rate({"vllm.slo.valid"}[5m]))`,
		},
		{
			"the buckets of a histogram, a unit, a duration of the dashboard",
			`histogram_quantile(0.95, sum by (le) (rate(vllm_time_to_first_token_seconds_bucket{le="2.5"}[$__rate_interval])))`,
			`histogram_quantile(0.95, sum by (le) (rate(vllm_time_to_first_token_bucket{le="2.5"}[$__rate_interval])))`,
			`histogram_quantile(0.95, sum by (le) (rate({"vllm.time_to_first_token_bucket",le="2.5"}[$__rate_interval])))`,
		},
		{
			"matching, a matcher on a dotted label, a ratio",
			`vllm_diagnosis_severity{k8s_pod_name=~"$pod"} * on (k8s_pod_name) group_left (service_version) vllm_kv_cache_utilization_ratio`,
			`vllm_diagnosis_severity{k8s_pod_name=~"$pod"} * on (k8s_pod_name) group_left (service_version) vllm_kv_cache_utilization`,
			`{"k8s.pod.name"=~"$pod","vllm.diagnosis.severity"} * on ("k8s.pod.name") group_left ("service.version") {"vllm.kv_cache.utilization"}`,
		},
		{
			"a recorded series and one of another program",
			`vllm_slo:burn_lower:rate1h and on (instance) otelcol_exporter_queue_size`,
			`vllm_slo:burn_lower:rate1h and on (instance) otelcol_exporter_queue_size`,
			`vllm_slo:burn_lower:rate1h and on (instance) otelcol_exporter_queue_size`,
		},
		{
			"arguments that name a label",
			`label_replace(vllm_up, "service_name", "$1", "k8s_pod_name", "(.*)")`,
			`label_replace(vllm_up, "service_name", "$1", "k8s_pod_name", "(.*)")`,
			`label_replace({"vllm.up"}, "service.name", "$1", "k8s.pod.name", "(.*)")`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for to, want := range map[spelling.Spelling]string{spelling.Suffixed: c.expr, spelling.Unsuffixed: c.unsuffixed, spelling.Dotted: c.dotted} {
				got, err := spelling.Expr(c.expr, to)
				require.NoError(t, err)
				assert.Equal(t, tree(t, want), tree(t, got), string(to))
			}
		})
	}
}

// tree is the expression on one line, in the order in which the parser prints it.
func tree(t *testing.T, expr string) string {
	t.Helper()
	parsed, err := spelling.Parse(expr)
	require.NoError(t, err, expr)
	return parsed.String()
}

func TestUnknownNamesAreRefused(t *testing.T) {
	for _, expr := range []string{
		`vllm_slo_valid`, // lacks _total
		`rate(vllm_time_to_first_token_seconds[5m])`, // a histogram has no such series
		`vllm_no_such_thing`,
		`{__name__="vllm_no_such_thing"}`,
		`node_load1`,
	} {
		_, err := spelling.Expr(expr, spelling.Dotted)
		assert.ErrorContains(t, err, "is neither a series of the catalogue", expr)
	}
	_, err := spelling.Expr(`sum by (`, spelling.Suffixed)
	assert.Error(t, err)
}

// All names of the catalogue have a name in every spelling, and no two have the same.
func TestEveryMetricHasItsOwnNameInEachSpelling(t *testing.T) {
	for _, to := range spelling.All() {
		seen := map[string]string{}
		all := catalog.All()
		for i := range all {
			name, err := spelling.Name(&all[i], to)
			require.NoError(t, err)
			assert.NotEmpty(t, name)
			assert.Empty(t, seen[name], "%s and %s are both %s", seen[name], all[i].Name, name)
			seen[name] = all[i].Name
		}
	}
}

func TestASeriesIsFoundInTheCatalogue(t *testing.T) {
	for name, want := range map[string][2]string{
		"vllm_time_to_first_token_seconds_bucket":              {"vllm.time_to_first_token", "_bucket"},
		"vllm_slo_good_total":                                  {"vllm.slo.good", ""},
		"inference_gateway_epp_request_duration_seconds_count": {"inference_gateway.epp.request.duration", "_count"},
	} {
		m, suffix, ok := spelling.Metric(name)
		require.True(t, ok, name)
		assert.Equal(t, want, [2]string{m.Name, suffix})
	}
	_, _, ok := spelling.Metric("vllm_slo_good")
	assert.False(t, ok)
}

func TestTemplatesHaveTheLabelsOfTheSpelling(t *testing.T) {
	const text = `{{ $labels.k8s_pod_name }} of {{ $labels.model_name }}: {{ $value | humanize }} {{k8s_pod_name}} {{ model_name }}`
	assert.Equal(t, `{{ $labels.k8s_pod_name }} of {{ $labels.model_name }}: {{ $value | humanize }} {{k8s_pod_name}} {{model_name}}`,
		spelling.Template(text, spelling.Unsuffixed))
	assert.Equal(t, `{{ (index $labels "k8s.pod.name") }} of {{ $labels.model_name }}: {{ $value | humanize }} {{k8s.pod.name}} {{model_name}}`,
		spelling.Template(text, spelling.Dotted))
}

// Verbs of printf keep their order, whatever the printer sorts.
func TestTheQueriesOfAnAnnotationHaveTheNamesOfTheSpelling(t *testing.T) {
	const text = "{{ $of := printf `k8s_pod_name=%q,instance=%q` $labels.k8s_pod_name .Labels.instance }}{{ query (printf `max(vllm_slo_valid_total{%s,k8s_pod_name=\"a\"} @ %.3f)` $of 1.5) }}"
	for to, want := range map[spelling.Spelling]string{
		spelling.Unsuffixed: "{{ $of := printf `k8s_pod_name=%q,instance=%q` $labels.k8s_pod_name .Labels.instance }}{{ query (printf `max(vllm_slo_valid{k8s_pod_name=\"a\",%s} @ %.3f)` $of 1.5) }}",
		spelling.Dotted:     "{{ $of := printf `\"k8s.pod.name\"=%q,instance=%q` (index $labels \"k8s.pod.name\") .Labels.instance }}{{ query (printf `max({\"k8s.pod.name\"=\"a\",\"vllm.slo.valid\",%s} @ %.3f)` $of 1.5) }}",
	} {
		got, err := spelling.Annotation(text, to)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, wrong := range []string{"`vllm_slo_valid{%s}`", "`sum(vllm_up`", "`a b`"} {
		_, err := spelling.Annotation("{{ query "+wrong+" }}", spelling.Suffixed)
		assert.Error(t, err, wrong)
	}
}

func FuzzExpr(f *testing.F) {
	for _, seed := range []string{`sum by (k8s_pod_name) (rate(vllm_slo_valid_total[$__range]))`, `vllm_up{k8s_pod_name="a"}`, `{"vllm.up"}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		for _, to := range spelling.All() {
			got, err := spelling.Expr(expr, to)
			if err != nil {
				continue
			}
			if _, err := spelling.Parse(got); err != nil {
				t.Fatalf("%q became %q: %v", expr, got, err)
			}
		}
	})
}
