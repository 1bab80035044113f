package perses

import (
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

func format(unit string) object {
	switch unit {
	case content.Multiple:
		return object{"unit": "decimal", "decimalPlaces": 1}
	case "s":
		return object{"unit": "seconds"}
	case "1":
		return object{"unit": "percent-decimal"}
	case "By":
		return object{"unit": "bytes", "shortValues": true}
	case "By/s":
		return object{"unit": "bytes/sec", "shortValues": true}
	default:
		return object{"unit": "decimal", "shortValues": true}
	}
}

// axisLabel is the unit in words where Perses has no name for it.
func axisLabel(p content.Panel) string {
	noun, counted := strings.CutPrefix(p.Unit, "{")
	switch {
	case p.Unit == "{state}", p.Unit == "{level}", p.Unit == content.Multiple:
		return ""
	case counted && strings.HasSuffix(noun, "}/s"):
		return plural(strings.TrimSuffix(noun, "}/s")) + "/s"
	case counted:
		return plural(strings.TrimSuffix(noun, "}"))
	case p.Unit == "W", p.Unit == "Hz":
		return p.Unit
	case p.Unit == "Cel":
		return "°C"
	default:
		return ""
	}
}

func plural(noun string) string { return strings.TrimSuffix(noun, "s") + "s" }
