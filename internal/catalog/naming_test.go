package catalog

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// prometheusName translates a metric as OTLP exporters to Prometheus do by
// default.
func prometheusName(t *testing.T, m Metric) string {
	t.Helper()
	types := map[Kind]otlptranslator.MetricType{
		KindGauge:     otlptranslator.MetricTypeGauge,
		KindSum:       otlptranslator.MetricTypeMonotonicCounter,
		KindHistogram: otlptranslator.MetricTypeHistogram,
		KindSummary:   otlptranslator.MetricTypeSummary,
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
	require.NoError(t, err)
	return name
}

// newestFamily is the wire name of a metric on current servers; empty for metrics without
// a family of their own.
func newestFamily(m Metric) string {
	if len(m.Sources) == 0 || m.Sources[len(m.Sources)-1].Label != "" {
		return ""
	}
	return m.Sources[len(m.Sources)-1].Family
}

func TestNamesTranslateBackToTheWireOrHaveAReason(t *testing.T) {
	for _, m := range All() {
		if isGateway(m) {
			assert.Empty(t, m.Exception, "%s: the reason is the same for all, in docs/reference/naming.md", m.Name)
			continue
		}
		wire := strings.ReplaceAll(newestFamily(m), ":", "_")
		if wire == "" || prometheusName(t, m) == wire {
			assert.Empty(t, m.Exception, "%s needs no exception", m.Name)
			continue
		}
		assert.NotEmpty(t, m.Exception, "%s translates to %s, on the wire it is %s: correct its name or unit, or give the reason as its exception in metadata.yaml (docs/reference/naming.md)",
			m.Name, prometheusName(t, m), wire)
	}
}

func TestNoNameIsADottedPrefixOfAnother(t *testing.T) {
	for _, m := range All() {
		for cut := strings.LastIndexByte(m.Name, '.'); cut > 0; cut = strings.LastIndexByte(m.Name[:cut], '.') {
			_, taken := ByName(m.Name[:cut])
			assert.False(t, taken, "%s is a dotted prefix of %s", m.Name[:cut], m.Name)
		}
	}
}

func TestNoTwoNamesAreEqualAfterTranslation(t *testing.T) {
	seen := map[string]string{}
	for _, m := range All() {
		translated := prometheusName(t, m)
		assert.Empty(t, seen[translated], "%s and %s are both %s", seen[translated], m.Name, translated)
		seen[translated] = m.Name
	}
}

// The test applies the rules of docs/reference/naming.md one by one. So a family gets the
// same name from the catalogue as it had while it was unknown.
func TestNamesAreTheMechanicalForm(t *testing.T) {
	for _, m := range All() {
		wire := newestFamily(m)
		// The convention has other dots than the rule.
		if wire == "" || m.Exception != "" || isGateway(m) || strings.HasPrefix(m.Name, "gen_ai.") {
			continue
		}
		want := wire
		if m.Kind == KindSum {
			want = strings.TrimSuffix(want, "_total")
		}
		switch {
		case m.Name == "vllm.mooncake_store.operation_bytes":
			// Without "bytes" it would be the name of the count of operations.
		case strings.HasSuffix(want, "_seconds"):
			want = strings.TrimSuffix(want, "_seconds")
			assert.Equal(t, "s", m.Unit, m.Name)
		case strings.HasSuffix(want, "_milliseconds"):
			want = strings.TrimSuffix(want, "_milliseconds")
			assert.Equal(t, "ms", m.Unit, m.Name)
		case strings.HasSuffix(want, "_bytes"):
			want = strings.TrimSuffix(want, "_bytes")
			assert.Equal(t, "By", m.Unit, m.Name)
		}
		for wire, name := range map[string]string{Prefixes[0]: "vllm.", "vllm_router_": Router.Name} {
			if rest, ours := strings.CutPrefix(want, wire); ours {
				if i := slices.IndexFunc(Groups, func(g string) bool { return strings.HasPrefix(rest, g) }); i >= 0 {
					rest = strings.TrimSuffix(Groups[i], "_") + "." + rest[len(Groups[i]):]
				}
				want = name + rest
			}
		}
		for _, n := range Namespaces {
			if rest, ours := strings.CutPrefix(want, n.Wire); ours {
				want = n.Name + rest
			}
		}
		assert.Equal(t, want, m.Name, "docs/reference/naming.md makes the expected name of the family %s: take it, or give the reason for another one as exception; a dot needs one of the groups in metadata.yaml", wire)
	}
}

func TestEveryUnitIsUCUMOrAnAnnotation(t *testing.T) {
	annotation := regexp.MustCompile(`^\{[A-Za-z_]+\}(/s)?$`)
	ucum := []string{"1", "s", "ms", "min", "By", "MiBy", "GBy/s", "By/s", "Cel", "Hz", "J", "J/{token}", "W", "s/MiBy", "%"}
	for _, m := range All() {
		assert.True(t, annotation.MatchString(m.Unit) || slices.Contains(ucum, m.Unit), "%s has the unit %q; a count has an annotation such as {request}, all else a unit of this test", m.Name, m.Unit)
	}
}

// notShares are the quotients with the unit 1 that can be outside of 0 to 1, with the words
// that their description must have.
var notShares = map[string]string{
	"vllm.diagnosis.signal_ratio":      "can exceed 1",
	"vllm.input_output_ratio":          "can exceed 1",
	"vllm.pool.imbalance.max_ratio":    "can exceed 1",
	"vllm.pool.imbalance.stddev_ratio": "can exceed 1",
	"vllm.slo.burn_rate":               "can exceed 1",
	"vllm.slo.error_budget_remaining":  "can be negative",
}

func TestOnlyRatiosHaveUnitOneAndNameTheirRange(t *testing.T) {
	for _, m := range All() {
		want := []string{}
		switch phrase, leaves := notShares[m.Name]; {
		case leaves:
			assert.Equal(t, "1", m.Unit, m.Name)
			assert.Equal(t, "processor", m.EmittedBy, "%s: on the wire only shares have the unit 1", m.Name)
			want = append(want, phrase)
		case m.Unit == "1":
			want = append(want, "from 0 to 1")
		}
		got := []string{}
		for _, phrase := range []string{"from 0 to 1", "can exceed 1", "can be negative"} {
			if strings.Contains(m.Description, phrase) {
				got = append(got, phrase)
			}
		}
		assert.Equal(t, want, got, "%s has the unit %s and says: %s", m.Name, m.Unit, m.Description)
	}
}

func TestNoAttributeIsReservedByABackend(t *testing.T) {
	for _, m := range All() {
		for _, reserved := range []string{"namespace", "location", "cluster", "job", "instance", "project_id"} {
			assert.NotContains(t, m.Attributes, reserved, m.Name)
		}
	}
}

// unread are metrics of which nothing in this repository reads a value: no derived metric, diagnosis, rule, board or page.
var unread = []string{
	"http_request_duration_highr", "http_request_size", "http_response_size", "vllm.request.max_num_generation_tokens",
	"vllm.request.params_n", "vllm.request.prefill_kv_computed_tokens",
}

func TestOnlyListedMetricsAreOffByDefault(t *testing.T) {
	for _, m := range All() {
		if m.EmittedBy == "processor" {
			continue // Their defaults are decided one by one: derived_test.go.
		}
		off := slices.Contains(unread, m.Name) || m.Name == "vllm.healthy" ||
			m.Name == "inference_gateway.epp.inference_request_metric" ||
			m.Name != "process_open_fds" && slices.ContainsFunc(DisabledPrefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) })
		assert.Equal(t, off, !m.In(Standard), m.Name)
	}
	assert.ElementsMatch(t, []string{
		"go_", "process_", "python_",
		"certwatcher_", "controller_runtime_", "leader_election_", "rest_client_", "workqueue_",
		"dynamo_component_cancellation_", "dynamo_component_kv_cache_event", "dynamo_component_request_bytes_", "dynamo_component_response_",
		"dynamo_component_uptime_", "dynamo_engine_", "dynamo_request_plane_",
		"dynamo_component_ckf_", "dynamo_component_router_active_sequence_", "dynamo_component_router_approximate_",
		"dynamo_component_router_kv_zmq_", "dynamo_frontend_detokenize_", "dynamo_tokio_", "dynamo_transport_", "dynamo_work_handler_",
	}, DisabledPrefixes)
}
