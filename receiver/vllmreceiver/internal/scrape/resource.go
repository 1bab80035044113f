package scrape

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// targetIdentity identifies a target in its resource.
type targetIdentity struct {
	serviceName string
	address     *url.URL
	// configured are the target's own resource attributes. They override all others.
	configured map[string]any
	// discovered are the attributes from discovery. Those in metadata.yaml can be
	// switched off.
	discovered map[string]string
	switches   metadata.ResourceAttributesConfig
}

// versionAttribute is also read from the info family of a gateway, which does not answer
// /version. The first value in the plan is used.
const versionAttribute = "service.version"

// infoSetters set the resource attributes from info families, by their names in the
// catalogue.
var infoSetters = map[string]func(*metadata.ResourceBuilder, string){
	"host.name":                                  (*metadata.ResourceBuilder).SetHostName,
	"hw.driver_version":                          (*metadata.ResourceBuilder).SetHwDriverVersion,
	normalize.AttributeExporter:                  (*metadata.ResourceBuilder).SetVllmAcceleratorExporter,
	normalize.AttributeFlavor:                    (*metadata.ResourceBuilder).SetInferenceGatewayEppFlavor,
	normalize.AttributeKind:                      (*metadata.ResourceBuilder).SetVllmServerKind,
	"vllm.cache_config.cache_dtype":              (*metadata.ResourceBuilder).SetVllmCacheConfigCacheDtype,
	"vllm.cache_config.cpu_offload_gb":           (*metadata.ResourceBuilder).SetVllmCacheConfigCPUOffloadGb,
	"vllm.cache_config.enable_prefix_caching":    (*metadata.ResourceBuilder).SetVllmCacheConfigEnablePrefixCaching,
	"vllm.cache_config.gpu_memory_utilization":   (*metadata.ResourceBuilder).SetVllmCacheConfigGpuMemoryUtilization,
	"vllm.cache_config.kv_cache_memory_bytes":    (*metadata.ResourceBuilder).SetVllmCacheConfigKvCacheMemoryBytes,
	"vllm.cache_config.kv_offloading_backend":    (*metadata.ResourceBuilder).SetVllmCacheConfigKvOffloadingBackend,
	"vllm.cache_config.kv_offloading_size":       (*metadata.ResourceBuilder).SetVllmCacheConfigKvOffloadingSize,
	"vllm.cache_config.mamba_cache_mode":         (*metadata.ResourceBuilder).SetVllmCacheConfigMambaCacheMode,
	"vllm.cache_config.prefix_caching_hash_algo": (*metadata.ResourceBuilder).SetVllmCacheConfigPrefixCachingHashAlgo,
	"vllm.cache_config.sliding_window":           (*metadata.ResourceBuilder).SetVllmCacheConfigSlidingWindow,
	"vllm.cache_config.swap_space_bytes":         (*metadata.ResourceBuilder).SetVllmCacheConfigSwapSpaceBytes,
	"vllm.simple_kv_offload.backend":             (*metadata.ResourceBuilder).SetVllmSimpleKvOffloadBackend,
	"vllm.simple_kv_offload.lazy_offload":        (*metadata.ResourceBuilder).SetVllmSimpleKvOffloadLazyOffload,
	"vllm.simple_kv_offload.page_cache":          (*metadata.ResourceBuilder).SetVllmSimpleKvOffloadPageCache,
}

// discoverySetters set the resource attributes from discovery that can be switched off.
var discoverySetters = map[string]func(*metadata.ResourceBuilder, string){
	discover.PoolAttribute: (*metadata.ResourceBuilder).SetInferenceGatewayPoolName,
	"k8s.container.name":   (*metadata.ResourceBuilder).SetK8sContainerName,
	"k8s.cronjob.name":     (*metadata.ResourceBuilder).SetK8sCronjobName,
	"k8s.daemonset.name":   (*metadata.ResourceBuilder).SetK8sDaemonsetName,
	"k8s.deployment.name":  (*metadata.ResourceBuilder).SetK8sDeploymentName,
	"k8s.job.name":         (*metadata.ResourceBuilder).SetK8sJobName,
	"k8s.namespace.name":   (*metadata.ResourceBuilder).SetK8sNamespaceName,
	"k8s.node.name":        (*metadata.ResourceBuilder).SetK8sNodeName,
	"k8s.pod.name":         (*metadata.ResourceBuilder).SetK8sPodName,
	"k8s.pod.uid":          (*metadata.ResourceBuilder).SetK8sPodUID,
	"k8s.replicaset.name":  (*metadata.ResourceBuilder).SetK8sReplicasetName,
	"k8s.statefulset.name": (*metadata.ResourceBuilder).SetK8sStatefulsetName,
	"service.instance.id":  (*metadata.ResourceBuilder).SetServiceInstanceID,
	"service.name":         (*metadata.ResourceBuilder).SetServiceName,
}

// resource returns the resource of one run of the server process.
func (id *targetIdentity) resource(version string, info []exposition.Label) pcommon.Resource {
	rb := metadata.NewResourceBuilder(id.switches)
	rb.SetServiceName(id.serviceName)
	rb.SetServiceInstanceID(InstanceID(id.address))
	rb.SetServerAddress(id.address.Hostname())
	if n, err := strconv.ParseInt(port(id.address), 10, 64); err == nil {
		rb.SetServerPort(n)
	}
	rb.SetURLScheme(id.address.Scheme)
	for _, l := range info {
		if l.Name == versionAttribute && version == "" {
			version = l.Value
		}
		if l.Name == "host.name" && l.Value == id.discovered["k8s.pod.name"] {
			// An exporter that does not know its node names its own pod.
			continue
		}
		if set, ok := infoSetters[l.Name]; ok {
			set(rb, l.Value)
		}
	}
	if version != "" {
		rb.SetServiceVersion(version)
	}
	rest := map[string]string{}
	accelerator := isAccelerator(info)
	for name, value := range id.discovered {
		if accelerator && ofPod(name) {
			continue
		}
		if set, ok := discoverySetters[name]; ok {
			set(rb, value)
		} else {
			rest[name] = value
		}
	}
	resource := rb.Emit()
	for name, value := range rest {
		resource.Attributes().PutStr(name, value)
	}
	for name, value := range id.configured {
		// Validate has refused what FromRaw cannot convert.
		_ = resource.Attributes().PutEmpty(name).FromRaw(value)
	}
	return resource
}

// isAccelerator reports whether the attributes from a body are those of an exporter of GPUs.
func isAccelerator(info []exposition.Label) bool {
	return slices.Contains(info, exposition.Label{Name: normalize.AttributeKind, Value: string(normalize.KindAccelerator)})
}

// ofPod reports whether an attribute from discovery is about the pod. For an exporter of
// GPUs this is not the pod that uses them.
func ofPod(name string) bool {
	return strings.HasPrefix(name, "k8s.") && name != "k8s.node.name" && name != "k8s.cluster.name"
}

// workloadSetters set the resource attributes of a workload that uses GPUs.
var workloadSetters = map[string]func(*metadata.ResourceBuilder, string){
	"k8s.container.name": (*metadata.ResourceBuilder).SetK8sContainerName,
	"k8s.namespace.name": (*metadata.ResourceBuilder).SetK8sNamespaceName,
	"k8s.pod.name":       (*metadata.ResourceBuilder).SetK8sPodName,
	"k8s.pod.uid":        (*metadata.ResourceBuilder).SetK8sPodUID,
}

// workload returns the resource of a workload that uses GPUs of the exporter.
func (id *targetIdentity) workload(exporter pcommon.Resource, workload []exposition.Label) pcommon.Resource {
	rb := metadata.NewResourceBuilder(id.switches)
	for _, l := range workload {
		if set, ok := workloadSetters[l.Name]; ok {
			set(rb, l.Value)
		}
	}
	resource := pcommon.NewResource()
	exporter.CopyTo(resource)
	for name, value := range rb.Emit().Attributes().All() {
		if _, configured := id.configured[name]; !configured {
			value.CopyTo(resource.Attributes().PutEmpty(name))
		}
	}
	return resource
}

// InstanceAttribute names a target for what follows: two with one name would count as one server,
// with rates between the counters of both.
const InstanceAttribute = "service.instance.id"

// KeyOf returns the identity that a target has for the processor and the connector. The case of
// its host does not count.
func KeyOf(cfg *Config, address *url.URL, configured map[string]any, discovered map[string]string) string {
	lower := *address
	lower.Host = strings.ToLower(lower.Host)
	id := targetIdentity{
		serviceName: cfg.ServiceName, address: &lower, configured: configured, discovered: discovered, switches: cfg.ResourceAttributes,
	}
	return identity.Of(id.resource("", nil).Attributes())
}
