// Package shipped lists the files that the project ships besides programs, and that the packages beside
// it build: rules, dashboards and runbooks, by their paths below the root of the repository.
package shipped

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/datadog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/grafana"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/perses"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/runbook"
)

// Others are the spellings whose files are not in the repository. "make content" writes them, and a
// release has them.
var Others = []spelling.Spelling{spelling.Unsuffixed, spelling.Dotted, spelling.Wire}

// Committed returns the files of the repository.
func Committed() (map[string][]byte, error) {
	files, err := In(spelling.Suffixed)
	if err != nil {
		return nil, err
	}
	for _, build := range []func() (map[string][]byte, error){
		rulefile.KustomizeFiles, rulefile.AlertmanagerFiles, grafana.ProviderFile, runbook.Files, datadog.Files,
	} {
		built, err := build()
		if err != nil {
			return nil, err
		}
		maps.Copy(files, built)
	}
	return files, nil
}

// In returns the rules and dashboards in some spellings.
func In(spellings ...spelling.Spelling) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, to := range spellings {
		for _, build := range []func(spelling.Spelling) (map[string][]byte, error){rulefile.Files, grafana.Files, perses.Files} {
			built, err := build(to)
			if err != nil {
				return nil, fmt.Errorf("spelling %s: %w", to, err)
			}
			maps.Copy(files, built)
		}
	}
	return files, nil
}

// WriteIn writes rules and dashboards in some spellings into a folder, which takes the place of content/.
func WriteIn(folder string, spellings ...spelling.Spelling) error {
	files, err := In(spellings...)
	if err != nil {
		return err
	}
	below := map[string][]byte{}
	for name, data := range files {
		below[strings.TrimPrefix(name, "content/")] = data
	}
	return Write(folder, below)
}

// Write writes files below a folder.
func Write(folder string, files map[string][]byte) error {
	for name, data := range files {
		full := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(full, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
