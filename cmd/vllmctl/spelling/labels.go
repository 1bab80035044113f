package spelling

import (
	"strings"
	"sync"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// resourceAttributes are the attributes of resources that content uses as labels. Where
// they are not promoted to labels, content works without them.
var resourceAttributes = []string{
	"inference_gateway.epp.flavor", "inference_gateway.pool.name",
	"k8s.cluster.name", "k8s.container.name", "k8s.deployment.name", "k8s.namespace.name", "k8s.node.name",
	"k8s.pod.name", "k8s.pod.uid", "k8s.statefulset.name",
	"otelcol.component.id", "service.instance.id", "service.name", "service.namespace", "service.version",
	"vllm.server.kind",
}

// dotted has the labels that are not the same in the dotted spelling.
var dotted = sync.OnceValue(func() map[string]string {
	index := map[string]string{}
	add := func(attribute string) {
		if strings.Contains(attribute, ".") {
			index[strings.ReplaceAll(attribute, ".", "_")] = attribute
		}
	}
	for _, attribute := range resourceAttributes {
		add(attribute)
	}
	all := catalog.All()
	for i := range all {
		for _, attribute := range all[i].Attributes {
			add(attribute)
		}
	}
	return index
})

// Label translates the name of a label from the suffixed spelling.
func Label(name string, to Spelling) string {
	if to == Dotted {
		if attribute, ok := dotted()[name]; ok {
			return attribute
		}
	}
	return name
}
