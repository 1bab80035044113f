// Package identity tells resources apart.
package identity

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Of is the key of a resource: service.name, service.instance.id and k8s.pod.uid
// where an instance is named, because other attributes can arrive late or change
// while the server lives; else all attributes but those of a diagnosis, which
// change by design.
func Of(attributes pcommon.Map) string {
	var b strings.Builder
	if instance, named := attributes.Get("service.instance.id"); named && instance.AsString() != "" {
		for _, name := range []string{"service.name", "service.instance.id", "k8s.pod.uid"} {
			if value, ok := attributes.Get(name); ok {
				b.WriteString(value.AsString())
			}
			b.WriteByte(0)
		}
		return b.String()
	}
	names := make([]string, 0, attributes.Len())
	for name := range attributes.All() {
		if !Diagnosis(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	b.WriteByte(1)
	for _, name := range names {
		value, _ := attributes.Get(name)
		b.WriteString(name)
		b.WriteByte(0)
		b.WriteString(value.AsString())
		b.WriteByte(0)
	}
	return b.String()
}

// Diagnosis tells whether an attribute of a resource says how a server is, not
// which it is: the processor writes such with diagnosis::attributes::on: resource.
func Diagnosis(name string) bool { return strings.HasPrefix(name, "vllm.diagnosis.") }
