package rulefile

import (
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// resource is what the Prometheus operator reads.
type resource struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       ruleFile `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// prometheusRule writes the rules as a resource of the Prometheus operator.
func prometheusRule(to spelling.Spelling) ([]byte, error) {
	groups, err := Groups(content.Groups(), to)
	if err != nil {
		return nil, err
	}
	return document(resource{
		APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule",
		Metadata: metadata{Name: "vllm" + raw(to), Labels: map[string]string{"app.kubernetes.io/name": "otelcol-vllm", "app.kubernetes.io/component": "rules"}},
		Spec:     ruleFile{Groups: groups},
	})
}
