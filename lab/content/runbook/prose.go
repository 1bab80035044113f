package runbook

import (
	"bytes"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed prose.yaml
var proseFile []byte

// prose is what only the runbook of a condition or a cause says; the head of prose.yaml
// explains the keys.
type prose struct {
	See         string   `yaml:"see"`
	Reasons     string   `yaml:"reasons"`
	Impact      string   `yaml:"impact"`
	Mitigation  []string `yaml:"mitigation"`
	NotConclude string   `yaml:"not_conclude"`
	CannotFire  string   `yaml:"cannot_fire"`
}

// readProse decodes prose.yaml. Unknown keys are errors.
func readProse() (map[string]prose, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(proseFile))
	decoder.KnownFields(true)
	var all map[string]prose
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("prose.yaml: %w", err)
	}
	return all, nil
}
