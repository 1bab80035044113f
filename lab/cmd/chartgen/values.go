package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// documented writes the table of values into the page of a chart. What a value means is the
// comment above it in values.yaml.
func documented(page, values []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(values, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("values.yaml is not a map")
	}
	var table strings.Builder
	table.WriteString("\n| Value | Default | What it is |\n|---|---|---|\n")
	if err := rows(&table, "", document.Content[0]); err != nil {
		return nil, err
	}
	table.WriteString("\n")
	return pageparts.Replace(page, map[string]string{"values": table.String()})
}

// rows writes a row for each value. A map whose keys have comments has no row of its own.
func rows(table *strings.Builder, prefix string, values *yaml.Node) error {
	for i := 0; i+1 < len(values.Content); i += 2 {
		key, value := values.Content[i], values.Content[i+1]
		name := prefix + key.Value
		if key.HeadComment == "" {
			return fmt.Errorf("the value %s has no comment", name)
		}
		if commented(value) {
			if err := rows(table, name+".", value); err != nil {
				return err
			}
			continue
		}
		fallback := ""
		if value.Kind != yaml.ScalarNode || value.Value != "" {
			value.Style = yaml.FlowStyle
			text, err := yaml.Marshal(value)
			if err != nil {
				return err
			}
			fallback = "`" + strings.TrimSpace(string(text)) + "`"
		}
		fmt.Fprintf(table, "| `%s` | %s | %s |\n", name, fallback, pageparts.Cell(meaning(key.HeadComment)))
	}
	return nil
}

// commented reports whether the keys of a map are values of their own.
func commented(value *yaml.Node) bool {
	return value.Kind == yaml.MappingNode &&
		slices.ContainsFunc(value.Content, func(node *yaml.Node) bool { return node.HeadComment != "" })
}

// meaning is a comment as text. An example of YAML in it, whose lines begin with "- ", becomes
// code.
func meaning(comment string) string {
	var words, code []string
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		if strings.HasPrefix(line, "- ") || len(code) > 0 {
			code = append(code, strings.TrimPrefix(line, "- "))
			continue
		}
		words = append(words, line)
	}
	text := strings.Join(words, " ")
	if len(code) > 0 {
		text += " `" + strings.Join(code, "`, `") + "`"
	}
	return text
}
