package scrape

import (
	"cmp"
	"net/url"
	"reflect"
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

// switchFields has the field of each attribute of metadata.yaml in the configuration.
var switchFields = func() map[string]int {
	out := map[string]int{}
	config := reflect.TypeFor[metadata.ResourceAttributesConfig]()
	for i := range config.NumField() {
		out[config.Field(i).Tag.Get("mapstructure")] = i
	}
	return out
}()

// on reports whether an attribute of metadata.yaml is switched on.
func (id *targetIdentity) on(name string) bool {
	i, known := switchFields[name]
	return known && reflect.ValueOf(&id.switches).Elem().Field(i).FieldByName("Enabled").Bool()
}

// isSwitched reports whether an attribute from discovery can be switched off.
func isSwitched(name string) bool {
	_, known := switchFields[name]
	return known && (strings.HasPrefix(name, "k8s.") ||
		slices.Contains([]string{discover.PoolAttribute, InstanceAttribute, "service.name"}, name))
}

// resource returns the resource of one run of the server process.
func (id *targetIdentity) resource(version string, info []exposition.Label) pcommon.Resource {
	resource := pcommon.NewResource()
	attributes := resource.Attributes()
	put := func(name, value string) {
		if id.on(name) {
			attributes.PutStr(name, value)
		}
	}
	put("service.name", id.serviceName)
	put(InstanceAttribute, InstanceID(id.address))
	put("server.address", id.address.Hostname())
	if n, err := strconv.ParseInt(port(id.address), 10, 64); err == nil && id.on("server.port") {
		attributes.PutInt("server.port", n)
	}
	put("url.scheme", id.address.Scheme)
	for _, l := range info {
		switch {
		case l.Name == versionAttribute:
			version = cmp.Or(version, l.Value)
		case l.Name == "host.name" && l.Value == id.discovered["k8s.pod.name"]:
			// An exporter that does not know its node names its own pod.
		default:
			put(l.Name, l.Value)
		}
	}
	if version != "" {
		put(versionAttribute, version)
	}
	accelerator := isAccelerator(info)
	for name, value := range id.discovered {
		if accelerator && ofPod(name) {
			continue
		}
		if isSwitched(name) {
			put(name, value)
		} else {
			attributes.PutStr(name, value)
		}
	}
	for name, value := range id.configured {
		// Validate has refused what FromRaw cannot convert.
		_ = attributes.PutEmpty(name).FromRaw(value)
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

// workload returns the resource of a workload that uses GPUs of the exporter.
func (id *targetIdentity) workload(exporter pcommon.Resource, workload []exposition.Label) pcommon.Resource {
	resource := pcommon.NewResource()
	exporter.CopyTo(resource)
	for _, l := range workload {
		if _, configured := id.configured[l.Name]; !configured && id.on(l.Name) {
			resource.Attributes().PutStr(l.Name, l.Value)
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
