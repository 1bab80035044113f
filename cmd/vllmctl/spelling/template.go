package spelling

import (
	"regexp"
	"strings"
)

var (
	action = regexp.MustCompile(`\{\{.*?\}\}`)
	label  = regexp.MustCompile(`\$labels\.([A-Za-z_][A-Za-z0-9_]*)`)
	legend = regexp.MustCompile(`^\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}$`)
)

// Template translates the labels of a template: those of an annotation, {{ $labels.x }},
// and those of a legend, {{x}}.
func Template(text string, to Spelling) string {
	return action.ReplaceAllStringFunc(text, func(part string) string {
		if match := legend.FindStringSubmatch(part); match != nil {
			return "{{" + Label(match[1], to) + "}}"
		}
		return label.ReplaceAllStringFunc(part, func(use string) string {
			name := Label(strings.TrimPrefix(use, "$labels."), to)
			if strings.Contains(name, ".") {
				return `(index $labels "` + name + `")`
			}
			return "$labels." + name
		})
	})
}
