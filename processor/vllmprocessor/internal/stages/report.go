package stages

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// Invalid takes one invalid value of the configuration: its key, and what to write
// instead.
type Invalid func(key, format string, args ...any)

// withoutUnit is the longest time that is a slip: a number without a unit counts
// nanoseconds.
const withoutUnit = 100 * time.Microsecond

// LacksUnit reports whether a duration was written without its unit, and takes it as
// invalid then.
func (invalid Invalid) LacksUnit(key string, d time.Duration) bool {
	if d <= 0 || d > withoutUnit {
		return false
	}
	invalid(key, "%d has no unit; write %ds", d, d)
	return true
}

// Spell writes a duration without the zeros at its end: 1h, not 1h0m0s.
func Spell(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ServerFields are the log fields that name a server: its name and its pod, or all
// attributes of its resource where it has no name.
func ServerFields(resource pcommon.Map) []zap.Field {
	var fields []zap.Field
	for _, name := range []string{"service.name", "service.instance.id", "k8s.namespace.name", "k8s.pod.name"} {
		if value, has := resource.Get(name); has {
			fields = append(fields, zap.String(name, Cut(value.AsString())))
		}
	}
	if instance, named := resource.Get("service.instance.id"); named && instance.AsString() != "" {
		return fields
	}
	var all []string
	for name, value := range resource.All() {
		all = append(all, Cut(name)+"="+Cut(value.AsString()))
	}
	slices.Sort(all)
	if more := len(all) - maxNamed; more > 0 {
		all = append(all[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return []zap.Field{zap.String("resource", strings.Join(all, " "))}
}

const (
	// maxShown bounds a name or value of a sender in a log line, in bytes.
	maxShown = 200
	// maxNamed bounds the attributes in a log line of a server without a name.
	maxNamed = 20
)

// Named is the first of some attributes that a resource has, fit for a log line; empty without any.
func Named(resource pcommon.Map, names ...string) string {
	for _, name := range names {
		if value, has := resource.Get(name); has && value.AsString() != "" {
			return Cut(value.AsString())
		}
	}
	return ""
}

// Cut makes a text of a sender fit for a log line.
func Cut(text string) string { return wording.Cut(text, maxShown) }
