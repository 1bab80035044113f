package rulefile

// operatorFolder lets kustomize take the rules for our names into the manifests of a user.
const operatorFolder = generatedBy + `# The rules as a PrometheusRule, for kustomize:
#
#   kubectl apply --namespace monitoring -k content/kubernetes
#
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - vllm-rules.yaml
`

// configMaps lets kustomize make ConfigMaps of the rules and of the dashboards, for clusters
// without the operator.
const configMaps = generatedBy + `# The rules and the dashboards as ConfigMaps, in the spelling of most backends:
#
#   kubectl apply --namespace monitoring -k content
#
# A Prometheus reads the rules from a mount of the ConfigMap vllm-rules.
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - grafana/suffixed
generatorOptions:
  disableNameSuffixHash: true
  labels:
    app.kubernetes.io/name: otelcol-vllm
    app.kubernetes.io/component: rules
configMapGenerator:
  - name: vllm-rules
    files: [rules/suffixed/vllm.yaml]
`

// KustomizeFiles returns what kustomize needs to take the PrometheusRule, and to make
// ConfigMaps of rules and dashboards.
func KustomizeFiles() (map[string][]byte, error) {
	return map[string][]byte{
		"content/kustomization.yaml":            []byte(configMaps),
		"content/kubernetes/kustomization.yaml": []byte(operatorFolder),
	}, nil
}
