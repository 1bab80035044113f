package rulefile

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/content/spelling"
)

// prometheusRule is the resource of the Prometheus operator.
type prometheusRule struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
	Spec       ruleFile `yaml:"spec"`
}

type metadata struct {
	Name   string            `yaml:"name"`
	Labels map[string]string `yaml:"labels"`
}

// KubernetesFiles returns the rules as resources of the Prometheus operator.
func KubernetesFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	for set, name := range map[string]string{content.Stable: "vllm", content.Wire: "vllm-raw"} {
		groups, err := Groups(content.Groups(), set, spelling.Suffixed)
		if err != nil {
			return nil, err
		}
		files["content/kubernetes/"+name+"-rules.yaml"], err = document(prometheusRule{
			APIVersion: "monitoring.coreos.com/v1", Kind: "PrometheusRule",
			Metadata: metadata{Name: name, Labels: map[string]string{"app.kubernetes.io/name": "otelcol-vllm", "app.kubernetes.io/component": "rules"}},
			Spec:     ruleFile{Groups: groups},
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}
