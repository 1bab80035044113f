package runbook

import (
	"bytes"
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

//go:embed prose.yaml
var proseFile []byte

// prose is what only the runbook of a condition or a cause says; the head of prose.yaml
// explains the keys.
type prose struct {
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

// gap returns an error that names a part that is empty; not every cause has reasons.
func (p *prose) gap(name string) error {
	for key, text := range map[string]string{
		"impact": p.Impact, "mitigation": strings.Join(p.Mitigation, ""), "not_conclude": p.NotConclude, "cannot_fire": p.CannotFire,
	} {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("prose.yaml: %s has no %s, and its runbook would have an empty part: write it", name, key)
		}
	}
	return nil
}
