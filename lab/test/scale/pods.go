package scale

import (
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
)

// applyPods makes the pods of the engines known to the API server.
func applyPods(api *kubeapi.Server, engines []engine) {
	for i := range engines {
		e := &engines[i]
		labels := map[string]string{"app.kubernetes.io/component": "inference"}
		if e.pool != "" {
			labels["app.kubernetes.io/model"] = e.pool
		}
		api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: namespace, Name: e.pod, Node: "node-" + strconv.Itoa(i/8), IP: e.ip, Labels: labels,
			Containers: []kubeapi.Container{{Name: "inference"}},
		}.Object())
	}
}
