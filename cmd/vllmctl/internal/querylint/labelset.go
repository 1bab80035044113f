package querylint

import (
	"maps"
	"slices"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// labelSet are the labels that series can have. An open set can have any.
type labelSet struct {
	closed bool
	// own are the labels of the metric: attributes, le. Labels of targets and resources are
	// not among them; deployment is true if the series can have those.
	own        map[string]bool
	deployment bool
	// gone are labels that an aggregation or a match has removed.
	gone map[string]bool
}

func closedSet(own ...string) labelSet {
	set := labelSet{closed: true, own: map[string]bool{}, gone: map[string]bool{}}
	for _, name := range own {
		set.own[name] = true
	}
	return set
}

// has reports whether series can have the label.
func (s labelSet) has(label string, deployment map[string]bool) bool {
	return !s.closed || s.own[label] || s.deployment && deployment[label] && !s.gone[label]
}

func (s labelSet) with(labels ...string) labelSet {
	s.own = maps.Clone(s.own)
	if s.own == nil {
		s.own = map[string]bool{}
	}
	for _, label := range labels {
		s.own[label] = true
	}
	return s
}

func (s labelSet) without(labels ...string) labelSet {
	s.own, s.gone = maps.Clone(s.own), maps.Clone(s.gone)
	if s.gone == nil {
		s.gone = map[string]bool{}
	}
	for _, label := range labels {
		delete(s.own, label)
		s.gone[label] = true
	}
	return s
}

// only returns the labels of the list that the series can have; an open set becomes closed.
func (s labelSet) only(labels []string, deployment map[string]bool) labelSet {
	kept := closedSet()
	for label := range s.own {
		kept.gone[label] = true
	}
	for label := range deployment {
		if s.deployment {
			kept.gone[label] = true
		}
	}
	maps.Copy(kept.gone, s.gone)
	for _, label := range labels {
		if s.has(label, deployment) {
			kept.own[label] = true
			delete(kept.gone, label)
		}
	}
	return kept
}

func (s labelSet) union(t labelSet) labelSet {
	u := labelSet{closed: s.closed && t.closed, deployment: s.deployment || t.deployment, own: maps.Clone(s.own), gone: map[string]bool{}}
	if u.own == nil {
		u.own = map[string]bool{}
	}
	maps.Copy(u.own, t.own)
	for label := range s.gone {
		if t.gone[label] {
			u.gone[label] = true
		}
	}
	return u
}

// list returns the own labels for a sentence.
func (s labelSet) list() []string { return slices.Sorted(maps.Keys(s.own)) }

// resourceAttributes are those that the receiver and the processor set, and those that
// programs in front of them usually add.
var resourceAttributes = []string{
	"cloud.account.id", "cloud.availability_zone", "cloud.platform", "cloud.provider", "cloud.region",
	"container.id", "container.image.name", "container.image.tag", "container.name",
	"deployment.environment", "deployment.environment.name",
	"host.id", "host.name", "host.type", "hw.driver_version",
	"inference_gateway.epp.flavor", "inference_gateway.pool.name",
	"k8s.cluster.name", "k8s.cluster.uid", "k8s.container.name", "k8s.cronjob.name", "k8s.daemonset.name", "k8s.deployment.name", "k8s.job.name",
	"k8s.namespace.name", "k8s.node.name", "k8s.pod.ip", "k8s.pod.name", "k8s.pod.uid", "k8s.replicaset.name",
	"k8s.statefulset.name", "server.address", "server.port",
	"service.instance.id", "service.name", "service.namespace", "service.version", "url.scheme",
	"vllm.accelerator.exporter", "vllm.cache_config.cache_dtype", "vllm.cache_config.cpu_offload_gb",
	"vllm.cache_config.enable_prefix_caching", "vllm.cache_config.gpu_memory_utilization",
	"vllm.cache_config.kv_cache_memory_bytes", "vllm.cache_config.kv_offloading_backend",
	"vllm.cache_config.kv_offloading_size", "vllm.cache_config.mamba_cache_mode",
	"vllm.cache_config.prefix_caching_hash_algo", "vllm.cache_config.sliding_window",
	"vllm.cache_config.swap_space_bytes", "vllm.server.kind", "vllm.simple_kv_offload.backend",
	"vllm.simple_kv_offload.lazy_offload", "vllm.simple_kv_offload.page_cache",
}

// targetLabels are labels of targets that operators of Prometheus usually have.
var targetLabels = []string{
	"job", "instance", "cluster", "container", "endpoint", "env", "environment", "datacenter", "namespace", "node", "pod", "prometheus",
	"prometheus_replica", "receive", "region", "replica", "service", "team", "tenant_id", "zone",
	"otel_scope_name", "otel_scope_version", "otel_scope_schema_url",
	"exported_job", "exported_instance", "exported_namespace", "exported_pod", "exported_container", "exported_service", "exported_endpoint",
}

// identifying are the labels that name one target.
var identifying = []string{"job", "instance"}

var labelsOfSpelling = sync.OnceValue(func() map[Spelling]map[string]bool {
	all := map[Spelling]map[string]bool{}
	for _, spelling := range []Spelling{Suffixed, Unsuffixed, Dotted, Wire} {
		set := map[string]bool{"__name__": true}
		for _, attribute := range resourceAttributes {
			set[spelling.label(attribute)] = true
			// Grafana and Datadog users promote with underscores in any spelling.
			set[Suffixed.label(attribute)] = true
		}
		for _, label := range targetLabels {
			set[label] = true
		}
		all[spelling] = set
	}
	return all
})

func deploymentLabels(s Spelling) map[string]bool {
	if set, known := labelsOfSpelling()[s]; known {
		return maps.Clone(set)
	}
	return maps.Clone(labelsOfSpelling()[Suffixed])
}

// attributesOf returns the labels of a metric in a spelling.
func attributesOf(m *catalog.Metric, s Spelling, source *catalog.Source) []string {
	var all []string
	for _, attribute := range m.Attributes {
		all = append(all, s.label(attribute))
	}
	if s != Wire {
		return all
	}
	// The labels of gateways have other names on the wire.
	for wire, attribute := range catalog.Gateway.Labels {
		if slices.Contains(m.Attributes, attribute) {
			all = append(all, wire)
		}
	}
	if source != nil && slices.Contains(repeated, source.Family) {
		all = append(all, catalog.Router.Label)
	}
	if source != nil && infoFamily(source.Family) {
		for _, family := range catalog.InfoFamilies {
			if family.Family != source.Family {
				continue
			}
			for _, n := range family.Numbers {
				all = append(all, n.Label)
			}
			for _, l := range family.Lists {
				all = append(all, l.Label)
			}
			for _, r := range family.Resource {
				all = append(all, r.Label)
			}
		}
		// Neither of them has model_name, and only some have the number of the engine.
		all = slices.DeleteFunc(all, func(label string) bool {
			return label == "model_name" || label == "engine" && source.Family == loraFamily
		})
		if source.Family != loraFamily {
			all = append(all, "engine")
		}
		return append(all, rayLabels...)
	}
	// Ray adds labels of its own.
	return append(all, rayLabels...)
}

var rayLabels = []string{"WorkerId", "ReplicaId", "SessionName", "NodeAddress", "Component", "Version", "deployment", "application", "is_driver", "pid"}

// loraFamily is the family of LoRA adapters. Its value is the time of the last change.
const loraFamily = "vllm:lora_requests_info"
