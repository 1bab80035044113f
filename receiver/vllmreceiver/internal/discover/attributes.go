package discover

import (
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
)

const metaPrefix = model.MetaLabelPrefix + "kubernetes_"

// PoolAttribute names the InferencePool that a server belongs to.
const PoolAttribute = "inference_gateway.pool.name"

const containerAttribute = "k8s.container.name"

// kubernetesAttributes maps the labels of Prometheus's Kubernetes discovery to the
// resource attributes of OpenTelemetry. The first label that is set is used.
var kubernetesAttributes = []struct{ label, attribute string }{
	{"namespace", "k8s.namespace.name"},
	{"pod_name", "k8s.pod.name"},
	{"pod_uid", "k8s.pod.uid"},
	{"pod_container_name", containerAttribute},
	{"pod_node_name", "k8s.node.name"},
	{"endpointslice_endpoint_topology_kubernetes_io_hostname", "k8s.node.name"},
	{"node_name", "k8s.node.name"},
	{"pod_deployment_name", "k8s.deployment.name"},
	{"pod_job_name", "k8s.job.name"},
	{"pod_cronjob_name", "k8s.cronjob.name"},
}

// controllers are the attributes for the owner of a pod, by kind.
var controllers = map[string]string{
	"ReplicaSet":  "k8s.replicaset.name",
	"StatefulSet": "k8s.statefulset.name",
	"DaemonSet":   "k8s.daemonset.name",
	"Job":         "k8s.job.name",
}

// attributesOf returns the resource attributes of a target: its Kubernetes labels under
// OpenTelemetry's names, and the labels that relabelling has left under their own.
func attributesOf(all labels.Labels) map[string]string {
	out := map[string]string{}
	for _, a := range kubernetesAttributes {
		if value := all.Get(metaPrefix + a.label); value != "" && out[a.attribute] == "" {
			out[a.attribute] = value
		}
	}
	kind, name := all.Get(metaPrefix+"pod_controller_kind"), all.Get(metaPrefix+"pod_controller_name")
	if attribute, ok := controllers[kind]; ok && name != "" {
		out[attribute] = name
	}
	if deployment := deploymentOf(kind, name, all); deployment != "" && out["k8s.deployment.name"] == "" {
		out["k8s.deployment.name"] = deployment
	}
	all.Range(func(l labels.Label) {
		switch {
		case strings.HasPrefix(l.Name, model.ReservedLabelPrefix) || l.Value == "":
		case l.Name == model.InstanceLabel:
			out["service.instance.id"] = l.Value
		case l.Name == model.JobLabel:
			out["service.name"] = l.Value
		default:
			out[l.Name] = l.Value
		}
	})
	return out
}

// deploymentOf returns the Deployment that owns a ReplicaSet. The name of the ReplicaSet
// is that of the Deployment and a hash, which is also a label of the pods. A ReplicaSet
// without this hash has no Deployment.
func deploymentOf(kind, name string, all labels.Labels) string {
	hash := all.Get(metaPrefix + "pod_label_pod_template_hash")
	if deployment, ok := strings.CutSuffix(name, "-"+hash); ok && kind == "ReplicaSet" && hash != "" {
		return deployment
	}
	return ""
}
