package stages

import (
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

const (
	// maxAddress bounds the address of a setting in bytes.
	maxAddress = 500
	// before is how long before a change its board begins, to show what was usual.
	before = 30 * time.Minute
)

// checkAddress reports an address that no page can be below.
func checkAddress(invalid Invalid, key, address, example string) {
	// The error of url.Parse would repeat the address with its secrets.
	switch parsed, err := url.Parse(address); {
	case len(address) > maxAddress:
		invalid(key, "has more than %d bytes; write for example %s", maxAddress, example)
	case err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https":
		invalid(key, "is not the address of a page; write for example %s", example)
	case parsed.User != nil:
		invalid(key, "has credentials, which would appear in each log line; remove them")
	case parsed.RawQuery != "" || parsed.Fragment != "" || parsed.ForceQuery:
		invalid(key, "has something after its path; write for example %s", example)
	}
}

// variables are those of the boards of engines and pools that are set, by the attribute that their labels are
// made from.
var variables = []struct{ name, attribute string }{
	{"cluster", "k8s.cluster.name"}, {"namespace", "k8s.namespace.name"}, {"pod", "k8s.pod.name"}, {"instance", "service.instance.id"}, {"model", "model_name"},
}

// board is the address of the dashboard about a change with the values of its variables; empty without the setting.
func (l *changeLog) board(t *diagnose.Transition, resource pcommon.Map) string {
	if l.boards == "" {
		return ""
	}
	page := "vllm-engine"
	if t.Pool {
		page, resource = "vllm-pool", pcommon.NewMap() // That of the collector.
	}
	var b strings.Builder
	b.WriteString(strings.TrimSuffix(l.boards, "/") + "/d/" + page)
	b.WriteString("?from=" + strconv.FormatInt(time.Unix(0, t.Since).Add(-before).UnixMilli(), 10) + "&to=now")
	for _, v := range variables {
		value := (&input.Group{Attributes: t.Attributes}).Value(v.attribute)
		if known, has := resource.Get(v.attribute); value == "" && has {
			value = known.Str()
		}
		// A name that is too long shows too much, a part of it shows nothing.
		if value = url.QueryEscape(value); value != "" && len(value) <= maxShown {
			b.WriteString("&var-" + v.name + "=" + value)
		}
	}
	return b.String()
}
