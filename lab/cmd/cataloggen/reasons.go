package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// withReasons are the components whose metadata.yaml says what each reason of their own metrics means.
var withReasons = []string{"processor/vllmprocessor", "connector/vllmdiagnosisconnector"}

// reasonParts are the tables of reasons in the README of a component. Each attribute with a list of
// values and with lines "<br> `value`: meaning" in its description gives the part of its name.
func reasonParts(root, component string) (map[string]string, error) {
	content, err := os.ReadFile(filepath.Join(root, component, "metadata.yaml"))
	if err != nil {
		return nil, err
	}
	var own struct {
		Attributes map[string]attribute `yaml:"attributes"`
		Telemetry  struct {
			Metrics map[string]struct {
				Attributes []string `yaml:"attributes"`
			} `yaml:"metrics"`
		} `yaml:"telemetry"`
	}
	if err := yaml.Unmarshal(content, &own); err != nil {
		return nil, fmt.Errorf("%s/metadata.yaml: %w", component, err)
	}
	parts := map[string]string{}
	for _, metric := range sortedNames(own.Telemetry.Metrics) {
		for _, name := range own.Telemetry.Metrics[metric].Attributes {
			a := own.Attributes[name]
			if len(a.Enum) == 0 {
				continue
			}
			lines := strings.Split(a.Description, "<br> ")[1:]
			of := metric[strings.LastIndex(metric, "_vllm_")+len("_vllm"):]
			var table strings.Builder
			fmt.Fprintf(&table, "| Reason of `%s` | What it means |\n|---|---|\n", strings.TrimPrefix(of, "_diagnosis"))
			for i, value := range a.Enum {
				meaning, found := "", false
				if i < len(lines) {
					meaning, found = strings.CutPrefix(lines[i], "`"+value+"`: ")
				}
				if !found || len(lines) != len(a.Enum) {
					return nil, fmt.Errorf("%s/metadata.yaml: attribute %s: its description needs a line \"<br> `%s`: meaning\" for each value of enum, in their order", component, name, value)
				}
				fmt.Fprintf(&table, "| `%s` | %s |\n", value, meaning)
			}
			parts[name] = table.String()
		}
	}
	return parts, nil
}
