package perses

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/content"
)

func format(p content.Panel) object {
	if p.Unit == "1" && p.Factor {
		return object{"unit": "decimal"}
	}
	switch p.Unit {
	case "s":
		return object{"unit": "seconds"}
	case "ms":
		return object{"unit": "milliseconds"}
	case "1":
		return object{"unit": "percent-decimal"}
	case "By":
		return object{"unit": "bytes", "shortValues": true}
	case "By/s":
		return object{"unit": "bytes/sec", "shortValues": true}
	case "{request}/s":
		return object{"unit": "requests/sec"}
	default:
		return object{"unit": "decimal", "shortValues": true}
	}
}

// axisLabel is the unit in words where Perses has no name for it.
func axisLabel(p content.Panel) string {
	noun, counted := strings.CutPrefix(p.Unit, "{")
	switch {
	case p.Unit == "{request}/s", p.Unit == "{state}", p.Unit == "{level}":
		return ""
	case counted && strings.HasSuffix(noun, "}/s"):
		return strings.TrimSuffix(noun, "}/s") + "s/s"
	case counted:
		return strings.TrimSuffix(noun, "}") + "s"
	case p.Unit == "W", p.Unit == "Hz":
		return p.Unit
	case p.Unit == "Cel":
		return "°C"
	default:
		return ""
	}
}
