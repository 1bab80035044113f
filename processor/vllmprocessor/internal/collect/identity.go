package collect

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Identity is the key of a resource: service.name, service.instance.id and
// k8s.pod.uid where an instance is named, because other attributes can arrive
// late or change while the server lives; else all attributes.
func Identity(attributes pcommon.Map) string {
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
		names = append(names, name)
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
