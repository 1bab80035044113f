package rulefile_test

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// rendered expands an annotation as Prometheus does.
func rendered(t *testing.T, text string, labels map[string]string) string {
	t.Helper()
	// The same definitions as in Prometheus's rules package.
	const defs = "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}{{$externalURL := .ExternalURL}}{{$value := .Value}}"
	data := template.AlertTemplateData(labels, nil, "", promql.Sample{F: 0.25})
	none := func(context.Context, string, time.Time) (promql.Vector, error) { return nil, nil }
	out, err := template.NewTemplateExpander(t.Context(), defs+text, "alert", data, model.Now(), none, &url.URL{}, nil).Expand()
	require.NoError(t, err, text)
	return out
}

// At night somebody reads these on a telephone. They are whole sentences whatever labels there are: without
// Kubernetes, without a model, and in the dotted spelling.
func TestAnnotationsAreReadableWhateverLabelsThereAre(t *testing.T) {
	all := map[string]string{
		"k8s_cluster_name": "prod", "k8s_namespace_name": "chat", "k8s_pod_name": "chat-0", "job": "vllm", "instance": "10.0.0.1:8000", "engine": "0",
		"model_name": "llama", "objective": "ttft", "pool": "chat-pool", "adapter_name": "sql", "exporter": "otlp_http", "hw_name": "gpu0",
	}
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
					for _, labels := range []map[string]string{full, bare} {
						line := rendered(t, text, labels)
						t.Log(r.Alert, name, line)
						for _, wrong := range []string{"  ", " ,", " .", "<no value>", "{{", "of does", "for fail", "for wait", "for take", "for end", "of is", "of serves"} {
							assert.NotContains(t, line, wrong, "%s %s", r.Alert, name)
						}
						assert.Equal(t, strings.TrimSpace(line), line, r.Alert)
						assert.LessOrEqual(t, len(line), 240, line)
					}
					if name == "summary" && to != spelling.Wire && !strings.Contains(r.Expr, "otelcol_") && r.Alert != "VLLMTooFewServers" {
						assert.Contains(t, rendered(t, text, full), "prod", "%s names the cluster: %s", r.Alert, text)
					}
				}
			}
		}
	}
}
