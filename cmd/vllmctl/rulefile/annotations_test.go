package rulefile_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// rendered expands an annotation as Prometheus does. Each of its queries is one that the spelling has, and it
// finds the given samples.
func rendered(t *testing.T, text string, to spelling.Spelling, labels map[string]string, found promql.Vector) string {
	t.Helper()
	// The same definitions as in Prometheus's rules package.
	const defs = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
	data := template.AlertTemplateData(labels, nil, "", promql.Sample{F: 0.25})
	answer := func(_ context.Context, query string, _ time.Time) (promql.Vector, error) {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(query)
		require.NoError(t, err, query)
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			if s, is := node.(*parser.VectorSelector); is {
				assert.Contains(t, stored(to), nameOf(s), query)
			}
			return nil
		})
		return found, nil
	}
	out, err := template.NewTemplateExpander(t.Context(), defs+text, "alert", data, model.Now(), answer, &url.URL{}, nil).Expand()
	require.NoError(t, err, text)
	return out
}

func nameOf(s *parser.VectorSelector) string {
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			return m.Value
		}
	}
	return s.Name
}

// stored are the names of all series in a spelling.
var stored = func(to spelling.Spelling) map[string]bool {
	names := map[string]bool{"ALERTS_FOR_STATE": true, "vllm_slo:error_ratio_lower:rate5m": true}
	all := catalog.All()
	for i := range all {
		if name, err := spelling.Name(&all[i], to); err == nil {
			names[name] = true
		}
	}
	return names
}

// At night somebody reads these on a telephone. They are whole sentences whatever labels there are: without
// Kubernetes, without a model, and in the dotted spelling.
func TestAnnotationsAreReadableWhateverLabelsThereAre(t *testing.T) {
	all := map[string]string{
		"k8s_cluster_name": "prod", "k8s_namespace_name": "chat", "k8s_pod_name": "chat-0", "job": "vllm", "instance": "10.0.0.1:8000", "engine": "0",
		"model_name": "llama", "objective": "ttft", "pool": "chat-pool", "adapter_name": "sql", "exporter": "otlp_http", "hw_name": "gpu0",
	}
	allLabels := labels.FromStrings("condition", "stalled", "cause", "slow_steps", "detail", "thermal", "instance", "10.0.0.1:8000")
	// These identify what an alert is about, so they are always there.
	needed := []string{"job", "instance", "objective", "pool", "adapter_name", "exporter", "hw_name"}
	for _, to := range []spelling.Spelling{spelling.Suffixed, spelling.Dotted, spelling.Wire} {
		full, bare := map[string]string{}, map[string]string{}
		for name, v := range all {
			full[spelling.Label(name, to)] = v
		}
		for _, name := range needed {
			bare[spelling.Label(name, to)] = all[name]
		}
		groups, err := rulefile.Groups(content.Groups(), to)
		require.NoError(t, err)
		for _, g := range groups {
			for _, r := range g.Rules {
				for name, text := range r.Annotations {
					if name == "runbook_url" {
						continue
					}
					for i, labels := range []map[string]string{full, bare, full} {
						var found promql.Vector
						if i == 2 {
							found = promql.Vector{{Metric: allLabels, F: 5}}
						}
						line := rendered(t, text, to, labels, found)
						t.Log(r.Alert, name, line)
						for _, wrong := range []string{"  ", " ,", " .", "<no value>", "{{", "of does", "for fail", "for wait", "for take", "for end", "of is", "of serves"} {
							assert.NotContains(t, line, wrong, "%s %s", r.Alert, name)
						}
						assert.Equal(t, strings.TrimSpace(line), line, r.Alert)
						for one := range strings.Lines(line) {
							assert.LessOrEqual(t, len(one), 240, line)
						}
					}
					if name == "summary" && to != spelling.Wire && !strings.Contains(r.Expr, "otelcol_exporter_") && r.Alert != "VLLMTooFewServers" {
						assert.Contains(t, rendered(t, text, to, full, nil), "prod", "%s names the cluster: %s", r.Alert, text)
					}
				}
			}
		}
	}
}
